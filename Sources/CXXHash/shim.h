#pragma once
#include <xxhash.h>

// The canonical form: big endian, as every tool prints it.
static inline void rushes_xxh128_bytes(const XXH3_state_t *state, unsigned char bytes[16]) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state));
    for (int index = 0; index < 16; index++) bytes[index] = canonical.digest[index];
}
