#include "md5.h"

#include <string.h>

typedef uint32_t four __attribute__((vector_size(16)));

static const uint32_t sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1,
    0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453,
    0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942,
    0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05,
    0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d,
    0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

// Sixteen words of each message, word by word.
static void load(four words[16], const uint8_t *const messages[4], size_t at) {
    for (int part = 0; part < 4; part++) {
        four a, b, c, d;
        memcpy(&a, messages[0] + at + 16 * part, 16);
        memcpy(&b, messages[1] + at + 16 * part, 16);
        memcpy(&c, messages[2] + at + 16 * part, 16);
        memcpy(&d, messages[3] + at + 16 * part, 16);
        four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        words[4 * part] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
        words[4 * part + 1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
        words[4 * part + 2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
        words[4 * part + 3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
    }
}

#define STEP(a, b, c, d, mixed, word, step, by)            \
    a += (mixed) + words[word] + sines[step];              \
    a = b + ((a << by) | (a >> (32 - by)));
#define FOUR(mix, step, first, by, s0, s1, s2, s3)                     \
    STEP(a, b, c, d, mix(b, c, d), (first) & 15, step, s0)             \
    STEP(d, a, b, c, mix(a, b, c), (first + by) & 15, step + 1, s1)    \
    STEP(c, d, a, b, mix(d, a, b), (first + 2 * by) & 15, step + 2, s2) \
    STEP(b, c, d, a, mix(c, d, a), (first + 3 * by) & 15, step + 3, s3)
#define ROUND(mix, step, first, by, s0, s1, s2, s3)                    \
    FOUR(mix, step, first, by, s0, s1, s2, s3)                         \
    FOUR(mix, step + 4, first + 4 * by, by, s0, s1, s2, s3)            \
    FOUR(mix, step + 8, first + 8 * by, by, s0, s1, s2, s3)            \
    FOUR(mix, step + 12, first + 12 * by, by, s0, s1, s2, s3)
#define F(x, y, z) (((x) & (y)) | (~(x) & (z)))
#define G(x, y, z) (((x) & (z)) | ((y) & ~(z)))
#define H(x, y, z) ((x) ^ (y) ^ (z))
#define I(x, y, z) ((y) ^ ((x) | ~(z)))

void rushes_md5_four(uint32_t state[16], const uint8_t *const messages[4], size_t blocks) {
    four a, b, c, d, words[16];
    memcpy(&a, state, 16);
    memcpy(&b, state + 4, 16);
    memcpy(&c, state + 8, 16);
    memcpy(&d, state + 12, 16);
    for (size_t at = 0; at < blocks * 64; at += 64) {
        four a0 = a, b0 = b, c0 = c, d0 = d;
        load(words, messages, at);
        ROUND(F, 0, 0, 1, 7, 12, 17, 22)
        ROUND(G, 16, 1, 5, 5, 9, 14, 20)
        ROUND(H, 32, 5, 3, 4, 11, 16, 23)
        ROUND(I, 48, 0, 7, 6, 10, 15, 21)
        a += a0, b += b0, c += c0, d += d0;
    }
    memcpy(state, &a, 16);
    memcpy(state + 4, &b, 16);
    memcpy(state + 8, &c, 16);
    memcpy(state + 12, &d, 16);
}
