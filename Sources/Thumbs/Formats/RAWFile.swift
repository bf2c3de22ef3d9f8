import Vocabulary

/// A camera raw: its embedded preview where that is large enough, else developed by LibRaw at half size.
final class RAWFile: PictureFile {
    /// How far sides may differ for two sizes to be of the same picture: sensors have a few more pixels at the edges.
    static let sideTolerance = 0.03

    let header: PictureHeader
    private let limits: MediaLimits
    private let raw: RAWDevelopment?
    private let previews: [JPEGFile]
    /// Of the preview as LibRaw holds it, and of our copy.
    private let copyBytes: Int

    init(_ bytes: ByteView, format: MediaFormat, limits: MediaLimits) throws(Failure) {
        self.limits = limits
        var (metadata, stated, codec) = (PhotoMetadata(), PixelSize?.none, format.rawValue)
        var candidates: [ByteView] = []
        var warnings: [MediaWarning] = []
        switch format {
        case .cr3:
            let structure = CR3Structure(bytes)
            if structure.isCut { throw .truncated("boxes beyond the end of the file") }
            (metadata, stated) = (structure.metadata, structure.size)
            candidates = [structure.fullPicture, structure.preview].compactMap { $0 }
            if !structure.hasPixels {
                warnings.append(MediaWarning("raw-data-missing", "The raw data is missing; only a preview is left."))
            }
        case .raf:
            // Fujifilm's header tells where the camera's JPEG is.
            guard let offset = bytes.u32(at: 84), let length = bytes.u32(at: 88) else { throw .truncated("header") }
            guard let picture = bytes.slice(at: Int(offset), count: Int(length)) else { throw .truncated("preview") }
            // And where its tags and the sensor's data are.
            for place in [92, 100] {
                guard let offset = bytes.u32(at: place), let length = bytes.u32(at: place + 4) else { continue }
                if Int(offset) + Int(length) > bytes.count { throw .truncated("raw data") }
            }
            metadata = PhotoMetadata(exif: JPEGStructure(picture)?.exif ?? [], xmp: nil)
            candidates = [picture]
        default:
            guard let structure = RAWStructure(bytes) else { throw .corrupt("no TIFF header") }
            if structure.lacksBytes { throw .truncated("strips beyond the end of the file") }
            metadata = EXIF.read(structure.structure) ?? metadata
            codec = structure.isDNG ? "dng" : "raw"
        }
        raw = try? RAWDevelopment(bytes, limits: limits)
        let preview = raw?.preview()
        copyBytes = 2 * (preview?.count ?? 0)
        if let preview { candidates.append(preview) }
        previews = candidates.compactMap { try? JPEGFile($0, limits: limits, isAdobeRGB: metadata.isAdobeRGB) }
            .sorted { $0.header.size.longSide > $1.header.size.longSide }

        guard let size = stated ?? Self.shownSize(raw: raw?.size, preview: previews.first?.header.size) else {
            throw .unsupported("a camera raw that LibRaw does not know")
        }
        header = PictureHeader(
            size: size, orientation: metadata.orientation ?? raw?.orientation ?? .upright, codec: codec,
            pixelFormat: raw?.pixelFormat, metadata: metadata, warnings: warnings)
        try header.admit(limits)
        guard raw != nil || !previews.isEmpty else { throw .unsupported("a camera raw that LibRaw does not know") }
    }

    /// The camera's own JPEG, where it is of full size, shows what the photographer saw; the sensor has some more at its edges.
    static func shownSize(raw: PixelSize?, preview: PixelSize?) -> PixelSize? {
        guard let raw else { return preview }
        guard let preview, isAlike(raw.width, preview.width), isAlike(raw.height, preview.height) else { return raw }
        return preview
    }

    private static func isAlike(_ a: Int, _ b: Int) -> Bool { abs(Double(a - b)) <= sideTolerance * Double(max(a, b)) }

    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes? {
        let (wanted, budget) = (min(target.longSide, header.size.longSide), budget.less(copyBytes))
        for preview in previews.filter({ hasSameShape($0.header.size) }).reversed()
        where preview.header.size.longSide >= wanted {
            if let planes = try? preview.decodePlanes(target, budget: budget) { return planes }
        }
        return nil
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        // The smallest preview that is large enough and shows the whole picture.
        let (wanted, budget) = (min(longSide, header.size.longSide), budget.less(copyBytes))
        let fitting = previews.filter { hasSameShape($0.header.size) }
        for preview in fitting.reversed() where preview.header.size.longSide >= wanted {
            if let picture = try? preview.decode(longSide: longSide, budget: budget) { return picture }
        }
        do throws(Failure) {
            guard let raw else { throw .unsupported("a camera raw that LibRaw does not know") }
            return try raw.develop(longSide: longSide, budget: budget)
        } catch {
            guard error.code.isVerdict, let preview = fitting.first ?? previews.first else { throw error }
            var picture = try preview.decode(longSide: longSide, budget: budget)
            picture.warnings.append(
                MediaWarning("preview-only", "The raw data could not be developed; a small preview stands in."))
            return picture
        }
    }

    private func hasSameShape(_ size: PixelSize) -> Bool {
        let (a, b) = (size.width * header.size.height, size.height * header.size.width)
        return abs(Double(a - b)) <= Self.sideTolerance * Double(max(a, b))
    }
}
