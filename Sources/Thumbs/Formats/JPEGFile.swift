import CTurboJPEG
import Vocabulary

/// JPEG by TurboJPEG, decoded at the smallest scale that is large enough.
struct JPEGFile: PictureFile {
    let header: PictureHeader
    private let bytes: ByteView
    private let frame: JPEGStructure.Frame
    private let isAdobe: Bool
    private let hasEnd: Bool

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = JPEGStructure(bytes) else { throw .corrupt("no start marker") }
        guard let frame = structure.frame else {
            throw structure.hasEnd ? .corrupt("no frame header") : .truncated("no frame header")
        }
        self.bytes = bytes
        self.frame = frame
        isAdobe = structure.isAdobe
        hasEnd = structure.hasEnd
        var metadata = structure.exif.flatMap(EXIF.read) ?? PhotoMetadata()
        if let xmp = structure.xmp { metadata = metadata.completed(by: XMP.read(xmp)) }
        header = PictureHeader(
            size: frame.size, orientation: metadata.orientation ?? .upright, codec: "mjpeg",
            pixelFormat: Self.pixelFormat(frame), encoding: structure.profile.map { .profile($0) } ?? .plain,
            metadata: metadata)
        try header.admit(limits)
        guard structure.hasScan else {
            throw structure.hasEnd ? .corrupt("no picture data") : .truncated("no picture data")
        }
        guard frame.isDecodable else {
            throw .unsupported(frame.precision == 8 ? "JPEG of an unusual process" : "JPEG of \(frame.precision) bits")
        }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let layout: Raster.Layout
        let format: TJPF
        switch frame.sampling.count {
        case 1: (layout, format) = (.grey, TJPF_GRAY)
        case 3: (layout, format) = (.rgb, TJPF_RGB)
        case 4: (layout, format) = (.cmyk, TJPF_CMYK)
        default: throw .unsupported("JPEG of \(frame.sampling.count) components")
        }
        let plan = JPEGScalePlan(stored: frame.size, longSide: longSide)
        try budget.admit(
            sum(Raster.byteCount(plan.decoded, layout: layout, depth: 8), coefficientBytes, workBytes))
        let raster = try Raster(size: plan.decoded, layout: layout, depth: 8, budget: budget)
        raster.clear()

        // Without its end mark a picture may still be whole: with one put behind it, TurboJPEG misses only what is really missing.
        let source = hasEnd ? bytes : ByteView(bytes.array + [0xFF, 0xD9])
        guard let decoder = tjInitDecompress() else { throw Failure(.internalError, "TurboJPEG could not be started.") }
        defer { tjDestroy(decoder) }
        let status = tjDecompress2(
            decoder, source.bytes.bindMemory(to: UInt8.self).baseAddress, UInt(source.count),
            raster.pixels.bindMemory(to: UInt8.self).baseAddress, Int32(plan.decoded.width), 0,
            Int32(plan.decoded.height),
            Int32(format.rawValue), TJFLAG_LIMITSCANS)
        var warnings: [MediaWarning] = []
        if status != 0 {
            let words = String(cString: tjGetErrorStr2(decoder))
            // What is only a warning leaves a picture with damaged parts.
            guard tjGetErrorCode(decoder) == Int32(TJERR_WARNING.rawValue) else { throw .corrupt(words) }
            if !hasEnd { throw .truncated(words) }
            if Self.isDamage(words) { warnings.append(DecodedPicture.damaged) }
        }
        if !hasEnd {
            // A progressive picture would not tell that its last passes are missing.
            if frame.isProgressive { throw .truncated("no end marker") }
            warnings.append(MediaWarning("end-marker-missing", "The picture is whole, but its end mark is missing."))
        }
        if layout == .cmyk {
            // Adobe's programs store ink upside down, and so does everybody who writes such files.
            for index in 0..<raster.pixels.count { raster.pixels[index] = 255 - raster.pixels[index] }
        }
        return DecodedPicture(raster: raster, encoding: header.encoding, warnings: warnings)
    }

    /// TurboJPEG also warns of oddities that cost no pixel.
    private static func isDamage(_ words: String) -> Bool {
        words.contains("Corrupt JPEG data") || words.contains("Premature end")
    }

    /// A progressive picture is held whole, two bytes a coefficient, before a pixel appears.
    private var coefficientBytes: Int? {
        guard frame.isProgressive || frame.marker == 0xCA else { return 0 }
        let most = frame.sampling.map { max(1, $0.horizontal * $0.vertical) }.max() ?? 1
        let all = frame.sampling.reduce(0) { $0 + max(1, $1.horizontal * $1.vertical) }
        return product(frame.size.width + 64, frame.size.height + 64, 2, all).map { $0 / most }
    }

    /// Rows that the decoder holds at a time, generously.
    private var workBytes: Int? { product(frame.size.width + 64, 4 * 64) }

    private static func pixelFormat(_ frame: JPEGStructure.Frame) -> String? {
        switch frame.sampling.count {
        case 1: return "gray"
        case 4: return "cmyk"
        case 3:
            let (luma, chroma) = (frame.sampling[0], frame.sampling[1])
            guard chroma.horizontal > 0, chroma.vertical > 0 else { return nil }
            switch (luma.horizontal / chroma.horizontal, luma.vertical / chroma.vertical) {
            case (1, 1): return "yuvj444p"
            case (2, 1): return "yuvj422p"
            case (2, 2): return "yuvj420p"
            case (1, 2): return "yuvj440p"
            case (4, 1): return "yuvj411p"
            default: return nil
            }
        default: return nil
        }
    }
}
