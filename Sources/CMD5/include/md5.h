#pragma once
#include <stddef.h>
#include <stdint.h>

// MD5 (RFC 1321) of four messages side by side: each step of one waits for the step before, so a processor has time for three more.
// Takes `blocks` blocks of 64 bytes of each message into `state`: word A of each message, then B, C and D. For little-endian processors.
void rushes_md5_four(uint32_t state[16], const uint8_t *const messages[4], size_t blocks);
