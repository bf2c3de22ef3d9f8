#include "planes.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static uint8_t clamped(int32_t value) { return value < 0 ? 0 : value > 255 ? 255 : (uint8_t)value; }

static int16_t saturated(int32_t value) {
    return value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : (int16_t)value;
}

// The samples that no vector holds, and all of them on other processors.
static void down_plain(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int from, int count) {
    for (int x = from; x < count; x++) {
        int32_t sum = 1 << 7;
        for (int tap = 0; tap < taps; tap++) sum += weights[tap] * rows[tap][x];
        out[x] = saturated(sum >> 8);
    }
}

static void across_plain(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int from, int count) {
    for (int x = from; x < count; x++) {
        int32_t sum = 1 << 19;
        const int16_t *weight = weights + (long)x * taps;
        for (int tap = 0; tap < taps; tap++) sum += weight[tap] * row[first[x] + tap];
        out[x] = clamped(sum >> 20);
    }
}

#if defined(__x86_64__)

static int32_t pair(const int16_t *weights, int tap, int taps) {
    uint16_t low = (uint16_t)weights[tap], high = tap + 1 < taps ? (uint16_t)weights[tap + 1] : 0;
    return (int32_t)((uint32_t)high << 16 | low);
}

// Two rows at a time: their samples side by side, multiplied and added by one instruction.
__attribute__((target("avx2"))) static int down_avx2(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int count) {
    int x = 0;
    for (; x + 16 <= count; x += 16) {
        __m256i low = _mm256_set1_epi32(1 << 7), high = low;
        for (int tap = 0; tap < taps; tap += 2) {
            // The last weight of an odd number is paired with 0.
            const uint8_t *second = rows[tap + 1 < taps ? tap + 1 : tap];
            __m256i a = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(rows[tap] + x)));
            __m256i b = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)(second + x)));
            __m256i weight = _mm256_set1_epi32(pair(weights, tap, taps));
            low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weight));
            high = _mm256_add_epi32(high, _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weight));
        }
        __m256i sum = _mm256_packs_epi32(_mm256_srai_epi32(low, 8), _mm256_srai_epi32(high, 8));
        _mm256_storeu_si256((__m256i *)(out + x), sum);
    }
    return x;
}

static int down_sse2(const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int count) {
    int x = 0;
    const __m128i zero = _mm_setzero_si128();
    for (; x + 8 <= count; x += 8) {
        __m128i low = _mm_set1_epi32(1 << 7), high = low;
        for (int tap = 0; tap < taps; tap += 2) {
            const uint8_t *second = rows[tap + 1 < taps ? tap + 1 : tap];
            __m128i a = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(rows[tap] + x)), zero);
            __m128i b = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(second + x)), zero);
            __m128i weight = _mm_set1_epi32(pair(weights, tap, taps));
            low = _mm_add_epi32(low, _mm_madd_epi16(_mm_unpacklo_epi16(a, b), weight));
            high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi16(a, b), weight));
        }
        __m128i sum = _mm_packs_epi32(_mm_srai_epi32(low, 8), _mm_srai_epi32(high, 8));
        _mm_storeu_si128((__m128i *)(out + x), sum);
    }
    return x;
}

static __m128i across_one(const int16_t *row, const int16_t *weight, int taps) {
    __m128i sum = _mm_setzero_si128();
    for (int tap = 0; tap < taps; tap += 8) {
        __m128i samples = _mm_loadu_si128((const __m128i *)(row + tap));
        sum = _mm_add_epi32(sum, _mm_madd_epi16(samples, _mm_loadu_si128((const __m128i *)(weight + tap))));
    }
    return sum;
}

// Four sums of four parts each are added by turning them on their side.
static int across_sse2(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int count) {
    int x = 0;
    for (; x + 4 <= count; x += 4) {
        const int16_t *weight = weights + (long)x * taps;
        __m128i a = across_one(row + first[x], weight, taps);
        __m128i b = across_one(row + first[x + 1], weight + taps, taps);
        __m128i c = across_one(row + first[x + 2], weight + 2 * taps, taps);
        __m128i d = across_one(row + first[x + 3], weight + 3 * taps, taps);
        __m128i ab = _mm_add_epi32(_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
        __m128i cd = _mm_add_epi32(_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
        __m128i sum = _mm_add_epi32(_mm_unpacklo_epi64(ab, cd), _mm_unpackhi_epi64(ab, cd));
        sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << 19)), 20);
        sum = _mm_packus_epi16(_mm_packs_epi32(sum, sum), sum);
        int32_t four = _mm_cvtsi128_si32(sum);
        __builtin_memcpy(out + x, &four, 4);
    }
    return x;
}

#endif

void rushes_planes_down(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int count) {
    int done = 0;
#if defined(__x86_64__)
    done = __builtin_cpu_supports("avx2") ? down_avx2(rows, weights, taps, out, count)
                                          : down_sse2(rows, weights, taps, out, count);
#endif
    down_plain(rows, weights, taps, out, done, count);
}

void rushes_planes_across(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int count) {
    int done = 0;
#if defined(__x86_64__)
    done = across_sse2(row, first, weights, taps, out, count);
#endif
    across_plain(row, first, weights, taps, out, done, count);
}

// In squares, so that the lines of memory that are written stay in the cache.
void rushes_planes_transpose(
    const uint8_t *from, long from_row, uint8_t *to, long to_row, int width, int height) {
    enum { side = 16 };
    for (int top = 0; top < height; top += side) {
        int bottom = top + side < height ? top + side : height;
        for (int left = 0; left < width; left += side) {
            int right = left + side < width ? left + side : width;
            for (int x = left; x < right; x++)
                for (int y = top; y < bottom; y++) to[x * to_row + y] = from[y * from_row + x];
        }
    }
}
