import CFFmpeg
package import Vocabulary

/// Owns an MP4 being written to a descriptor, its index moved to the front at the end.
package struct Muxer: ~Copyable {
    private let pointer: UnsafeMutablePointer<AVFormatContext>
    private let output: DescriptorOutput
    private let context: UnsafeMutablePointer<AVIOContext>

    private init(
        owning pointer: UnsafeMutablePointer<AVFormatContext>, _ output: DescriptorOutput,
        _ context: UnsafeMutablePointer<AVIOContext>
    ) {
        self.pointer = pointer
        self.output = output
        self.context = context
    }
    deinit {
        avformat_free_context(pointer)
        freeIOContext(context)
    }

    /// - Parameter descriptor: open for reading and writing, empty, seekable.
    package static func mp4(_ descriptor: Int32, bytesMax: Int) throws(Failure) -> Muxer {
        LibraryLog.install()
        let output = DescriptorOutput(descriptor, bytesMax: bytesMax)
        let context = try output.makeContext()
        var pointer: UnsafeMutablePointer<AVFormatContext>?
        let code = avformat_alloc_output_context2(&pointer, nil, "mp4", nil)
        guard code >= 0, let format = pointer else {
            freeIOContext(context)
            throw failure("avformat_alloc_output_context2", code)
        }
        format.pointee.pb = context
        format.pointee.flags |= AVFMT_FLAG_CUSTOM_IO
        format.pointee.opaque = Unmanaged.passUnretained(output).toOpaque()
        format.pointee.io_open = reopenOutput
        format.pointee.io_close2 = closeReopened
        return Muxer(owning: format, output, context)
    }

    /// - Returns: the new stream's number.
    package func addStream(from encoder: borrowing Encoder) throws(Failure) -> Int {
        let stream = try allocated("avformat_new_stream", avformat_new_stream(pointer, nil))
        try check(
            "avcodec_parameters_from_context", avcodec_parameters_from_context(stream.pointee.codecpar, encoder.context)
        )
        stream.pointee.time_base = encoder.context.pointee.time_base
        stream.pointee.avg_frame_rate = encoder.context.pointee.framerate
        return Int(stream.pointee.index)
    }
    /// A stream whose packets are copied.
    package func addStream(copying index: Int, of demuxer: borrowing Demuxer) throws(Failure) -> Int {
        let stream = try allocated("avformat_new_stream", avformat_new_stream(pointer, nil))
        let source = demuxer.raw(index)
        try check("avcodec_parameters_copy", avcodec_parameters_copy(stream.pointee.codecpar, source.pointee.codecpar))
        // MP4 chooses its own tag for the codec.
        stream.pointee.codecpar.pointee.codec_tag = 0
        stream.pointee.time_base = source.pointee.time_base
        stream.pointee.avg_frame_rate = source.pointee.avg_frame_rate
        return Int(stream.pointee.index)
    }

    package func writeHeader() throws(Failure) {
        var options: OpaquePointer?
        defer { av_dict_free(&options) }
        av_dict_set(&options, "movflags", "+faststart", 0)
        let code = avformat_write_header(pointer, &options)
        try output.throwFault()
        try check("avformat_write_header", code)
    }

    /// The muxer takes the packet's contents.
    /// - Parameter timeBase: of the packet's times.
    package func write(_ packet: borrowing Packet, stream index: Int, timeBase: Rational) throws(Failure) {
        guard let stream = pointer.pointee.streams[index] else {
            preconditionFailure("stream \(index) was never added")
        }
        packet.rescale(from: timeBase, to: Rational(stream.pointee.time_base))
        packet.stream = index
        packet.pointer.pointee.pos = -1
        let code = av_interleaved_write_frame(pointer, packet.pointer)
        try output.throwFault()
        try check("av_interleaved_write_frame", code)
    }

    /// Writes the index and moves it to the front.
    package func finish() throws(Failure) {
        let code = av_write_trailer(pointer)
        avio_flush(context)
        try output.throwFault()
        try check("av_write_trailer", code)
    }
}
