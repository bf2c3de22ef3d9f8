import FFmpeg
public import Vocabulary

/// Makes a video's renditions and stills from one decode.
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
        let making = Making(input: input, settings: settings, limits: limits, outputs: OutputFiles(sink))
        return try making.run(survey, video)
    }
}

/// What every way of making outputs works with.
private struct Making {
    let input: Int32
    let settings: TranscodeSettings
    let limits: MediaLimits
    let outputs: OutputFiles

    /// - Throws: what the second attempt came to.
    func run(_ survey: Survey, _ video: VideoFacts) throws(Failure) -> TranscodeReport {
        let plan = TranscodePlan(survey, video, settings: settings)
        var survey = survey
        do {
            switch plan.work {
            case .copy(let name):
                switch try copy(name, survey, video, plan) {
                case .made(let report): return report
                case .hasHoles: survey.isDamaged = true
                case .refused: break
                }
            case .encode(let encode): return try self.encode(encode, survey, video, plan, isSafest: false)
            case .nothing:
                return TranscodeReport(
                    outcome: .encoded, duration: survey.duration, segments: 0, previewColor: try stills(video, plan),
                    warnings: survey.warnings)
            }
        } catch {
            guard Self.isWorthAnotherTry(error), outputs.areAllDrafts, case .encode = plan.work else { throw error }
        }
        try outputs.startOver()
        let safest = TranscodePlan(survey, video, settings: settings, isSafest: true)
        guard case .encode(let encode) = safest.work else { preconditionFailure("the safest path always encodes") }
        return try self.encode(encode, survey, video, safest, isSafest: true)
    }

    /// The libraries refused something, or what came out is not what was meant. Everything else would happen again.
    private static func isWorthAnotherTry(_ failure: Failure) -> Bool {
        failure.code == .outputInvalid || failure.code == .internalError || failure.code == .corrupt
    }

    private enum Copy {
        case made(TranscodeReport)
        /// The container promised more than its samples keep; the encoder mends what can be mended.
        case hasHoles
        /// What came out is not what was meant.
        case refused
    }

    private func copy(_ name: OutputName, _ survey: Survey, _ video: VideoFacts, _ plan: TranscodePlan)
        throws(Failure) -> Copy
    {
        let demuxer = try Demuxer.open(input)
        let descriptor = try outputs.open(name)
        do {
            guard try Remux.run(demuxer, survey, video, plan: plan, into: descriptor, limits: limits, outputs: outputs)
            else { return .hasHoles }
        } catch {
            guard Self.isWorthAnotherTry(error) else { throw error }
            return .refused
        }
        try outputs.seal(name, width: video.width, height: video.height, duration: survey.duration)
        return .made(
            TranscodeReport(
                outcome: .remuxed, width: video.width, height: video.height, duration: survey.duration,
                frames: video.frames, previewColor: try stills(video, plan), warnings: survey.warnings))
    }

    private func encode(
        _ encode: TranscodePlan.Encode, _ survey: Survey, _ video: VideoFacts, _ plan: TranscodePlan, isSafest: Bool
    ) throws(Failure) -> TranscodeReport {
        let demuxer = try Demuxer.open(input)
        let threads =
            isSafest
            ? .single : ThreadPlan(requested: settings.threads, cores: ThreadPlan.coreCount)
        let run = try EncodeRun.open(
            demuxer, survey, video, plan: plan, encode: encode, settings, threads: threads, limits, outputs: outputs)
        return try run.run(demuxer)
    }

    private func stills(_ video: VideoFacts, _ plan: TranscodePlan) throws(Failure) -> String? {
        try KeyframePass.make(input, video, plan: plan, limits: limits, outputs: outputs)
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
