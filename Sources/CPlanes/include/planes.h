#pragma once
#include <stdint.h>

// The two halves of a separable filter over 8-bit samples. Weights are fixed-point: 16384 stands for 1.

// One row between others: out[x] is the weighted sum of the rows' samples at x, with 6 more bits. Behind an odd number of weights
// stands one more that is 0.
void rushes_planes_down(
    const uint8_t *const *rows, const int16_t *weights, int taps, int16_t *out, int count);

// One row made shorter: out[x] is the weighted sum of `taps` samples of the row from first[x] on. `taps` is a multiple of 8; the row can be
// read for `taps` samples behind every first, and weights that are not wanted are 0.
void rushes_planes_across(
    const int16_t *row, const int32_t *first, const int16_t *weights, int taps, uint8_t *out, int count);

// A tile of samples with rows and columns exchanged; the steps between rows are in bytes and may be negative.
void rushes_planes_transpose(
    const uint8_t *from, long from_row, uint8_t *to, long to_row, int width, int height);
