import CFFmpeg
package import Vocabulary

/// A decoded still: 8 bits a channel, R, G, B, A, rows from the top without gaps. Alpha is straight; without alpha it is 255.
package struct RGBAImage: Sendable, Equatable {
    package var width: Int
    package var height: Int
    package var pixels: [UInt8]
    package var hasAlpha: Bool

    package init(width: Int, height: Int, pixels: [UInt8], hasAlpha: Bool) {
        self.width = width
        self.height = height
        self.pixels = pixels
        self.hasAlpha = hasAlpha
    }
}

/// Decodes a file of one picture, JPEG 2000 above all: other formats have libraries of their own.
package enum PictureDecoder {
    /// A damaged tail must not keep the first picture from being found, nor a stream of damage the decoder busy for ever.
    static let packetMax = 64

    /// - Parameter pixelCountMax: a larger picture is not decoded; whoever has to tell it from a damaged one has read its header before.
    /// - Throws: `unsupported-codec`, `truncated` when nothing decodes, `corrupt`.
    package static func decodeFirstFrame(_ descriptor: Int32, pixelCountMax: Int, threads: Int = 1) throws(Failure)
        -> RGBAImage
    {
        let demuxer = try Demuxer.open(descriptor, for: .picture)
        let stream = try picture(of: demuxer)
        let decoder = try Decoder.open(demuxer, stream: stream.index, threads: threads, pixelCountMax: pixelCountMax)
        let packet = try Packet.allocate(), frame = try Frame.allocate()
        var remaining = packetMax
        var hasFinished = false
        while true {
            switch try decoder.receive(into: frame) {
            case .frame: return try image(of: frame)
            case .end:
                throw Failure(
                    .truncated, "The picture is cut off before anything can be shown.", detail: LibraryLog.last)
            case .damaged: continue
            case .needsInput:
                remaining -= 1
                guard remaining > 0 else { throw Failure(.corrupt, "The picture is damaged.", detail: LibraryLog.last) }
                if !hasFinished, try demuxer.read(into: packet) {
                    if packet.stream == stream.index { _ = try decoder.send(packet) }
                    packet.unreference()
                } else {
                    hasFinished = true
                    try decoder.finish()
                }
            }
        }
    }

    private static func picture(of demuxer: borrowing Demuxer) throws(Failure) -> StreamDescription {
        guard let stream = demuxer.streams.first(where: { $0.kind == .video }) else {
            throw Failure(.notMedia, "This is not a picture.", detail: demuxer.formatName)
        }
        return stream
    }

    /// Any decoded picture as RGBA.
    package static func image(of frame: borrowing Frame, matrix: String? = nil) throws(Failure) -> RGBAImage {
        let width = frame.width, height = frame.height
        let scaler = try Scaler.make(
            from: frame, width: width, height: height, format: PixelFormat(AV_PIX_FMT_RGBA), matrix: matrix)
        let converted = try scaler.scale(frame)
        let rowBytes = width * 4
        let pixels = [UInt8](unsafeUninitializedCapacity: rowBytes * height) { buffer, count in
            converted.withPlane(0) { first, stride in
                for row in 0..<height {
                    guard let target = buffer.baseAddress else { continue }
                    (target + row * rowBytes).update(from: first + row * stride, count: rowBytes)
                }
            }
            count = rowBytes * height
        }
        return RGBAImage(
            width: width, height: height, pixels: pixels, hasAlpha: frame.pixelFormat.hasAlpha)
    }
}
