import CFFmpeg
package import Vocabulary

/// Owns one `AVFrame`: a picture or a stretch of sound.
package struct Frame: ~Copyable {
    let pointer: UnsafeMutablePointer<AVFrame>

    private init(owning pointer: UnsafeMutablePointer<AVFrame>) { self.pointer = pointer }
    deinit {
        var pointer: UnsafeMutablePointer<AVFrame>? = pointer
        av_frame_free(&pointer)
    }
    package static func allocate() throws(Failure) -> Frame {
        Frame(owning: try allocated("av_frame_alloc", av_frame_alloc()))
    }
    /// A writable picture.
    package static func allocate(width: Int, height: Int, format: PixelFormat) throws(Failure) -> Frame {
        let frame = try allocate()
        frame.pointer.pointee.width = Int32(width)
        frame.pointer.pointee.height = Int32(height)
        frame.pointer.pointee.format = format.raw.rawValue
        try check("av_frame_get_buffer", av_frame_get_buffer(frame.pointer, 0))
        return frame
    }
    /// A writable stretch of sound in planar floats.
    package static func allocate(samples: Int, channels: Int, sampleRate: Int) throws(Failure) -> Frame {
        let frame = try allocate()
        frame.pointer.pointee.nb_samples = Int32(samples)
        frame.pointer.pointee.format = AV_SAMPLE_FMT_FLTP.rawValue
        frame.pointer.pointee.sample_rate = Int32(sampleRate)
        av_channel_layout_default(&frame.pointer.pointee.ch_layout, Int32(channels))
        try check("av_frame_get_buffer", av_frame_get_buffer(frame.pointer, 0))
        return frame
    }
    /// Lengthens a stretch of planar floats.
    package func padWithSilence(to samples: Int) throws(Failure) {
        let present = self.samples
        guard samples > present else { return }
        let longer = try Frame.allocate(samples: samples, channels: channels, sampleRate: sampleRate)
        longer.pts = pts
        let layout = AVSampleFormat(longer.pointer.pointee.format)
        let planes = pointer.pointee.extended_data, target = longer.pointer.pointee.extended_data
        try check("av_samples_copy", av_samples_copy(target, planes, 0, 0, Int32(present), Int32(channels), layout))
        av_samples_set_silence(target, Int32(present), Int32(samples - present), Int32(channels), layout)
        av_frame_unref(pointer)
        av_frame_move_ref(pointer, longer.pointer)
    }
    /// Another owner of the same pixels.
    package func reference() throws(Failure) -> Frame {
        Frame(owning: try allocated("av_frame_clone", av_frame_clone(pointer)))
    }
    /// Lets go of what it held and shares the other's pixels.
    package func takeReference(to other: borrowing Frame) throws(Failure) {
        av_frame_unref(pointer)
        try check("av_frame_ref", av_frame_ref(pointer, other.pointer))
    }
    package func unreference() { av_frame_unref(pointer) }

    package var pts: Int64? {
        get { timestamp(pointer.pointee.pts) }
        nonmutating set { pointer.pointee.pts = newValue ?? rushes_no_timestamp }
    }
    /// The decoder's best guess at when the frame is shown, in the packets' time base.
    package var bestTimestamp: Int64? { timestamp(pointer.pointee.best_effort_timestamp) }
    package var duration: Int64 {
        get { FFmpeg.duration(pointer.pointee.pkt_duration) }
        nonmutating set { pointer.pointee.pkt_duration = newValue }
    }
    package var width: Int { Int(pointer.pointee.width) }
    package var height: Int { Int(pointer.pointee.height) }
    package var samples: Int { Int(pointer.pointee.nb_samples) }
    package var sampleRate: Int { Int(pointer.pointee.sample_rate) }
    package var channels: Int { Int(pointer.pointee.ch_layout.nb_channels) }
    package var pixelFormat: PixelFormat { PixelFormat(pointer.pointee.format) }
    var rawFormat: Int32 { pointer.pointee.format }
    /// A number of libavutil, for comparing only.
    package var sampleFormat: Int32 { pointer.pointee.format }
    package var sampleAspect: Rational { Rational(pointer.pointee.sample_aspect_ratio) }
    package var isInterlaced: Bool { pointer.pointee.interlaced_frame != 0 }
    /// The decoder had to guess: missing references, damaged slices, or a packet marked corrupt.
    package var isDamaged: Bool {
        pointer.pointee.flags & AV_FRAME_FLAG_CORRUPT != 0 || pointer.pointee.decode_error_flags != 0
    }
    package var color: ColorTags {
        ColorTags(
            range: pointer.pointee.color_range, primaries: pointer.pointee.color_primaries,
            transfer: pointer.pointee.color_trc, matrix: pointer.pointee.colorspace)
    }
    /// The nine numbers of a display matrix that travels inside the coded video.
    package var displayMatrix: [Int32]? {
        guard let side = av_frame_get_side_data(pointer, AV_FRAME_DATA_DISPLAYMATRIX), side.pointee.size >= 36 else {
            return nil
        }
        return side.pointee.data.withMemoryRebound(to: Int32.self, capacity: 9) {
            Array(UnsafeBufferPointer(start: $0, count: 9))
        }
    }
    /// True when the frame carries Dolby Vision's reshaping, whatever the container says.
    package var hasDolbyVisionMetadata: Bool { av_frame_get_side_data(pointer, AV_FRAME_DATA_DOVI_METADATA) != nil }
    /// Nits: the brightest pixel by the content light level, else by the mastering display.
    package var peakLuminance: Double? {
        if let side = av_frame_get_side_data(pointer, AV_FRAME_DATA_CONTENT_LIGHT_LEVEL) {
            let level = side.pointee.data.withMemoryRebound(to: AVContentLightMetadata.self, capacity: 1) {
                $0.pointee.MaxCLL
            }
            if level > 0 { return Double(level) }
        }
        if let side = av_frame_get_side_data(pointer, AV_FRAME_DATA_MASTERING_DISPLAY_METADATA) {
            let display = side.pointee.data.withMemoryRebound(to: AVMasteringDisplayMetadata.self, capacity: 1) {
                $0.pointee
            }
            if display.has_luminance != 0, display.max_luminance.num > 0 { return av_q2d(display.max_luminance) }
        }
        return nil
    }
    /// What a filter wrote on the frame.
    package func metadata(_ key: String) -> String? {
        guard let entry = av_dict_get(pointer.pointee.metadata, key, nil, 0) else { return nil }
        return String(cString: entry.pointee.value)
    }
    /// Lets the encoder choose the picture type instead of repeating the source's.
    package func set(forcesKeyframe: Bool) {
        pointer.pointee.pict_type = forcesKeyframe ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE
    }

    /// One plane's rows, for reading and writing; `stride` is bytes from row to row.
    package func withPlane<Result>(
        _ plane: Int, _ body: (_ first: UnsafeMutablePointer<UInt8>, _ stride: Int) -> Result
    ) -> Result? {
        let data = pointer.pointee.data, strides = pointer.pointee.linesize
        let planes = [data.0, data.1, data.2, data.3], lengths = [strides.0, strides.1, strides.2, strides.3]
        guard planes.indices.contains(plane), let first = planes[plane] else { return nil }
        return body(first, Int(lengths[plane]))
    }
}
