import CFFmpeg
package import Vocabulary

/// Owns one `AVPacket`.
package struct Packet: ~Copyable {
    let pointer: UnsafeMutablePointer<AVPacket>

    private init(owning pointer: UnsafeMutablePointer<AVPacket>) { self.pointer = pointer }
    deinit {
        var pointer: UnsafeMutablePointer<AVPacket>? = pointer
        av_packet_free(&pointer)
    }
    package static func allocate() throws(Failure) -> Packet {
        Packet(owning: try allocated("av_packet_alloc", av_packet_alloc()))
    }

    package var stream: Int {
        get { Int(pointer.pointee.stream_index) }
        nonmutating set { pointer.pointee.stream_index = Int32(newValue) }
    }
    package var pts: Int64? {
        get { timestamp(pointer.pointee.pts) }
        nonmutating set { pointer.pointee.pts = newValue ?? rushes_no_timestamp }
    }
    package var dts: Int64? {
        get { timestamp(pointer.pointee.dts) }
        nonmutating set { pointer.pointee.dts = newValue ?? rushes_no_timestamp }
    }
    package var duration: Int64 {
        get { FFmpeg.duration(pointer.pointee.duration) }
        nonmutating set { pointer.pointee.duration = newValue }
    }
    package var bytes: Int { Int(pointer.pointee.size) }
    package var isKey: Bool { pointer.pointee.flags & AV_PKT_FLAG_KEY != 0 }
    /// Needed for decoding, but outside the edit list.
    package var isDiscarded: Bool { pointer.pointee.flags & AV_PKT_FLAG_DISCARD != 0 }
    package var isCorrupt: Bool { pointer.pointee.flags & AV_PKT_FLAG_CORRUPT != 0 }

    /// Whether a picture is to be seen for it. VP8 and VP9 code some only for others to refer to (RFC 6386, 9.1; VP9 Bitstream Specification, 6.2),
    /// and a packet of nothing says that the picture before it goes on.
    package func isShown(codec: String?) -> Bool {
        withBytes { bytes in
            guard let first = bytes.first, let last = bytes.last else { return false }
            switch codec {
            case "vp8": return first & 0x10 != 0
            case "vp9":
                // Several pictures with an index of them at the end: the last one is shown.
                if last & 0xE0 == 0xC0 { return true }
                let isProfile3 = first & 0x30 == 0x30
                let showsExisting: UInt8 = isProfile3 ? 0x04 : 0x08, shows: UInt8 = isProfile3 ? 0x01 : 0x02
                return first & (showsExisting | shows) != 0
            default: return true
            }
        }
    }

    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        body(UnsafeRawBufferPointer(start: pointer.pointee.data, count: bytes))
    }
    /// Lets go of what it held and shares the other's bytes.
    package func takeReference(to other: borrowing Packet) throws(Failure) {
        av_packet_unref(pointer)
        try check("av_packet_ref", av_packet_ref(pointer, other.pointer))
    }
    /// Narrows a packet to some of its bytes, without copying.
    /// - Parameters:
    ///   - offset, count: inside the packet.
    package func narrow(to offset: Int, count: Int) {
        precondition(offset >= 0 && count > 0 && offset + count <= bytes, "\(offset)+\(count) of \(bytes)")
        pointer.pointee.data += offset
        pointer.pointee.size = Int32(count)
    }
    package func unreference() { av_packet_unref(pointer) }
    package func rescale(from source: Rational, to target: Rational) {
        av_packet_rescale_ts(pointer, source.c, target.c)
    }
}
