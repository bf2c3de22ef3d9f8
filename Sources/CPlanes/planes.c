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

// The weights of two rows, of which the second's is 0 behind the last.
static int32_t pair(const int16_t *weights, int tap) {
    int32_t two;
    __builtin_memcpy(&two, weights + tap, sizeof two);
    return two;
}

// Two rows at a time: their samples side by side, multiplied and added by one instruction.
__attribute__((target("avx2"))) static int down_avx2(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int count) {
    int x = 0;
    const __m256i zero = _mm256_setzero_si256();
    for (; x + 32 <= count; x += 32) {
        // Samples 0 to 3 and 16 to 19, 4 to 7 and 20 to 23, and so on.
        __m256i a = _mm256_set1_epi32(1 << 7), b = a, c = a, d = a;
        for (int tap = 0; tap < taps; tap += 2) {
            const uint8_t *other = rows[tap + 1 < taps ? tap + 1 : tap];
            __m256i first = _mm256_loadu_si256((const __m256i *)(rows[tap] + x));
            __m256i second = _mm256_loadu_si256((const __m256i *)(other + x));
            __m256i low = _mm256_unpacklo_epi8(first, second), high = _mm256_unpackhi_epi8(first, second);
            __m256i weight = _mm256_set1_epi32(pair(weights, tap));
            a = _mm256_add_epi32(a, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
            b = _mm256_add_epi32(b, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
            c = _mm256_add_epi32(c, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
            d = _mm256_add_epi32(d, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
        }
        __m256i ab = _mm256_packs_epi32(_mm256_srai_epi32(a, 8), _mm256_srai_epi32(b, 8));
        __m256i cd = _mm256_packs_epi32(_mm256_srai_epi32(c, 8), _mm256_srai_epi32(d, 8));
        _mm256_storeu_si256((__m256i *)(out + x), _mm256_permute2x128_si256(ab, cd, 0x20));
        _mm256_storeu_si256((__m256i *)(out + x + 16), _mm256_permute2x128_si256(ab, cd, 0x31));
    }
    return x;
}

static int down_sse2(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int x, int count) {
    const __m128i zero = _mm_setzero_si128();
    for (; x + 8 <= count; x += 8) {
        __m128i low = _mm_set1_epi32(1 << 7), high = low;
        for (int tap = 0; tap < taps; tap += 2) {
            const uint8_t *second = rows[tap + 1 < taps ? tap + 1 : tap];
            __m128i a = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(rows[tap] + x)), zero);
            __m128i b = _mm_unpacklo_epi8(_mm_loadl_epi64((const __m128i *)(second + x)), zero);
            __m128i weight = _mm_set1_epi32(pair(weights, tap));
            low = _mm_add_epi32(low, _mm_madd_epi16(_mm_unpacklo_epi16(a, b), weight));
            high = _mm_add_epi32(high, _mm_madd_epi16(_mm_unpackhi_epi16(a, b), weight));
        }
        __m128i sum = _mm_packs_epi32(_mm_srai_epi32(low, 8), _mm_srai_epi32(high, 8));
        _mm_storeu_si128((__m128i *)(out + x), sum);
    }
    return x;
}

static __m128i across_eight(const int16_t *row, const int16_t *weight) {
    return _mm_madd_epi16(_mm_loadu_si128((const __m128i *)row), _mm_loadu_si128((const __m128i *)weight));
}

static __m128i across_one_sse2(const int16_t *row, const int16_t *weight, int taps) {
    __m128i sum = _mm_setzero_si128();
    for (int tap = 0; tap < taps; tap += 8) sum = _mm_add_epi32(sum, across_eight(row + tap, weight + tap));
    return sum;
}

// Four sums of four parts each are added by turning them on their side.
static int across_sse2(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int x, int count) {
    for (; x + 4 <= count; x += 4) {
        const int16_t *weight = weights + (long)x * taps;
        __m128i a = across_one_sse2(row + first[x], weight, taps);
        __m128i b = across_one_sse2(row + first[x + 1], weight + taps, taps);
        __m128i c = across_one_sse2(row + first[x + 2], weight + 2 * taps, taps);
        __m128i d = across_one_sse2(row + first[x + 3], weight + 3 * taps, taps);
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

__attribute__((target("avx2"), always_inline)) static inline __m256i across_one_avx2(
    const int16_t *row, const int16_t *weight, int taps) {
    __m256i sum = _mm256_setzero_si256();
    int tap = 0;
    for (; tap + 16 <= taps; tap += 16)
        sum = _mm256_add_epi32(
            sum, _mm256_madd_epi16(
                     _mm256_loadu_si256((const __m256i *)(row + tap)),
                     _mm256_loadu_si256((const __m256i *)(weight + tap))));
    if (tap < taps) sum = _mm256_add_epi32(sum, _mm256_zextsi128_si256(across_eight(row + tap, weight + tap)));
    return sum;
}

// Eight sums of eight parts each: neighbours are added three times.
__attribute__((target("avx2"), always_inline)) static inline int across_by_eight_avx2(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int count) {
    int x = 0;
    for (; x + 8 <= count; x += 8) {
        const int16_t *weight = weights + (long)x * taps;
        __m256i parts[8];
        for (int i = 0; i < 8; i++) parts[i] = across_one_avx2(row + first[x + i], weight + (long)i * taps, taps);
        __m256i low = _mm256_hadd_epi32(_mm256_hadd_epi32(parts[0], parts[1]), _mm256_hadd_epi32(parts[2], parts[3]));
        __m256i high = _mm256_hadd_epi32(_mm256_hadd_epi32(parts[4], parts[5]), _mm256_hadd_epi32(parts[6], parts[7]));
        __m256i sum =
            _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
        sum = _mm256_srai_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(1 << 19)), 20);
        __m128i eight = _mm_packs_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
        _mm_storel_epi64((__m128i *)(out + x), _mm_packus_epi16(eight, eight));
    }
    return x;
}

// The usual numbers of weights have their loops unrolled.
__attribute__((target("avx2"))) static int across_avx2(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int count) {
    switch (taps) {
    case 8: return across_by_eight_avx2(row, first, weights, 8, out, count);
    case 16: return across_by_eight_avx2(row, first, weights, 16, out, count);
    default: return across_by_eight_avx2(row, first, weights, taps, out, count);
    }
}

// Eight rows of eight samples become columns.
static void turn_eight(const uint8_t *from, long from_row, uint8_t *to, long to_row) {
    __m128i pairs[4], fours[4];
    for (int i = 0; i < 4; i++)
        pairs[i] = _mm_unpacklo_epi8(
            _mm_loadl_epi64((const __m128i *)(from + 2 * i * from_row)),
            _mm_loadl_epi64((const __m128i *)(from + (2 * i + 1) * from_row)));
    fours[0] = _mm_unpacklo_epi16(pairs[0], pairs[1]);
    fours[1] = _mm_unpackhi_epi16(pairs[0], pairs[1]);
    fours[2] = _mm_unpacklo_epi16(pairs[2], pairs[3]);
    fours[3] = _mm_unpackhi_epi16(pairs[2], pairs[3]);
    for (int i = 0; i < 2; i++) {
        __m128i low = _mm_unpacklo_epi32(fours[i], fours[i + 2]), high = _mm_unpackhi_epi32(fours[i], fours[i + 2]);
        uint8_t *row = to + 4 * i * to_row;
        _mm_storel_epi64((__m128i *)row, low);
        _mm_storel_epi64((__m128i *)(row + to_row), _mm_srli_si128(low, 8));
        _mm_storel_epi64((__m128i *)(row + 2 * to_row), high);
        _mm_storel_epi64((__m128i *)(row + 3 * to_row), _mm_srli_si128(high, 8));
    }
}

#endif

void rushes_planes_down(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int count) {
    int done = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) done = down_avx2(rows, weights, taps, out, count);
    done = down_sse2(rows, weights, taps, out, done, count);
#endif
    down_plain(rows, weights, taps, out, done, count);
}

void rushes_planes_across(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int count) {
    int done = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) done = across_avx2(row, first, weights, taps, out, count);
    done = across_sse2(row, first, weights, taps, out, done, count);
#endif
    across_plain(row, first, weights, taps, out, done, count);
}

static void turn_plain(const uint8_t *from, long from_row, uint8_t *to, long to_row, int width, int height) {
    for (int x = 0; x < width; x++)
        for (int y = 0; y < height; y++) to[x * to_row + y] = from[y * from_row + x];
}

// In squares, so that the lines of memory that are written stay in the cache.
void rushes_planes_transpose(
    const uint8_t *from, long from_row, uint8_t *to, long to_row, int width, int height) {
    enum { side = 8 };
    for (int top = 0; top < height; top += side) {
        int down = top + side < height ? side : height - top;
        for (int left = 0; left < width; left += side) {
            int across = left + side < width ? side : width - left;
            const uint8_t *square = from + top * from_row + left;
            uint8_t *turned = to + left * to_row + top;
#if defined(__x86_64__)
            if (across == side && down == side) {
                turn_eight(square, from_row, turned, to_row);
                continue;
            }
#endif
            turn_plain(square, from_row, turned, to_row, across, down);
        }
    }
}
