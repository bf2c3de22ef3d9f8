#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <jpeglib.h>

// Entropy decoding is most of what a photo costs. libjpeg-turbo looks up a code and then takes the value's bits; here one look gives run and value of
// most coefficients at once. Only sound data in the middle of a stretch is decoded here: whatever is unusual (a marker, a code that is none, the
// last bytes) is left to the library, from the start of that MCU on, so that damage is treated as it always was.

#if JPEG_LIB_VERSION == 62 && LIBJPEG_TURBO_VERSION_NUMBER >= 2000000 && LIBJPEG_TURBO_VERSION_NUMBER < 3000000 \
    && defined(__x86_64__)
#define RUSHES_JPEG_READS_HUFFMAN 1
#else
#define RUSHES_JPEG_READS_HUFFMAN 0
#endif

enum {
    rushes_huffman_look_bits = 10,
    // What has no value in the table: 0 stands for codes that are longer than a look, or whose value is.
    rushes_huffman_end_of_block = 1 << 8,
    rushes_huffman_sixteen_zeros = 2 << 8,
};

typedef struct {
    // Value in the upper 16 bits, run in the next 8, bits taken in the lowest 6.
    int32_t looks[1 << rushes_huffman_look_bits];
    // By length: the first code behind those of the length, and what added to a code gives its place among the symbols.
    int32_t ends[17], places[17];
    uint8_t symbols[256];
} rushes_huffman_table;

// The layout of jdhuff.c and jpegint.h in libjpeg-turbo 2.
typedef struct {
    void (*start_pass)(j_decompress_ptr);
    boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW *);
    boolean is_out_of_data;
    struct {
        size_t buffer;
        int count;
    } bits;
    int last_dc[MAX_COMPS_IN_SCAN];
    unsigned int restarts_to_go;
} rushes_huffman_entropy;

typedef struct {
    boolean (*library)(j_decompress_ptr, JBLOCKROW *);
    rushes_huffman_table dc[NUM_HUFF_TBLS], ac[NUM_HUFF_TBLS];
} rushes_huffman;

// A value of so many bits (ITU-T T.81, F.2.2.1): those whose first bit is 0 are negative.
static inline int rushes_huffman_value(uint32_t bits, int size) {
    return size == 0 || bits >> (size - 1) ? (int)bits : (int)bits - (1 << size) + 1;
}

// The library has found the table valid. Symbols of DC are sizes; those of AC have the run before them.
static inline void rushes_huffman_make(rushes_huffman_table *table, const JHUFF_TBL *from, int is_dc) {
    enum { look = rushes_huffman_look_bits };
    memset(table, 0, sizeof *table);
    memcpy(table->symbols, from->huffval, sizeof table->symbols);
    uint32_t code = 0;
    int place = 0;
    for (int length = 1; length <= 16; length++, code <<= 1) {
        table->places[length] = place - (int32_t)code;
        for (int i = 0; i < from->bits[length] && place < 256; i++, code++, place++) {
            int run = is_dc ? 0 : from->huffval[place] >> 4, size = from->huffval[place] & 15;
            int left = look - length;
            if (left < 0) continue;
            for (uint32_t rest = 0; rest < 1u << left; rest++) {
                int32_t *entry = &table->looks[(code << left | rest) & ((1 << look) - 1)];
                if (size == 0 && !is_dc)
                    *entry = run == 0    ? rushes_huffman_end_of_block | length
                             : run == 15 ? rushes_huffman_sixteen_zeros | length
                                         : 0;
                else if (size <= left)
                    *entry = (int32_t)((uint32_t)rushes_huffman_value(rest >> (left - size), size) << 16)
                             | run << 8 | (length + size);
            }
        }
        table->ends[length] = (int32_t)code;
    }
}

typedef struct {
    const JOCTET *next, *end;
    // The next bit is the highest; behind `count` of them there are zeros.
    uint64_t buffer;
    int count;
} rushes_huffman_bits;

// At least 32 bits, enough for a code and its value. 0 where a marker or the end is near.
static inline int rushes_huffman_fill(rushes_huffman_bits *bits) {
    if (bits->count >= 32) return 1;
    if (bits->end - bits->next < 16) return 0;
    uint32_t four;
    memcpy(&four, bits->next, sizeof four);
    // A byte of all ones has a zero for its complement.
    if (!((~four - 0x01010101u) & four & 0x80808080u)) {
        bits->buffer |= (uint64_t)__builtin_bswap32(four) << (32 - bits->count);
        bits->count += 32;
        bits->next += 4;
        return 1;
    }
    for (int i = 0; i < 4; i++) {
        JOCTET byte = *bits->next++;
        if (byte == 0xFF && *bits->next++ != 0) return 0;
        bits->buffer |= (uint64_t)byte << (56 - bits->count);
        bits->count += 8;
    }
    return 1;
}

// Only the lowest six bits of `count` are looked at, as the processor does.
static inline void rushes_huffman_drop(rushes_huffman_bits *bits, int count) {
    bits->buffer <<= count & 63;
    bits->count -= count & 63;
}

static inline uint32_t rushes_huffman_peek(const rushes_huffman_bits *bits, int count) {
    return (uint32_t)(bits->buffer >> 32 >> (32 - count));
}

// A symbol whose code no look shows. -1 where there is no such code.
static inline int rushes_huffman_symbol(rushes_huffman_bits *bits, const rushes_huffman_table *table) {
    for (int length = 1; length <= 16; length++) {
        int32_t code = (int32_t)rushes_huffman_peek(bits, length);
        if (code >= table->ends[length]) continue;
        rushes_huffman_drop(bits, length);
        return table->symbols[(code + table->places[length]) & 255];
    }
    return -1;
}

// 0 where the library has to decode the block's MCU.
static inline int rushes_huffman_block(
    rushes_huffman_bits *bits, const rushes_huffman_table *dc, const rushes_huffman_table *ac, int *last_dc,
    JCOEF *block) {
    // The order of the coefficients (ITU-T T.81, figure A.6); a run that leads out of the block ends at its last.
    static const uint8_t places[64 + 16] = {
        0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13,
        6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31,
        39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};
    if (!rushes_huffman_fill(bits)) return 0;
    int32_t look = dc->looks[rushes_huffman_peek(bits, rushes_huffman_look_bits)];
    int difference = look >> 16;
    if (look) {
        rushes_huffman_drop(bits, look);
    } else {
        int size = rushes_huffman_symbol(bits, dc);
        if (size < 0 || size > 15) return 0;
        difference = rushes_huffman_value(rushes_huffman_peek(bits, size), size);
        rushes_huffman_drop(bits, size);
    }
    *last_dc = (int)((unsigned)*last_dc + (unsigned)difference);
    block[0] = (JCOEF)*last_dc;
    for (int k = 1; k < DCTSIZE2; k++) {
        if (!rushes_huffman_fill(bits)) return 0;
        look = ac->looks[rushes_huffman_peek(bits, rushes_huffman_look_bits)];
        if (look >> 16) {
            rushes_huffman_drop(bits, look);
            k += look >> 8 & 0xFF;
            block[places[k]] = (JCOEF)(look >> 16);
        } else if (look) {
            rushes_huffman_drop(bits, look);
            if (look & rushes_huffman_end_of_block) return 1;
            k += 15;
        } else {
            int symbol = rushes_huffman_symbol(bits, ac);
            if (symbol < 0) return 0;
            int size = symbol & 15;
            if (size == 0) {
                if (symbol >> 4 != 15) return 1;
                k += 15;
                continue;
            }
            k += symbol >> 4;
            block[places[k]] = (JCOEF)rushes_huffman_value(rushes_huffman_peek(bits, size), size);
            rushes_huffman_drop(bits, size);
        }
    }
    return 1;
}

// In place of the library's own: all blocks of an MCU, or none.
static inline boolean rushes_huffman_decode(j_decompress_ptr info, JBLOCKROW *blocks) {
    rushes_huffman *own = (rushes_huffman *)info->client_data;
    rushes_huffman_entropy *entropy = (rushes_huffman_entropy *)(void *)info->entropy;
    struct jpeg_source_mgr *source = info->src;
    int has_restarts = info->restart_interval > 0;
    if (!blocks || entropy->is_out_of_data || info->unread_marker || (has_restarts && entropy->restarts_to_go == 0))
        return own->library(info, blocks);
    // The library keeps its bits at the lower end.
    int count = entropy->bits.count;
    rushes_huffman_bits bits = {
        source->next_input_byte, source->next_input_byte + source->bytes_in_buffer,
        count > 0 ? (uint64_t)entropy->bits.buffer << (64 - count) : 0, count};
    int last_dc[MAX_COMPS_IN_SCAN];
    memcpy(last_dc, entropy->last_dc, sizeof last_dc);
    for (int i = 0; i < info->blocks_in_MCU; i++) {
        int component = info->MCU_membership[i];
        const jpeg_component_info *its = info->cur_comp_info[component];
        if (!rushes_huffman_block(
                &bits, &own->dc[its->dc_tbl_no], &own->ac[its->ac_tbl_no], &last_dc[component], *blocks[i]))
            return own->library(info, blocks);
    }
    source->next_input_byte = bits.next;
    source->bytes_in_buffer = (size_t)(bits.end - bits.next);
    entropy->bits.buffer = bits.count > 0 ? bits.buffer >> (64 - bits.count) : 0;
    entropy->bits.count = bits.count;
    memcpy(entropy->last_dc, last_dc, sizeof last_dc);
    if (has_restarts) entropy->restarts_to_go--;
    return TRUE;
}

// Once decompression has started. What is not one pass of Huffman codes stays with the library.
static inline void rushes_huffman_start(rushes_huffman *own, j_decompress_ptr info) {
    if (!RUSHES_JPEG_READS_HUFFMAN || info->progressive_mode || info->arith_code || jpeg_has_multiple_scans(info)) return;
    for (int i = 0; i < info->comps_in_scan; i++) {
        const jpeg_component_info *its = info->cur_comp_info[i];
        if (its->dc_tbl_no < 0 || its->dc_tbl_no >= NUM_HUFF_TBLS || !info->dc_huff_tbl_ptrs[its->dc_tbl_no]) return;
        if (its->ac_tbl_no < 0 || its->ac_tbl_no >= NUM_HUFF_TBLS || !info->ac_huff_tbl_ptrs[its->ac_tbl_no]) return;
        rushes_huffman_make(&own->dc[its->dc_tbl_no], info->dc_huff_tbl_ptrs[its->dc_tbl_no], 1);
        rushes_huffman_make(&own->ac[its->ac_tbl_no], info->ac_huff_tbl_ptrs[its->ac_tbl_no], 0);
    }
    rushes_huffman_entropy *entropy = (rushes_huffman_entropy *)(void *)info->entropy;
    own->library = entropy->decode_mcu;
    info->client_data = own;
    entropy->decode_mcu = rushes_huffman_decode;
}
