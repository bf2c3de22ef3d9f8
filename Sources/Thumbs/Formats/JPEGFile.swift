import CTurboJPEG
import Vocabulary

/// JPEG by libjpeg-turbo, decoded at the smallest scale that is large enough: luma and chroma as they are coded, ink and RGB through TurboJPEG.
struct JPEGFile: PictureFile {
    let header: PictureHeader
    private let bytes: ByteView
    private let frame: JPEGStructure.Frame
    private let hasEnd: Bool
    private let hasStrayBytes: Bool

    /// - Parameter isAdobeRGB: who holds this picture says so of its numbers.
    init(_ bytes: ByteView, limits: MediaLimits, isAdobeRGB: Bool = false) throws(Failure) {
        guard let structure = JPEGStructure(bytes) else { throw .corrupt("no start marker") }
        guard let frame = structure.frame else {
            throw structure.hasEnd ? .corrupt("no frame header") : .truncated("no frame header")
        }
        self.bytes = bytes
        self.frame = frame
        hasEnd = structure.hasEnd
        let metadata = PhotoMetadata(exif: structure.exif, xmp: structure.xmp, iptc: structure.iptc)
        hasStrayBytes = structure.hasStrayBytes
        header = PictureHeader(
            size: frame.size, orientation: metadata.orientation ?? .upright, codec: "mjpeg",
            pixelFormat: structure.isRGB ? "gbrp" : Self.pixelFormat(frame),
            encoding: structure.profile.map { .profile($0) }
                ?? (metadata.isAdobeRGB || isAdobeRGB ? .adobeRGB : .plain),
            hasGainMap: structure.hasGainMap, metadata: metadata,
            warnings: structure.hasBrokenProfile ? [ColorTransform.profileIgnored] : [])
        try header.admit(limits)
        guard structure.hasScan else {
            throw structure.hasEnd ? .corrupt("no picture data") : .truncated("no picture data")
        }
        guard JPEGScanBounds.allow(structure.scanCount, blockCount: frame.blockCount) else {
            throw .corrupt("\(structure.scanCount) scans")
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
            sum(
                Raster.byteCount(plan.decoded, layout: layout, depth: 8), try JPEGReader(bytes).coefficientBytes,
                workBytes))
        let raster = try Raster(size: plan.decoded, layout: layout, depth: 8, budget: budget)
        raster.clear()
        let warnings = try read { decoder, source in
            tjDecompress2(
                decoder, source.bytes.bindMemory(to: UInt8.self).baseAddress, UInt(source.count),
                raster.pixels.bindMemory(to: UInt8.self).baseAddress, Int32(plan.decoded.width), 0,
                Int32(plan.decoded.height), Int32(format.rawValue), TJFLAG_LIMITSCANS)
        }
        if layout == .cmyk {
            // Adobe's programs store ink upside down, and so does everybody who writes such files.
            for index in 0..<raster.pixels.count { raster.pixels[index] = 255 - raster.pixels[index] }
        }
        return DecodedPicture(raster: raster, encoding: header.encoding, warnings: warnings)
    }

    /// Luma and chroma as they are coded, scaled while they come.
    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes? {
        let reader = try JPEGReader(bytes)
        guard reader.isPlanar, reader.size == frame.size else { return nil }
        try budget.admit(sum(reader.coefficientBytes, workBytes, Planes.byteCount(target)))
        let plan = JPEGScalePlan(stored: frame.size, longSide: target.longSide)
        let chroma = JPEGScalePlan(stored: frame.size, longSide: Planes.chromaSize(target).longSide)
        var scalers: [PlaneScaler] = []
        for (index, component) in try reader.start(plan.denominator, chroma: chroma.denominator).enumerated() {
            let (size, extent) = Planes.shape(index, of: target)
            scalers.append(
                try PlaneScaler(
                    PlaneScaler.Source(component), to: size, extent: extent, sharing: scalers.last, budget: budget))
        }
        try run(reader, scalers)
        return DecodedPlanes(
            planes: Planes(components: scalers.map(\.result)), encoding: header.encoding, warnings: try warnings(reader)
        )
    }

    func tryPixels(budget: MemoryBudget) throws(Failure) -> [MediaWarning] {
        // One pixel of each block is enough to come through all data.
        let thumbnail = frame.size.fitting(longSide: max(1, frame.size.longSide / 16))
        if let planes = try decodePlanes(thumbnail, budget: budget) { return planes.warnings }
        return try decode(longSide: 1, budget: budget).warnings
    }

    private func run(_ reader: JPEGReader, _ scalers: [PlaneScaler]) throws(Failure) {
        while true {
            var next = scalers.map(\.next)
            let isMore = try withPointers(&next) { rows throws(Failure) in try reader.read(&rows) }
            if !isMore { return }
            for scaler in scalers { scaler.advance() }
        }
    }

    /// The rows of all components as libjpeg takes them.
    private func withPointers(
        _ rows: inout [[UnsafeMutablePointer<UInt8>?]],
        _ body: (inout [UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?]) throws(Failure) -> Bool
    ) throws(Failure) -> Bool {
        let store = UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>.allocate(
            capacity: rows.reduce(0) { $0 + $1.count })
        defer { store.deallocate() }
        var place = store
        var pointers: [UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?] = []
        for component in rows {
            pointers.append(place)
            for row in component {
                place.initialize(to: row)
                place += 1
            }
        }
        return try body(&pointers)
    }

    private func warnings(_ reader: JPEGReader) throws(Failure) -> [MediaWarning] {
        try warnings(of: reader.isDamaged ? reader.words : nil)
    }

    /// - Parameter damage: what a decoder said of data that it could not read.
    private func warnings(of damage: String?) throws(Failure) -> [MediaWarning] {
        if let damage {
            if !hasEnd { throw .truncated(damage) }
            return [DecodedPicture.damaged]
        }
        guard !hasEnd else { return [] }
        // A progressive picture would not tell that its last passes are missing, and arithmetic codes go on as zeros.
        if frame.isProgressive || frame.isArithmetic { throw .truncated("no end marker") }
        return [MediaWarning("end-marker-missing", "The picture is whole, but its end mark is missing.")]
    }

    /// - Parameter decode: gives TurboJPEG's status.
    /// - Returns: what is to be told of damage that the picture survived.
    private func read(_ decode: (tjhandle, ByteView) -> Int32) throws(Failure) -> [MediaWarning] {
        // Without its end mark a picture may still be whole: with one put behind it, TurboJPEG misses only what is really missing.
        let source = hasEnd ? bytes : ByteView(bytes.array + [0xFF, 0xD9])
        let decoder = try TurboJPEG.decompressor()
        guard decode(decoder.pointer, source) != 0 else { return try warnings(of: nil) }
        // What is only a warning leaves a picture with damaged parts.
        guard decoder.wasOnlyWarning else { throw .corrupt(decoder.words) }
        // TurboJPEG also warns of oddities that cost no pixel.
        let words = decoder.words
        let isDamage =
            words.contains("Corrupt JPEG data") && !(hasStrayBytes && words.contains("extraneous bytes before marker"))
            || words.contains("Premature end")
        return try warnings(of: isDamage ? words : nil)
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

extension PlaneScaler.Source {
    init(_ component: JPEGReader.Component) {
        self.init(
            size: PixelSize(width: Int(component.width), height: Int(component.height)),
            extent: (component.extent_width, component.extent_height), rowSamples: Int(component.row_samples),
            rowsAtATime: Int(component.rows_at_a_time))
    }
}
