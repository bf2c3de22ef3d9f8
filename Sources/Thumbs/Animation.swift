package import FFmpeg
package import Vocabulary

/// Opens an animation for being shown picture by picture.
package enum Animation {
    /// - Returns: nil for a picture that does not move, and for formats that never do.
    /// - Throws: a verdict on the file, `over-budget`, `source-unreadable`, `internal-error`.
    package static func open(_ input: Int32, format: MediaFormat, limits: MediaLimits) throws(Failure)
        -> (header: AnimationHeader, source: any AnimationSource)?
    {
        let moving: Set<MediaFormat> = [.gif, .png, .webp, .avif, .heif, .jxl]
        guard moving.contains(format) else { return nil }
        let source = try PictureInput(input)
        let picture = try PictureFiles.open(source, format: format, limits: limits)
        let header = picture.header
        guard header.frames > 1 else { return nil }
        // The pictures that the library keeps to draw on, and ours.
        try MemoryBudget(limits).admit(product(header.size.width, header.size.height, 16))
        let said = AnimationHeader(
            width: header.size.width, height: header.size.height, frames: header.frames,
            duration: header.duration ?? 0)
        switch format {
        case .webp: return (said, try WebPAnimation(source.bytes, size: header.size))
        case .jxl: return (said, try JXLAnimation(source.bytes, size: header.size, budget: MemoryBudget(limits)))
        case .png:
            let delays = PNGStructure(source.bytes)?.delays ?? []
            return (said, try SequenceReader(input, limits: limits, delays: delays))
        default: return (said, try SequenceReader(input, limits: limits))
        }
    }
}
