#pragma once
#include <stdint.h>
#include <tiffio.h>

// TIFFGetField is variadic, which Swift cannot call.
static inline int rushes_tiff_get16(TIFF *tiff, uint32_t tag, uint16_t *value) {
    return TIFFGetFieldDefaulted(tiff, tag, value);
}
static inline int rushes_tiff_get32(TIFF *tiff, uint32_t tag, uint32_t *value) {
    return TIFFGetFieldDefaulted(tiff, tag, value);
}
static inline int rushes_tiff_get_extra_samples(TIFF *tiff, uint16_t *count, uint16_t **kinds) {
    return TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, count, kinds);
}
// A tag that is set here asks the JPEG codec for RGB instead of YCbCr.
static inline int rushes_tiff_jpeg_as_rgb(TIFF *tiff) {
    return TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
}
