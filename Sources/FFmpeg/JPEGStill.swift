import CFFmpeg
package import Vocabulary

/// Writes one picture as a JPEG without metadata.
package enum JPEGStill {
    /// - Parameters:
    ///   - frame: full-range 4:2:0 or 4:4:4 in BT.601.
    ///   - quality: 1 to 100.
    package static func encode(_ frame: borrowing Frame, quality: Int) throws(Failure) -> [UInt8] {
        // MJPEG's quantiser runs the other way: 2 is hardly lossy, 31 is the worst.
        let scale = max(2, min(31, 2 + (100 - quality) / 6))
        let isSubsampled = frame.pixelFormat.chromaShift.x > 0
        let format = isSubsampled ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUVJ444P
        let encoder = try Encoder.jpeg(
            width: frame.width, height: frame.height, format: PixelFormat(format), scale: scale)
        let still = try frame.reference()
        still.pointer.pointee.format = format.rawValue
        still.pointer.pointee.color_range = AVCOL_RANGE_JPEG
        still.pointer.pointee.quality = Int32(scale) * FF_QP2LAMBDA
        still.set(forcesKeyframe: false)
        still.pts = 0
        try encoder.send(still)
        try encoder.finish()
        let packet = try Packet.allocate()
        guard try encoder.receive(into: packet) else {
            throw Failure(.internalError, "The still could not be written.", detail: "mjpeg gave no packet")
        }
        return packet.withBytes { [UInt8]($0) }
    }
}
