#pragma once
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>
#include "huffman.h"

// libjpeg leaves a failed call by longjmp, which Swift must never see: every call that can fail is made here, inside its own setjmp.
// TurboJPEG's own interface gives planes only whole; this one gives them a few rows at a time.
typedef struct {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    rushes_huffman huffman;
    jmp_buf leave;
    int is_damaged, is_started, is_finished;
    int scan_count_max;
    char message[JMSG_LENGTH_MAX];
} rushes_jpeg;

static inline rushes_jpeg *rushes_jpeg_of(j_common_ptr info) {
    return (rushes_jpeg *)((char *)info - offsetof(rushes_jpeg, info));
}
static inline void rushes_jpeg_on_error(j_common_ptr info) {
    rushes_jpeg *reader = rushes_jpeg_of(info);
    (*info->err->format_message)(info, reader->message);
    longjmp(reader->leave, 1);
}
// Of what costs pixels the first is kept. Some warnings are of oddities that cost none.
static inline void rushes_jpeg_on_message(j_common_ptr info, int level) {
    rushes_jpeg *reader = rushes_jpeg_of(info);
    if (level >= 0 || reader->is_damaged) return;
    // Between the segments before the picture's data.
    if (!reader->is_started && info->err->msg_code == JWRN_EXTRANEOUS_DATA) return;
    (*info->err->format_message)(info, reader->message);
    reader->is_damaged = strstr(reader->message, "Corrupt JPEG data") || strstr(reader->message, "Premature end");
}
static inline void rushes_jpeg_on_progress(j_common_ptr info) {
    rushes_jpeg *reader = rushes_jpeg_of(info);
    if (reader->info.input_scan_number <= reader->scan_count_max) return;
    strcpy(reader->message, "too many scans");
    longjmp(reader->leave, 1);
}
static inline void rushes_jpeg_ignore(j_decompress_ptr info) { (void)info; }
// Behind the last byte stands an end mark: what is missing before it shows by itself.
static inline boolean rushes_jpeg_fill(j_decompress_ptr info) {
    static const JOCTET end[2] = {0xFF, JPEG_EOI};
    info->src->next_input_byte = end;
    info->src->bytes_in_buffer = 2;
    return TRUE;
}
static inline void rushes_jpeg_skip(j_decompress_ptr info, long count) {
    if (count <= 0) return;
    if ((size_t)count > info->src->bytes_in_buffer) {
        rushes_jpeg_fill(info);
        return;
    }
    info->src->next_input_byte += count;
    info->src->bytes_in_buffer -= (size_t)count;
}

static inline void rushes_jpeg_close(rushes_jpeg *reader) {
    jpeg_destroy_decompress(&reader->info);
    free(reader);
}

// The bytes must outlive the reader. Null when there is no memory.
static inline rushes_jpeg *rushes_jpeg_open(const uint8_t *bytes, size_t size, int scan_count_max) {
    rushes_jpeg *reader = (rushes_jpeg *)calloc(1, sizeof *reader);
    if (!reader) return NULL;
    reader->info.err = jpeg_std_error(&reader->errors);
    reader->errors.error_exit = rushes_jpeg_on_error;
    reader->errors.emit_message = rushes_jpeg_on_message;
    if (setjmp(reader->leave)) {
        free(reader);
        return NULL;
    }
    jpeg_create_decompress(&reader->info);
    reader->source.next_input_byte = bytes;
    reader->source.bytes_in_buffer = size;
    reader->source.init_source = rushes_jpeg_ignore;
    reader->source.fill_input_buffer = rushes_jpeg_fill;
    reader->source.skip_input_data = rushes_jpeg_skip;
    reader->source.resync_to_restart = jpeg_resync_to_restart;
    reader->source.term_source = rushes_jpeg_ignore;
    reader->info.src = &reader->source;
    reader->progress.progress_monitor = rushes_jpeg_on_progress;
    reader->info.progress = &reader->progress;
    reader->scan_count_max = scan_count_max;
    return reader;
}

static inline int rushes_jpeg_read_header(rushes_jpeg *reader) {
    if (setjmp(reader->leave)) return 0;
    return jpeg_read_header(&reader->info, TRUE) == JPEG_HEADER_OK;
}
static inline int rushes_jpeg_is_planar(const rushes_jpeg *reader) {
    return reader->info.jpeg_color_space == JCS_YCbCr || reader->info.jpeg_color_space == JCS_GRAYSCALE;
}
// Bytes of the coefficients that are held until the last scan has come.
static inline int64_t rushes_jpeg_coefficient_bytes(rushes_jpeg *reader) {
    if (!jpeg_has_multiple_scans(&reader->info)) return 0;
    int64_t blocks = 0;
    for (int i = 0; i < reader->info.num_components; i++) {
        const jpeg_component_info *component = &reader->info.comp_info[i];
        blocks += (int64_t)(component->width_in_blocks + component->h_samp_factor)
            * (component->height_in_blocks + component->v_samp_factor);
    }
    return blocks * DCTSIZE2 * (int64_t)sizeof(JCOEF);
}

#if JPEG_LIB_VERSION == 62 && LIBJPEG_TURBO_VERSION_NUMBER < 3000000
// The layout of jpegint.h, the same since libjpeg 5. TurboJPEG does what follows for its own planes.
struct rushes_jpeg_idct {
    void (*start_pass)(j_decompress_ptr);
};
// libjpeg scales chroma less than luma where it is coded in fewer samples, so that nothing is left to upsample, and never more. Who wants it in
// half of the samples of luma, or fewer, would pay for many that are filtered away. `denominator`: what of the picture's full size is wanted of it.
static inline void rushes_jpeg_scale_chroma(rushes_jpeg *reader, int denominator) {
    struct jpeg_decompress_struct *info = &reader->info;
    if (info->comp_info[0].DCT_scaled_size != info->min_DCT_scaled_size) return;
    for (int i = 1; i < info->num_components; i++) {
        jpeg_component_info *component = &info->comp_info[i];
        // Blocks are square: the direction in which there are fewer samples decides.
        int size = 1;
        while (size < info->min_DCT_scaled_size
               && (size * component->h_samp_factor * denominator < DCTSIZE * info->max_h_samp_factor
                   || size * component->v_samp_factor * denominator < DCTSIZE * info->max_v_samp_factor))
            size *= 2;
        if (size >= component->DCT_scaled_size) continue;
        component->DCT_scaled_size = size;
        component->MCU_sample_width = component->MCU_width * size;
        long across = (long)info->max_h_samp_factor * DCTSIZE, down = (long)info->max_v_samp_factor * DCTSIZE;
        component->downsampled_width =
            (JDIMENSION)(((long)info->image_width * component->h_samp_factor * size + across - 1) / across);
        component->downsampled_height =
            (JDIMENSION)(((long)info->image_height * component->v_samp_factor * size + down - 1) / down);
    }
    // Takes the transforms of the new sizes.
    ((struct rushes_jpeg_idct *)info->idct)->start_pass(info);
}
#else
static inline void rushes_jpeg_scale_chroma(rushes_jpeg *reader, int denominator) { (void)reader, (void)denominator; }
#endif

// Planes as they are coded, at 1, 1/2, 1/4 or 1/8 of the size. `reads_huffman`: what can be read faster than the library does, is.
// `chroma_denominator`: of chroma no more is wanted than this.
static inline int rushes_jpeg_start(
    rushes_jpeg *reader, unsigned denominator, unsigned chroma_denominator, int reads_huffman) {
    if (setjmp(reader->leave)) return 0;
    reader->is_started = 1;
    reader->info.scale_num = 1;
    reader->info.scale_denom = denominator;
    reader->info.out_color_space = reader->info.jpeg_color_space;
    reader->info.raw_data_out = TRUE;
    reader->info.do_fancy_upsampling = FALSE;
    reader->info.dct_method = JDCT_ISLOW;
    if (jpeg_start_decompress(&reader->info) != TRUE) return 0;
    rushes_jpeg_scale_chroma(reader, (int)chroma_denominator);
    if (reads_huffman) rushes_huffman_start(&reader->huffman, &reader->info);
    return 1;
}

typedef struct {
    // Samples of a row with those that only fill its last block, and rows that come at a time.
    int row_samples, rows_at_a_time;
    // Of the picture.
    int width, height;
    // What the picture covers of them, in samples: numerator and denominator.
    double extent_width, extent_height;
} rushes_jpeg_component;

static inline rushes_jpeg_component rushes_jpeg_component_at(const rushes_jpeg *reader, int index) {
    const struct jpeg_decompress_struct *info = &reader->info;
    const jpeg_component_info *component = &info->comp_info[index];
    rushes_jpeg_component found;
    found.row_samples = (int)component->width_in_blocks * component->DCT_scaled_size;
    found.rows_at_a_time = component->v_samp_factor * component->DCT_scaled_size;
    found.width = (int)component->downsampled_width;
    found.height = (int)component->downsampled_height;
    found.extent_width = (double)info->image_width * component->h_samp_factor * component->DCT_scaled_size
        / (info->max_h_samp_factor * DCTSIZE);
    found.extent_height = (double)info->image_height * component->v_samp_factor * component->DCT_scaled_size
        / (info->max_v_samp_factor * DCTSIZE);
    return found;
}

// Goes on to the end mark: that data was damaged in its middle may show only by what is left of it. A failure here costs no row.
static inline void rushes_jpeg_finish(rushes_jpeg *reader) {
    if (reader->is_finished) return;
    reader->is_finished = 1;
    if (setjmp(reader->leave)) {
        reader->is_damaged = 1;
        return;
    }
    jpeg_finish_decompress(&reader->info);
}

// One row of blocks of every component, into rows that the caller has.
// 1 for rows, 0 for an error, -1 when there are no more.
static inline int rushes_jpeg_read(rushes_jpeg *reader, uint8_t ***components) {
    if (reader->is_finished || reader->info.output_scanline >= reader->info.output_height) {
        rushes_jpeg_finish(reader);
        return -1;
    }
    if (setjmp(reader->leave)) return 0;
    JDIMENSION lines = (JDIMENSION)(reader->info.max_v_samp_factor * reader->info.min_DCT_scaled_size);
    return jpeg_read_raw_data(&reader->info, components, lines) > 0 ? 1 : -1;
}
