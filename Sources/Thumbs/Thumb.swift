public import Vocabulary

/// Makes the thumbnails of a picture.
public enum Thumb {
    /// One JPEG for each of the settings' sizes, upright, sRGB, without metadata, all from one decode; never enlarged.
    /// - Parameters:
    ///   - input: a readable, seekable descriptor of a regular file; stays open and keeps its offset.
    ///   - format: what the first bytes say.
    ///   - sink: opens and seals `ThumbSettings.name(of:)` for each size, largest first; none for a rejected file.
    /// - Throws: `over-budget`, `cancelled`, `disk-full`, `io-error`, `source-unreadable`, `internal-error`.
    public static func make(
        _ input: Int32, format: MediaFormat, file: String, settings: ThumbSettings, limits: MediaLimits,
        sink: any OutputSink
    ) throws(Failure) -> ThumbReport {
        do throws(Failure) {
            let picture = try PictureFiles.open(PictureInput(input), format: format, limits: limits)
            let plan = ThumbPlan(upright: picture.header.upright, settings: settings)
            guard !plan.outputs.isEmpty else {
                throw Failure(.usage, "No thumbnail size was given.", detail: "\(settings.sizes)")
            }
            return try make(picture, plan: plan, quality: settings.quality, limits: limits, sink: sink)
        } catch {
            guard error.code.isVerdict else { throw error }
            return ThumbReport(outcome: .reject, reason: Reason(error))
        }
    }

    private static func make(
        _ picture: any PictureFile, plan: ThumbPlan, quality: Int, limits: MediaLimits, sink: any OutputSink
    ) throws(Failure) -> ThumbReport {
        let budget = MemoryBudget(limits)
        try sink.progress(MediaProgress(fraction: 0, frames: 0))
        let decoded = try picture.decode(longSide: plan.longSide, budget: budget)
        // Each stage of a large picture may take long: the parent ends what shows no progress.
        try sink.progress(MediaProgress(fraction: 0.5, frames: 1))

        let orientation = picture.header.orientation
        var warnings = picture.header.warnings + decoded.warnings
        var current = decoded.raster
        current.flattenOnWhite()
        for (index, output) in plan.outputs.enumerated() {
            // Largest first, each from the one before it: only the first has colours to convert and a side to be turned to.
            if index == 0 {
                let stored = orientation.size(ofStored: output.size)
                current = try Resampler(source: current.size, target: stored).run(current, budget: budget)
                try sink.progress(MediaProgress(fraction: 0.6, frames: 1))
                let converted = try ColorTransform.toSRGB(current, decoded.encoding, budget: budget)
                warnings += converted.warnings
                try sink.progress(MediaProgress(fraction: 0.65, frames: 1))
                current = try converted.raster.turned(orientation, budget: budget)
            } else {
                current = try Resampler(source: current.size, target: output.size).run(current, budget: budget)
            }
            let descriptor = try sink.open(output.name)
            _ = try JPEGEncoder.write(current, quality: quality, to: descriptor, limits: limits)
            try sink.seal(
                output.name, role: .thumbnail, contentType: "image/jpeg", width: output.size.width,
                height: output.size.height, duration: nil)
            try sink.progress(
                MediaProgress(fraction: 0.65 + 0.35 * Double(index + 1) / Double(plan.outputs.count), frames: 1))
        }
        return ThumbReport(
            outcome: .made, width: plan.outputs.first?.size.width, height: plan.outputs.first?.size.height,
            warnings: warnings)
    }
}
