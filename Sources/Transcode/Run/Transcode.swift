import FFmpeg
import Glibc
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
        let making = Making(input: input, settings: settings, limits: limits, sink: sink)
        switch plan.work {
        case .copy(let name): return try making.copy(name, survey, video, plan)
        case .encode(let encode): return try making.encode(encode, survey, video, plan, opened: [:])
        case .nothing:
            try making.poster(video, plan)
            return TranscodeReport(outcome: .encoded, duration: survey.duration, segments: 0, warnings: survey.warnings)
        }
    }
}

/// What every way of making outputs works with.
private struct Making {
    let input: Int32
    let settings: TranscodeSettings
    let limits: MediaLimits
    let sink: any OutputSink

    func copy(_ name: OutputName, _ survey: Survey, _ video: VideoFacts, _ plan: TranscodePlan) throws(Failure)
        -> TranscodeReport
    {
        let descriptor = try sink.open(name)
        guard try isCopied(to: descriptor, survey, video, plan) else {
            // The container promised more than the samples keep. The encoder mends what can be mended. What is cut here is a draft: the
            // parent makes it durable once it is sealed.
            guard ftruncate(descriptor, 0) == 0 else {
                throw Failure(
                    .ioError, "The output could not be written; check the disk.", detail: "ftruncate: \(errno)")
            }
            var survey = survey
            survey.isDamaged = true
            let plan = TranscodePlan(survey, video, settings: settings)
            guard case .encode(let encode) = plan.work else { preconditionFailure("a damaged source is never copied") }
            return try self.encode(encode, survey, video, plan, opened: [name: descriptor])
        }
        try sink.seal(
            name, role: .rendition, contentType: "video/mp4", width: video.width, height: video.height,
            duration: survey.duration)
        try poster(video, plan)
        return TranscodeReport(
            outcome: .remuxed, width: video.width, height: video.height, duration: survey.duration,
            frames: video.frames,
            warnings: survey.warnings)
    }

    private func isCopied(
        to descriptor: Int32, _ survey: Survey, _ video: VideoFacts, _ plan: TranscodePlan
    ) throws(Failure) -> Bool {
        let demuxer = try Demuxer.open(input)
        do {
            return try Remux.run(demuxer, survey, video, plan: plan, into: descriptor, limits: limits, sink: sink)
        } catch {
            switch error.code {
            case .outputInvalid, .corrupt, .internalError: return false
            default: throw error
            }
        }
    }

    func encode(
        _ encode: TranscodePlan.Encode, _ survey: Survey, _ video: VideoFacts, _ plan: TranscodePlan,
        opened: [OutputName: Int32]
    ) throws(Failure) -> TranscodeReport {
        let demuxer = try Demuxer.open(input)
        let run = try EncodeRun.open(
            demuxer, survey, video, plan: plan, encode: encode, settings, limits, sink: sink, opened: opened)
        return try run.run(demuxer)
    }

    func poster(_ video: VideoFacts, _ plan: TranscodePlan) throws(Failure) {
        guard let size = plan.posterSize else { return }
        let demuxer = try Demuxer.open(input)
        let frame = try Frame.allocate()
        guard try StillSearch.best(input, demuxer, video: video, limits: limits, into: frame) else { return }
        _ = try StillRenderer.write(
            frame, of: video, longSide: size, quality: EncodeRun.posterQuality, threads: settings.threads,
            name: .poster,
            role: .poster, sink: sink)
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
