import FFmpeg
public import Vocabulary

/// Makes a video's renditions and poster from one decode.
public enum Transcode {
    /// - Parameters:
    ///   - input: a readable, seekable descriptor of a regular file; its position is neither used nor moved.
    ///   - settings: which outputs; without a rendition among them no video is encoded.
    ///   - sink: opens and seals the outputs. What is opened and not sealed when this returns is to be dropped.
    /// - Returns: a report with a reason for a file that cannot be used.
    /// - Throws: faults of the disk, of the sink or of Rushes itself, and `over-budget`.
    public static func run(
        _ input: Int32, file: String, settings: TranscodeSettings, limits: MediaLimits, sink: any OutputSink
    ) throws(Failure) -> TranscodeReport {
        let survey: Survey
        switch try Survey.make(input, limits: limits) {
        case .rejected(let reason): return TranscodeReport(outcome: .reject, segments: 0, reason: reason)
        case .surveyed(let found): survey = found
        }
        guard survey.reason == nil, let video = survey.video else {
            let reason = survey.reason ?? OpenVerdict.noVideo
            return TranscodeReport(outcome: .reject, segments: 0, warnings: survey.warnings, reason: reason)
        }
        try DecodeBudget.admit(video, limits: limits)
        let plan = TranscodePlan(survey, video, settings: settings)
        let demuxer = try Demuxer.open(input)
        switch plan.work {
        case .copy(let name):
            try Remux.run(demuxer, survey, video, plan: plan, name: name, limits: limits, sink: sink)
            try poster(input, video, plan, settings, limits, sink)
            return TranscodeReport(
                outcome: .remuxed, width: video.width, height: video.height, duration: survey.duration,
                frames: video.frames,
                warnings: survey.warnings)
        case .nothing:
            try poster(input, video, plan, settings, limits, sink)
            return TranscodeReport(outcome: .encoded, duration: survey.duration, segments: 0, warnings: survey.warnings)
        case .encode(let encode):
            let run = try EncodeRun.open(
                demuxer, survey, video, plan: plan, encode: encode, settings, limits, sink: sink)
            return try run.run(demuxer)
        }
    }

    private static func poster(
        _ input: Int32, _ video: VideoFacts, _ plan: TranscodePlan, _ settings: TranscodeSettings,
        _ limits: MediaLimits,
        _ sink: any OutputSink
    ) throws(Failure) {
        guard let size = plan.posterSize else { return }
        let demuxer = try Demuxer.open(input)
        let frame = try Frame.allocate()
        guard try StillSearch.best(input, demuxer, video: video, limits: limits, into: frame) else { return }
        _ = try StillRenderer.write(
            frame, of: video, longSide: size, quality: EncodeRun.posterQuality, threads: settings.threads,
            name: .poster, role: .poster,
            sink: sink)
    }
}

/// Refuses a decode that would take more memory than is allowed, before it starts.
enum DecodeBudget {
    /// Whole pictures alive at once: references, reordering, frame threads, filters and the encoder's lookahead of small ones.
    static let pictureCount = 24

    static func admit(_ video: VideoFacts, limits: MediaLimits) throws(Failure) {
        let picture = video.width * video.height * max(video.pixelFormat.bitsPerPixel, 12) / 8
        let (bytes, overflow) = picture.multipliedReportingOverflow(by: pictureCount)
        guard !overflow, bytes <= limits.memoryBytes else {
            throw Failure(
                .overBudget, "Decoding this video needs more memory than is allowed; allow more with --memory.",
                detail: "\(video.width)x\(video.height) needs about \(bytes) bytes")
        }
    }
}
