import FFmpeg
import Vocabulary

/// The first frame of an image sequence that has no still item (HEIF's and AVIF's tracks are those of a film).
enum SequenceDecoder {
    /// Packets until the first frame must have come.
    static let packetCountMax = 64

    static func firstFrame(_ input: PictureInput, limits: MediaLimits, budget: MemoryBudget) throws(Failure) -> Raster {
        let image: RGBAImage
        do throws(Failure) { image = try decode(input.descriptor, limits: limits) } catch {
            throw JP2File.verdict(error)
        }
        let raster = try Raster(
            size: PixelSize(width: image.width, height: image.height), layout: .rgba, depth: 8, budget: budget)
        raster.pixels.copyBytes(from: image.pixels)
        return raster
    }

    private static func decode(_ descriptor: Int32, limits: MediaLimits) throws(Failure) -> RGBAImage {
        let demuxer = try Demuxer.open(descriptor)
        guard let stream = demuxer.streams.first(where: { $0.kind == .video }) else {
            throw .corrupt("no picture track")
        }
        let decoder = try Decoder.open(
            demuxer, stream: stream.index, threads: 1, pixelCountMax: limits.pixelCountMax)
        let packet = try Packet.allocate()
        let frame = try Frame.allocate()
        var hasFinished = false
        for _ in 0..<packetCountMax {
            switch try decoder.receive(into: frame) {
            case .frame: return try PictureDecoder.image(of: frame, matrix: stream.color.matrix)
            case .end: throw .truncated("no frame")
            case .damaged: continue
            case .needsInput:
                if !hasFinished, try demuxer.read(into: packet) {
                    if packet.stream == stream.index { _ = try decoder.send(packet) }
                    packet.unreference()
                } else {
                    hasFinished = true
                    try decoder.finish()
                }
            }
        }
        throw .corrupt("no frame in \(packetCountMax) packets")
    }
}
