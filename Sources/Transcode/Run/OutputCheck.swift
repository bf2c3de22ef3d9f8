import FFmpeg
import Vocabulary

/// Reads a finished rendition back before it counts.
enum OutputCheck {
    /// Seconds by which the read length may differ from the written one.
    static let slack = 0.1

    struct Expected {
        var width: Int
        var height: Int
        /// Nil where they were not counted.
        var frames: Int?
        /// Seconds from 0 to the end of the last picture.
        var end: Double
        var hasSound: Bool
    }

    /// - Throws: `output-invalid` when the file is not what was meant.
    static func verify(_ descriptor: Int32, _ expected: Expected) throws(Failure) {
        let demuxer: Demuxer
        do { demuxer = try Demuxer.open(descriptor) } catch { throw invalid("does not open: \(error.detail ?? "")") }
        let source = try SourceBytes(descriptor)
        guard try ISOBoxes.read(source).isFastStart else { throw invalid("the index is not in front") }
        let streams = demuxer.streams
        guard let video = streams.first(where: { $0.kind == .video }), video.codec == "h264" else {
            throw invalid("no H.264 track")
        }
        guard streams.count == (expected.hasSound ? 2 : 1) else { throw invalid("\(streams.count) tracks") }
        guard video.width == expected.width, video.height == expected.height else {
            throw invalid("\(video.width)x\(video.height) instead of \(expected.width)x\(expected.height)")
        }
        if let frames = expected.frames, demuxer.indexCount(stream: video.index) != frames {
            throw invalid("\(demuxer.indexCount(stream: video.index)) frames instead of \(frames)")
        }
        let start = video.start.map(video.timeBase.seconds) ?? 0
        let end = start + (video.duration.map(video.timeBase.seconds) ?? 0)
        guard abs(end - expected.end) <= slack else { throw invalid("ends at \(end) s instead of \(expected.end) s") }
        try decodeFirstFrame(demuxer, video)
    }

    private static func decodeFirstFrame(_ demuxer: borrowing Demuxer, _ video: StreamDescription) throws(Failure) {
        // The decoder counts whole macroblocks.
        let margin = 64
        let pixelCountMax = (video.width + margin) * (video.height + margin)
        let decoder = try Decoder.open(demuxer, stream: video.index, threads: 1, pixelCountMax: pixelCountMax)
        let packet = try Packet.allocate(), frame = try Frame.allocate()
        let packetMax = 256
        for _ in 0..<packetMax {
            switch try decoder.receive(into: frame) {
            case .frame: return
            case .damaged, .end: throw invalid("the first picture does not decode")
            case .needsInput:
                guard try demuxer.read(into: packet) else {
                    try decoder.finish()
                    continue
                }
                if packet.stream == video.index { _ = try decoder.send(packet) }
                packet.unreference()
            }
        }
        throw invalid("the first picture does not decode")
    }

    private static func invalid(_ what: String) -> Failure {
        Failure(.outputInvalid, "The video that was made did not pass its check; it will be made again.", detail: what)
    }
}
