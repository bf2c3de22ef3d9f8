import CFFmpeg
package import Vocabulary

/// Owns one opened decoder.
package struct Decoder: ~Copyable {
    /// A decoder that says "damaged" so often in a row, without anything given to it in between, will never say anything else.
    static let damagedInRowMax = 256

    private let pointer: UnsafeMutablePointer<AVCodecContext>
    private let history = History()

    private final class History {
        var damagedInRow = 0
        var hasRefused = false
    }

    /// How decoding one packet went.
    package enum Outcome: Sendable {
        case accepted
        /// The packet is damaged and was dropped; the decoder goes on.
        case damaged
    }

    private init(owning pointer: UnsafeMutablePointer<AVCodecContext>) { self.pointer = pointer }
    deinit {
        var pointer: UnsafeMutablePointer<AVCodecContext>? = pointer
        avcodec_free_context(&pointer)
    }

    /// - Parameters:
    ///   - threads: 0 lets the library choose.
    ///   - pixelCountMax: larger pictures are refused by the decoder itself.
    /// - Throws: `unsupported-codec` when there is no such decoder here.
    package static func open(
        _ demuxer: borrowing Demuxer, stream: Int, threads: Int, pixelCountMax: Int
    ) throws(Failure) -> Decoder {
        let stream = demuxer.raw(stream)
        guard let codec = avcodec_find_decoder(stream.pointee.codecpar.pointee.codec_id) else {
            throw failure("avcodec_find_decoder", rushes_error_no_decoder)
        }
        let decoder = Decoder(owning: try allocated("avcodec_alloc_context3", avcodec_alloc_context3(codec)))
        let context = decoder.pointer
        try check("avcodec_parameters_to_context", avcodec_parameters_to_context(context, stream.pointee.codecpar))
        context.pointee.pkt_timebase = stream.pointee.time_base
        context.pointee.framerate = stream.pointee.avg_frame_rate
        // The library's own default is 1.
        context.pointee.thread_count = Int32(threads)
        context.pointee.max_pixels = Int64(pixelCountMax)
        try check("avcodec_open2", avcodec_open2(context, codec, nil))
        return decoder
    }

    package func send(_ packet: borrowing Packet) throws(Failure) -> Outcome {
        // Some containers store "the same picture again" as nothing, which the library would take for the end.
        guard packet.bytes > 0 else { return .accepted }
        return try accept(avcodec_send_packet(pointer, packet.pointer))
    }
    /// Nothing more will come: the decoder gives out what it holds back.
    package func finish() throws(Failure) { _ = try accept(avcodec_send_packet(pointer, nil)) }
    /// Forgets everything before a seek.
    package func flush() { avcodec_flush_buffers(pointer) }

    /// Everything else is dropped without being decoded.
    package func skipAllButKeyframes() { pointer.pointee.skip_frame = AVDISCARD_NONKEY }

    private func accept(_ code: Int32) throws(Failure) -> Outcome {
        if code >= 0 || code == rushes_error_end { return .accepted }
        if code == rushes_error(ENOMEM) { throw failure("avcodec_send_packet", code) }
        note(code)
        return .damaged
    }

    /// The stream uses something that the decoder knows of and cannot do.
    package var hasRefused: Bool { history.hasRefused }

    private func note(_ code: Int32) {
        if code == rushes_error_patch_welcome || code == rushes_error(ENOSYS) { history.hasRefused = true }
    }

    package enum Received: Sendable { case frame, needsInput, damaged, end }

    /// - Returns: `.damaged` when a packet accepted before turned out to be broken; asking again goes on.
    package func receive(into frame: borrowing Frame) throws(Failure) -> Received {
        let code = avcodec_receive_frame(pointer, frame.pointer)
        if code >= 0 || code == rushes_error_again { history.damagedInRow = 0 }
        switch code {
        case 0...: return .frame
        case rushes_error_again: return .needsInput
        case rushes_error_end: return .end
        case rushes_error(ENOMEM): throw failure("avcodec_receive_frame", code)
        default:
            note(code)
            history.damagedInRow += 1
            return history.damagedInRow > Self.damagedInRowMax ? .end : .damaged
        }
    }
}
