public import Vocabulary

/// Makes the thumbnails of a picture.
public enum Thumb {
    /// One still for each of the settings' sizes, upright, sRGB, without metadata, all from one decode; never enlarged.
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
            let bytes = try PictureInput(input)
            let picture = try PictureFiles.open(bytes, format: format, limits: limits)
            let plan = ThumbPlan(upright: picture.header.upright, settings: settings)
            guard let first = plan.outputs.first else {
                throw Failure(.usage, "No thumbnail size was given.", detail: "\(settings.sizes)")
            }
            let budget = MemoryBudget(limits, input: bytes)
            try sink.progress(MediaProgress(fraction: 0, frames: 0))
            let (largest, warnings) = try upright(picture, first.size, budget: budget, sink: sink)
            return try write(
                largest, plan: plan, settings: settings, warnings: picture.header.warnings + warnings, limits: limits,
                budget: budget, sink: sink)
        } catch {
            guard error.code.isVerdict else { throw error }
            return ThumbReport(outcome: .reject, reason: Reason(error))
        }
    }

    /// The picture in the largest size that is wanted: scaled first, so that colours are converted and sides turned of few pixels.
    private static func upright(
        _ picture: any PictureFile, _ size: PixelSize, budget: MemoryBudget, sink: any OutputSink
    ) throws(Failure) -> (Planes, [MediaWarning]) {
        let orientation = picture.header.orientation
        let stored = orientation.size(ofStored: size)
        // Each stage of a large picture may take long: the parent ends what shows no progress.
        if let decoded = try picture.decodePlanes(stored, budget: budget) {
            try sink.progress(MediaProgress(fraction: 0.6, frames: 1))
            let scaled = decoded.planes
            if decoded.coding.isJPEGs(isGrey: scaled.isGrey),
                ColorTransform.isSRGB(decoded.encoding, isGrey: scaled.isGrey)
            {
                return (try scaled.turned(orientation, budget: budget), decoded.warnings)
            }
            let raster = try decoded.coding.raster(scaled, budget: budget)
            let converted = try ColorTransform.toSRGB(raster, decoded.encoding, budget: budget)
            let planes = try Planes(converted.raster, budget: budget)
            return (try planes.turned(orientation, budget: budget), decoded.warnings + converted.warnings)
        }
        let decoded = try scaled(picture, to: stored, budget: budget)
        try sink.progress(MediaProgress(fraction: 0.6, frames: 1))
        let converted = try ColorTransform.toSRGB(decoded.raster, decoded.encoding, budget: budget)
        let planes = try Planes(converted.raster, budget: budget)
        return (try planes.turned(orientation, budget: budget), decoded.warnings + converted.warnings)
    }

    private static func scaled(_ picture: any PictureFile, to size: PixelSize, budget: MemoryBudget) throws(Failure)
        -> DecodedPicture
    {
        if let picture = try picture.decodeRows(size, budget: budget) { return picture }
        var whole = try picture.decode(longSide: size.longSide, budget: budget)
        whole.raster.flattenOnWhite(paper: whole.encoding.paper)
        whole.raster = try Resampler.run(whole.raster, to: size, budget: budget)
        return whole
    }

    /// Largest first, each from the one before it.
    private static func write(
        _ largest: Planes, plan: ThumbPlan, settings: ThumbSettings, warnings: [MediaWarning], limits: MediaLimits,
        budget: MemoryBudget, sink: any OutputSink
    ) throws(Failure) -> ThumbReport {
        var current = largest
        for (index, output) in plan.outputs.enumerated() {
            try sink.progress(
                MediaProgress(fraction: 0.65 + 0.35 * Double(index) / Double(plan.outputs.count), frames: 1))
            current = try current.scaled(to: output.size, budget: budget)
            let descriptor = try sink.open(output.name)
            try StillEncoder.write(current, settings, to: descriptor, limits: limits, budget: budget)
            try sink.seal(
                output.name, role: .thumbnail, contentType: settings.format.contentType, width: output.size.width,
                height: output.size.height, duration: nil)
        }
        let glance = try Glance(current, budget: budget)
        return ThumbReport(
            outcome: .made, width: plan.outputs.first?.size.width, height: plan.outputs.first?.size.height,
            previewColor: glance.meanColor, thumbHash: glance.thumbHash, warnings: warnings)
    }
}
