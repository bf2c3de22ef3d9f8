package import FFmpeg
package import Vocabulary

extension Transcode {
    /// Makes a silent video of an animation: one turn of it, on white where it is transparent.
    /// - Throws: as `run`.
    package static func run(
        animation: any AnimationSource, header: AnimationHeader, settings: TranscodeSettings, limits: MediaLimits,
        sink: any OutputSink
    ) throws(Failure) -> TranscodeReport {
        let facts = VideoFacts(header)
        try DecodeBudget.admit(facts, limits: limits)
        let plan = TranscodePlan(animation: facts, settings: settings)
        guard case .encode(let encode) = plan.work else {
            throw Failure(.usage, "Of an animation a video is made: name one among the outputs.")
        }
        let outputs = OutputFiles(sink)
        let threads = ThreadPlan(requested: settings.threads, cores: ThreadPlan.coreCount)
        let renditions = try Renditions.open(
            plan, encode: encode, settings: settings, threads: threads, limits: limits, outputs: outputs, sound: nil)
        return try AnimationRun(animation, plan: plan, encode: encode, renditions: renditions, outputs: outputs).run()
    }
}

extension VideoFacts {
    init(_ animation: AnimationHeader) {
        let seconds = max(animation.duration, AnimationRun.durationMin)
        self.init(
            stream: 0, codec: nil, profile: 0, width: animation.width, height: animation.height, cropTop: 0,
            sampleAspect: Rational(1, 1), orientation: .upright, pixelFormat: .rgb24,
            color: ColorTags(range: .full, matrix: "gbr"), hdr: nil, hasAlpha: false, isInterlaced: false,
            timeBase: Rational(1, 1000), frames: animation.frames,
            averageRate: Double(animation.frames) / seconds, hasVariableRate: true, start: 0, end: seconds,
            keyframeIntervalMax: nil, hasEdits: false)
    }
}

/// Feeds an animation's pictures to the renditions.
final class AnimationRun {
    /// Seconds. A picture that stands for no time at all is not seen.
    static let durationMin = 0.001

    private let animation: any AnimationSource
    private let plan: TranscodePlan
    private let encode: TranscodePlan.Encode
    private let renditions: Renditions
    private let outputs: OutputFiles

    init(
        _ animation: any AnimationSource, plan: TranscodePlan, encode: TranscodePlan.Encode, renditions: Renditions,
        outputs: OutputFiles
    ) {
        self.animation = animation
        self.plan = plan
        self.encode = encode
        self.renditions = renditions
        self.outputs = outputs
    }

    func run() throws(Failure) -> TranscodeReport {
        var warnings: [MediaWarning] = []
        var shown = 0
        var time = 0.0
        var thinning = Thinning(encode)
        while let picture = try next(after: shown, &warnings) {
            let ticks = encode.timeBase.ticks(time)
            if time <= TranscodePlan.animationMax, thinning.keeps(ticks) {
                let frame = try Self.frame(picture.image)
                frame.pts = ticks
                try renditions.take(frame)
                shown += 1
            }
            time += max(picture.duration, Self.durationMin)
            let fraction = plan.duration > 0 ? min(time / plan.duration, 1) : 0
            try outputs.progress(MediaProgress(fraction: fraction, frames: shown))
        }
        guard shown > 0 else {
            return TranscodeReport(outcome: .reject, segments: 0, reason: OpenVerdict.nothingDecodes)
        }
        try renditions.finishPictures(end: time)
        let made = try renditions.finish(soundEnd: nil)
        return TranscodeReport(
            outcome: .encoded, width: made.width, height: made.height, duration: rounded(made.end), frames: made.frames,
            previewColor: made.previewColor, warnings: warnings)
    }

    /// An animation that is damaged further on ends there.
    private func next(after shown: Int, _ warnings: inout [MediaWarning]) throws(Failure) -> AnimationPicture? {
        do { return try animation.next() } catch {
            guard error.code.isVerdict, shown > 0 else { throw error }
            warnings.append(MediaWarning("damaged-frames", "Some pictures are damaged in the source."))
            return nil
        }
    }

    /// Transparency is laid on white, as on a page.
    private static func frame(_ image: RGBAImage) throws(Failure) -> Frame {
        let frame = try Frame.allocate(width: image.width, height: image.height, format: .rgb24)
        frame.withPlane(0) { first, stride in
            image.pixels.withUnsafeBufferPointer { pixels in
                for row in 0..<image.height {
                    for column in 0..<image.width {
                        let from = (row * image.width + column) * 4, to = row * stride + column * 3
                        let alpha = Int(pixels[from + 3])
                        for channel in 0..<3 {
                            let value = Int(pixels[from + channel]) * alpha + 255 * (255 - alpha)
                            first[to + channel] = UInt8((value + 127) / 255)
                        }
                    }
                }
            }
        }
        return frame
    }
}
