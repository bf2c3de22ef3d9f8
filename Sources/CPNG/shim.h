#pragma once
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <png.h>

// libpng leaves a failed call by longjmp, which Swift must never see: every call that can fail is made here, inside its own setjmp.
typedef struct {
    png_structp png;
    png_infop info;
    const uint8_t *bytes;
    size_t size;
    size_t offset;
    int wanted_past_end;
    int passes;
    char message[160];
} rushes_png;

static inline void rushes_png_on_error(png_structp png, png_const_charp message) {
    rushes_png *reader = (rushes_png *)png_get_error_ptr(png);
    strncpy(reader->message, message, sizeof reader->message - 1);
    png_longjmp(png, 1);
}
static inline void rushes_png_on_warning(png_structp png, png_const_charp message) {
    (void)png, (void)message;
}
static inline void rushes_png_on_read(png_structp png, png_bytep into, size_t count) {
    rushes_png *reader = (rushes_png *)png_get_io_ptr(png);
    if (count > reader->size - reader->offset) {
        reader->wanted_past_end = 1;
        png_error(png, "the file ends too early");
    }
    memcpy(into, reader->bytes + reader->offset, count);
    reader->offset += count;
}

static inline void rushes_png_close(rushes_png *reader) {
    if (reader->png) png_destroy_read_struct(&reader->png, &reader->info, NULL);
    free(reader);
}

// The bytes must outlive the reader. Null when there is no memory.
static inline rushes_png *rushes_png_open(const uint8_t *bytes, size_t size, uint32_t side_max, size_t chunk_bytes_max) {
    rushes_png *reader = (rushes_png *)calloc(1, sizeof *reader);
    if (!reader) return NULL;
    reader->bytes = bytes;
    reader->size = size;
    reader->png =
        png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, rushes_png_on_error, rushes_png_on_warning);
    if (reader->png) reader->info = png_create_info_struct(reader->png);
    if (!reader->info) {
        rushes_png_close(reader);
        return NULL;
    }
    png_set_user_limits(reader->png, side_max, side_max);
    png_set_chunk_malloc_max(reader->png, chunk_bytes_max);
    // Read elsewhere, or not at all: libpng would unpack each of them, however many there are.
    static const png_byte passed_over[] = "tEXt\0zTXt\0iTXt\0sPLT\0eXIf";
    png_set_keep_unknown_chunks(reader->png, PNG_HANDLE_CHUNK_NEVER, passed_over, sizeof passed_over / 5);
    png_set_read_fn(reader->png, reader, rushes_png_on_read);
    return reader;
}

// Reads up to the pixels and asks for grey or RGB, with alpha where there is any, of 8 or 16 bits in this machine's byte order.
static inline int rushes_png_read_header(rushes_png *reader) {
    if (setjmp(png_jmpbuf(reader->png))) return 0;
    png_read_info(reader->png, reader->info);
    png_set_expand(reader->png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    png_set_swap(reader->png);
#endif
    reader->passes = png_set_interlace_handling(reader->png);
    png_read_update_info(reader->png, reader->info);
    return 1;
}
static inline int rushes_png_read_rows(rushes_png *reader, uint8_t **rows, uint32_t count) {
    if (setjmp(png_jmpbuf(reader->png))) return 0;
    png_read_rows(reader->png, rows, NULL, count);
    return 1;
}
static inline int rushes_png_passes(const rushes_png *reader) { return reader->passes; }
static inline uint32_t rushes_png_width(const rushes_png *reader) { return png_get_image_width(reader->png, reader->info); }
static inline uint32_t rushes_png_height(const rushes_png *reader) { return png_get_image_height(reader->png, reader->info); }
static inline int rushes_png_channels(const rushes_png *reader) { return png_get_channels(reader->png, reader->info); }
static inline int rushes_png_depth(const rushes_png *reader) { return png_get_bit_depth(reader->png, reader->info); }
static inline size_t rushes_png_row_bytes(const rushes_png *reader) { return png_get_rowbytes(reader->png, reader->info); }
static inline int rushes_png_is_srgb(const rushes_png *reader) {
    return png_get_valid(reader->png, reader->info, PNG_INFO_sRGB) != 0;
}
// gAMA as the encoding exponent, e.g. 0.45455.
static inline int rushes_png_gamma(rushes_png *reader, double *gamma) {
    if (setjmp(png_jmpbuf(reader->png))) return 0;
    return png_get_valid(reader->png, reader->info, PNG_INFO_gAMA) && png_get_gAMA(reader->png, reader->info, gamma);
}
// White x y, red x y, green x y, blue x y.
static inline int rushes_png_chromaticities(rushes_png *reader, double *eight) {
    if (setjmp(png_jmpbuf(reader->png))) return 0;
    return png_get_valid(reader->png, reader->info, PNG_INFO_cHRM)
        && png_get_cHRM(
            reader->png, reader->info, eight, eight + 1, eight + 2, eight + 3, eight + 4, eight + 5, eight + 6,
            eight + 7);
}
