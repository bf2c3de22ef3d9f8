#pragma once
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <libavutil/avutil.h>
#include <libavutil/channel_layout.h>
#include <libavutil/dict.h>
#include <libavutil/display.h>
#include <libavutil/dovi_meta.h>
#include <libavutil/error.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libavutil/mastering_display_metadata.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
#include <libavutil/samplefmt.h>
#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libswresample/swresample.h>
#include <libswscale/swscale.h>

// Macros with casts and function-like macros are not imported into Swift.
static const int64_t rushes_no_timestamp = AV_NOPTS_VALUE;
static const int rushes_error_end = AVERROR_EOF;
static const int rushes_error_again = AVERROR(EAGAIN);
static const int rushes_error_exit = AVERROR_EXIT;
static const int rushes_error_invalid_data = AVERROR_INVALIDDATA;
static const int rushes_error_patch_welcome = AVERROR_PATCHWELCOME;
static const int rushes_error_no_decoder = AVERROR_DECODER_NOT_FOUND;
static const int rushes_error_no_demuxer = AVERROR_DEMUXER_NOT_FOUND;
static inline int rushes_error(int code) { return AVERROR(code); }

// The library logs by va_list, which Swift cannot format. The statics below exist once: LibraryLog.swift is the only caller.
typedef void (*rushes_log_line)(int level, const char *_Nonnull line);
static inline rushes_log_line _Nullable *_Nonnull rushes_log_receiver(void) {
    static rushes_log_line receiver;
    return &receiver;
}
static inline void rushes_log_callback(void *context, int level, const char *format, va_list arguments) {
    rushes_log_line receiver = *rushes_log_receiver();
    if (level > AV_LOG_WARNING || !receiver) return;
    char line[512];
    int prefix = 1;
    va_list copy;
    va_copy(copy, arguments);
    av_log_format_line2(context, level, format, copy, line, sizeof line, &prefix);
    va_end(copy);
    receiver(level, line);
}
static inline void rushes_log_install(rushes_log_line _Nonnull receiver) {
    *rushes_log_receiver() = receiver;
    av_log_set_level(AV_LOG_WARNING);
    av_log_set_callback(rushes_log_callback);
}
