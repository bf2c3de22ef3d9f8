import CFFmpeg
package import Vocabulary

/// Owns one opened encoder.
package struct Encoder: ~Copyable {
    private let pointer: UnsafeMutablePointer<AVCodecContext>

    private init(owning pointer: UnsafeMutablePointer<AVCodecContext>) { self.pointer = pointer }
    deinit {
        var pointer: UnsafeMutablePointer<AVCodecContext>? = pointer
        avcodec_free_context(&pointer)
    }

    /// H.264 High, 8-bit 4:2:0, BT.709 limited. Key frames stand only where a frame asks for one, and no picture refers past one.
    package struct H264: Sendable, Equatable {
        package var width: Int
        package var height: Int
        package var timeBase: Rational
        /// For rate control only; timestamps rule.
        package var rate: Rational
        package var preset: String
        package var crf: Double
        /// The longest stretch without a key frame, in frames.
        package var keyframeIntervalMax: Int
        package var threads: Int
        /// x264's `subme`, 0 to 11; nil leaves it to the preset.
        package var motionRefinement: Int?

        package init(
            width: Int, height: Int, timeBase: Rational, rate: Rational, preset: String, crf: Double,
            keyframeIntervalMax: Int, threads: Int, motionRefinement: Int? = nil
        ) {
            self.width = width
            self.height = height
            self.timeBase = timeBase
            self.rate = rate
            self.preset = preset
            self.crf = crf
            self.keyframeIntervalMax = keyframeIntervalMax
            self.threads = threads
            self.motionRefinement = motionRefinement
        }
    }

    package static func h264(_ settings: H264) throws(Failure) -> Encoder {
        let encoder = try allocate("libx264")
        let context = encoder.pointer
        context.pointee.width = Int32(settings.width)
        context.pointee.height = Int32(settings.height)
        context.pointee.pix_fmt = AV_PIX_FMT_YUV420P
        context.pointee.sample_aspect_ratio = AVRational(num: 1, den: 1)
        context.pointee.time_base = settings.timeBase.c
        context.pointee.framerate = settings.rate.c
        context.pointee.color_range = AVCOL_RANGE_MPEG
        context.pointee.color_primaries = AVCOL_PRI_BT709
        context.pointee.color_trc = AVCOL_TRC_BT709
        context.pointee.colorspace = AVCOL_SPC_BT709
        context.pointee.chroma_sample_location = AVCHROMA_LOC_LEFT
        context.pointee.gop_size = Int32(settings.keyframeIntervalMax)
        context.pointee.thread_count = Int32(settings.threads)
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        // With a look-ahead in a thread of its own x264 (core 164) does not always come to the same bytes: 14 of 250 runs on a loaded machine
        // differed, none of 120 without.
        let parameters = ["sync-lookahead=0"] + (settings.motionRefinement.map { ["subme=\($0)"] } ?? [])
        let options = [
            ("preset", settings.preset), ("profile", "high"), ("crf", String(settings.crf)), ("forced-idr", "1"),
            ("sc_threshold", "0"),
            ("x264-params", parameters.joined(separator: ":")),
            // The fastest presets leave out what makes a stream High, and High is promised.
            ("8x8dct", "1"), ("coder", "cabac"),
        ]
        try encoder.open("libx264", options)
        return encoder
    }

    /// AAC-LC in frames of `frameSamples`.
    package static func aac(sampleRate: Int, channels: Int, bitRate: Int) throws(Failure) -> Encoder {
        let encoder = try allocate("aac")
        let context = encoder.pointer
        context.pointee.sample_rate = Int32(sampleRate)
        context.pointee.sample_fmt = AV_SAMPLE_FMT_FLTP
        context.pointee.profile = FF_PROFILE_AAC_LOW
        av_channel_layout_default(&context.pointee.ch_layout, Int32(channels))
        context.pointee.bit_rate = Int64(bitRate)
        context.pointee.time_base = AVRational(num: 1, den: Int32(sampleRate))
        context.pointee.flags |= AV_CODEC_FLAG_GLOBAL_HEADER
        try encoder.open("aac", [])
        return encoder
    }

    /// Baseline JPEG in JFIF's colours (BT.601, full range).
    /// - Parameter scale: MJPEG's quantiser, 1 (best) to 31.
    static func jpeg(width: Int, height: Int, format: PixelFormat, scale: Int) throws(Failure) -> Encoder {
        let encoder = try allocate("mjpeg")
        let context = encoder.pointer
        context.pointee.width = Int32(width)
        context.pointee.height = Int32(height)
        context.pointee.pix_fmt = format.raw
        context.pointee.color_range = AVCOL_RANGE_JPEG
        context.pointee.time_base = AVRational(num: 1, den: 25)
        context.pointee.flags |= AV_CODEC_FLAG_QSCALE
        context.pointee.global_quality = Int32(scale) * FF_QP2LAMBDA
        context.pointee.thread_count = 1
        try encoder.open("mjpeg", [])
        return encoder
    }

    private static func allocate(_ name: String) throws(Failure) -> Encoder {
        LibraryLog.install()
        guard let codec = avcodec_find_encoder_by_name(name) else {
            throw Failure(.internalError, "This machine's FFmpeg cannot write \(name); install libavcodec-extra.")
        }
        return Encoder(owning: try allocated("avcodec_alloc_context3", avcodec_alloc_context3(codec)))
    }
    private func open(_ name: String, _ options: [(String, String)]) throws(Failure) {
        for (key, value) in options { try check("av_opt_set", av_opt_set(pointer.pointee.priv_data, key, value, 0)) }
        try check("avcodec_open2", avcodec_open2(pointer, nil, nil))
    }

    package var timeBase: Rational { Rational(pointer.pointee.time_base) }
    /// Samples a frame of sound must have; only the last may have fewer.
    package var frameSamples: Int { Int(pointer.pointee.frame_size) }
    var context: UnsafeMutablePointer<AVCodecContext> { pointer }

    package func send(_ frame: borrowing Frame) throws(Failure) {
        try check("avcodec_send_frame", avcodec_send_frame(pointer, frame.pointer))
    }
    package func finish() throws(Failure) { try check("avcodec_send_frame", avcodec_send_frame(pointer, nil)) }
    /// - Returns: false when it needs more, or is at its end.
    package func receive(into packet: borrowing Packet) throws(Failure) -> Bool {
        let code = avcodec_receive_packet(pointer, packet.pointer)
        if code == rushes_error_again || code == rushes_error_end { return false }
        try check("avcodec_receive_packet", code)
        return true
    }
}
