#pragma once
#include <stdint.h>
#include <string.h>
#include <zlib.h>

// Unpacks a whole zlib stream: how many bytes it has, or -1 where it is damaged or has more than there is room for.
static inline int64_t rushes_inflate(const uint8_t *bytes, uint32_t count, uint8_t *into, uint32_t room) {
    z_stream stream;
    memset(&stream, 0, sizeof stream);
    if (inflateInit(&stream) != Z_OK) return -1;
    stream.next_in = (Bytef *)bytes;
    stream.avail_in = count;
    stream.next_out = into;
    stream.avail_out = room;
    int status = inflate(&stream, Z_FINISH);
    int64_t written = (int64_t)stream.total_out;
    inflateEnd(&stream);
    return status == Z_STREAM_END ? written : -1;
}
