import FFmpeg
public import Vocabulary

/// Stills of a video, found by jumping instead of decoding everything.
public enum Poster {
    /// - Parameters:
    ///   - input: a readable, seekable descriptor of a regular file; its position is neither used nor moved.
    ///   - settings: one JPEG a size, named by `ThumbSettings.name(of:)`.
    /// - Returns: a report with a reason for a file that cannot be used.
    /// - Throws: only for faults of the disk, of the sink or of Rushes itself.
    public static func make(
        _ input: Int32, file: String, settings: ThumbSettings, limits: MediaLimits, sink: any OutputSink
    ) throws(Failure) -> ThumbReport {
        let survey: Survey
        switch try Survey.make(input, limits: limits) {
        case .rejected(let reason): return ThumbReport(outcome: .reject, reason: reason)
        case .surveyed(let found): survey = found
        }
        if let reason = survey.reason {
            return ThumbReport(outcome: .reject, warnings: survey.warnings, reason: reason)
        }
        guard let video = survey.video else {
            return ThumbReport(outcome: .reject, warnings: survey.warnings, reason: OpenVerdict.noVideo)
        }
        let demuxer = try Demuxer.open(input)
        let frame = try Frame.allocate()
        guard try StillSearch.best(input, demuxer, video: video, limits: limits, into: frame) else {
            return ThumbReport(outcome: .reject, warnings: survey.warnings, reason: OpenVerdict.nothingDecodes)
        }
        var largest: (width: Int, height: Int)?
        for size in settings.sizes {
            let made = try StillRenderer.write(
                frame, of: video, longSide: size, quality: settings.quality, name: ThumbSettings.name(of: size),
                role: .thumbnail, sink: sink)
            if made.width > largest?.width ?? 0 { largest = made }
        }
        return ThumbReport(outcome: .made, width: largest?.width, height: largest?.height, warnings: survey.warnings)
    }
}

/// Looks for a good frame at a few places.
enum StillSearch {
    /// Frames decoded after a jump on the way to the wanted place.
    static let frameMax = 48
    /// Packets read at one place before giving it up.
    static let packetMax = 2000

    /// What came of looking at one place.
    private enum Found {
        case nothing
        /// Made up in part by the decoder, where something that it refers to is missing.
        case concealed
        case picture
    }

    /// - Returns: false when nothing decodes.
    static func best(
        _ input: Int32, _ demuxer: borrowing Demuxer, video: VideoFacts, limits: MediaLimits, into best: borrowing Frame
    ) throws(Failure) -> Bool {
        let decoder = try Decoder.open(demuxer, stream: video.stream, threads: 1, pixelCountMax: limits.pixelCountMax)
        demuxer.keepOnly([video.stream])
        let candidate = try Frame.allocate()
        var bestScore: Double?
        for place in PosterPolicy.places {
            let time = video.start + place * (video.end - video.start)
            let found =
                place > 0
                ? try find(demuxer, decoder, video, at: time, into: candidate)
                : try beginning(input, video, limits, until: time, needsKeyframe: true, into: candidate)
            guard found == .picture else { continue }
            let look = try StillRenderer.look(candidate)
            let score = PosterPolicy.score(look, place: place)
            if score > bestScore ?? -1 {
                bestScore = score
                try best.takeReference(to: candidate)
            }
            if PosterPolicy.isGood(look), look.sharpness >= PosterPolicy.sharpnessMin { break }
        }
        if bestScore != nil { return true }
        // Some streams have no key frame that is called one, or no whole picture: what plays from the beginning remains.
        return try beginning(input, video, limits, until: video.end, needsKeyframe: false, into: best) != .nothing
    }

    /// Read anew: streams without an index cannot be wound back all the way.
    private static func beginning(
        _ input: Int32, _ video: VideoFacts, _ limits: MediaLimits, until end: Double, needsKeyframe: Bool,
        into found: borrowing Frame
    ) throws(Failure) -> Found {
        let demuxer = try Demuxer.open(input)
        let decoder = try Decoder.open(demuxer, stream: video.stream, threads: 1, pixelCountMax: limits.pixelCountMax)
        demuxer.keepOnly([video.stream])
        return try decode(
            demuxer, decoder, video, until: video.timeBase.ticks(end), needsKeyframe: needsKeyframe, into: found)
    }

    /// The frame at a time, or the nearest before it that can be reached within the bounds.
    private static func find(
        _ demuxer: borrowing Demuxer, _ decoder: borrowing Decoder, _ video: VideoFacts, at time: Double,
        into found: borrowing Frame
    ) throws(Failure) -> Found {
        let target = video.timeBase.ticks(time)
        do { try demuxer.seek(stream: video.stream, to: target) } catch {
            // Without an index only the beginning can be reached, and only as long as nothing was read.
            if error.code == .sourceUnreadable { throw error }
        }
        decoder.flush()
        return try decode(demuxer, decoder, video, until: target, needsKeyframe: true, into: found)
    }

    /// - Parameter needsKeyframe: after a jump; decoders make up grey for what they never saw.
    /// - Returns: the best that decodes within the bounds.
    private static func decode(
        _ demuxer: borrowing Demuxer, _ decoder: borrowing Decoder, _ video: VideoFacts, until target: Int64,
        needsKeyframe: Bool, into found: borrowing Frame
    ) throws(Failure) -> Found {
        let packet = try Packet.allocate(), frame = try Frame.allocate()
        var result = Found.nothing
        var awaitsKeyframe = needsKeyframe
        var packets = 0, frames = 0
        var isFinishing = false
        while packets < packetMax {
            switch try decoder.receive(into: frame) {
            case .end: return result
            case .damaged: continue
            case .frame:
                frames += 1
                if !frame.isDamaged || result == .nothing {
                    try found.takeReference(to: frame)
                    result = frame.isDamaged ? .concealed : .picture
                }
                let isThere = result == .picture && (frame.bestTimestamp ?? target) >= target
                if frames >= frameMax || isThere { return result }
            case .needsInput:
                packets += 1
                if !isFinishing, try demuxer.readWhatCanBeRead(into: packet) {
                    if packet.stream == video.stream {
                        if packet.isKey { awaitsKeyframe = false }
                        if !awaitsKeyframe { _ = try decoder.send(packet) }
                    }
                    packet.unreference()
                } else {
                    isFinishing = true
                    try decoder.finish()
                }
            }
        }
        return result
    }
}
