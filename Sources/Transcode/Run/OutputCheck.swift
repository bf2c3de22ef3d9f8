import FFmpeg
import Vocabulary

/// Reads a finished rendition back before it counts.
enum OutputCheck {
    /// Seconds by which the read length may differ from the written one.
    static let slack = 0.1

    struct Expected {
        var width: Int
        var height: Int
        var frames: Int
        /// Seconds from 0 to the end of the last picture.
        var end: Double
        /// Seconds from 0 to the end of the sound; nil without sound.
        var soundEnd: Double?
        /// Encoded here, so that its tags are known.
        var isOurs: Bool
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
        guard streams.count == (expected.soundEnd != nil ? 2 : 1) else { throw invalid("\(streams.count) tracks") }
        guard video.width == expected.width, video.height == expected.height else {
            throw invalid("\(video.width)x\(video.height) instead of \(expected.width)x\(expected.height)")
        }
        let frames = demuxer.indexCount(stream: video.index)
        guard frames == expected.frames else { throw invalid("\(frames) frames instead of \(expected.frames)") }
        let start = video.start.map(video.timeBase.seconds) ?? 0
        let end = start + (video.duration.map(video.timeBase.seconds) ?? 0)
        guard abs(end - expected.end) <= slack else { throw invalid("ends at \(end) s instead of \(expected.end) s") }
        if let soundEnd = expected.soundEnd {
            guard let sound = streams.first(where: { $0.kind == .audio }), sound.codec == "aac" else {
                throw invalid("no AAC track")
            }
            let end = sound.timeBase.seconds((sound.start ?? 0) + (sound.duration ?? 0))
            guard abs(end - soundEnd) <= slack else { throw invalid("sound ends at \(end) s instead of \(soundEnd) s") }
        }
        if expected.isOurs { try checkTags(video) }
        let format = try firstPictureFormat(demuxer, video)
        guard format.name == "yuv420p" || !expected.isOurs else { throw invalid("\(format.name ?? "?")") }
    }

    /// What a player goes by must say what the pixels are.
    private static func checkTags(_ video: StreamDescription) throws(Failure) {
        let tags = [video.color.primaries, video.color.transfer, video.color.matrix]
        guard tags == ["bt709", "bt709", "bt709"], video.color.range == .limited else {
            throw invalid("tagged \(tags), range \(String(describing: video.color.range))")
        }
        let isSquare = !video.sampleAspect.isKnown || video.sampleAspect.num == video.sampleAspect.den
        guard isSquare, video.displayMatrix == nil || Orientation(matrix: video.displayMatrix ?? []) == .upright else {
            throw invalid("turned, or with oblong pixels")
        }
    }

    /// Of the decoded picture: the demuxer leaves it open where the first picture comes many seconds after the first sound.
    private static func firstPictureFormat(_ demuxer: borrowing Demuxer, _ video: StreamDescription) throws(Failure)
        -> PixelFormat
    {
        // The decoder counts whole macroblocks.
        let margin = 64
        let pixelCountMax = (video.width + margin) * (video.height + margin)
        let decoder = try Decoder.open(demuxer, stream: video.index, threads: 1, pixelCountMax: pixelCountMax)
        let packet = try Packet.allocate(), frame = try Frame.allocate()
        // Of the pictures' track; the file's end bounds what lies between them.
        let packetMax = 256
        var packetCount = 0
        while packetCount < packetMax {
            switch try decoder.receive(into: frame) {
            case .frame: return frame.pixelFormat
            case .damaged, .end: throw invalid("the first picture does not decode")
            case .needsInput:
                guard try demuxer.read(into: packet) else {
                    try decoder.finish()
                    continue
                }
                if packet.stream == video.index {
                    _ = try decoder.send(packet)
                    packetCount += 1
                }
                packet.unreference()
            }
        }
        throw invalid("the first picture does not decode")
    }

    private static func invalid(_ what: String) -> Failure {
        Failure(.outputInvalid, "The video that was made did not pass its check; try again.", detail: what)
    }
}
