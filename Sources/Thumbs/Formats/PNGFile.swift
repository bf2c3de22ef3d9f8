import CPNG
import Vocabulary

/// PNG by libpng.
struct PNGFile: PictureFile {
    /// A longer profile or text is not believed.
    static let chunkBytesMax = 16 << 20

    let header: PictureHeader
    private let bytes: ByteView
    /// libpng leaves aside what is a little wrong with it, and what does not fit the colours as they are stored.
    private let profile: ByteView?
    /// Of the limited range so many bits.
    private let limitedBits: Int?

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = PNGStructure(bytes) else { throw .corrupt("no PNG signature") }
        guard let size = structure.size else {
            throw structure.hasEnd || bytes.count > 64 ? .corrupt("no header chunk") : .truncated("no header chunk")
        }
        self.bytes = bytes
        profile = structure.iccp.flatMap(PNGText.profile)
        limitedBits = structure.isLimited ? max(8, structure.depth) : nil
        var (exif, xmp): ([ByteView], ByteView?) = (structure.exif, nil)
        var bytesLeft = PNGText.byteCountMax
        for text in structure.texts {
            switch PNGText.block(type: text.type, text.body, bytesLeft: &bytesLeft) {
            case .exif(let block): exif.append(block)
            case .xmp(let packet): xmp = xmp ?? packet
            case nil: continue
            }
        }
        let metadata = PhotoMetadata(exif: exif, xmp: xmp)
        let isAnimated = structure.frames > 1
        header = PictureHeader(
            size: size, orientation: metadata.orientation ?? .upright, codec: isAnimated ? "apng" : "png",
            pixelFormat: structure.pixelFormat, codePoints: structure.codePoints, metadata: metadata,
            frames: structure.frames, duration: isAnimated ? structure.duration : nil)
        try header.admit(limits)
        guard structure.hasEnd else { throw .truncated("no IEND chunk") }
        guard structure.hasPixels else { throw .corrupt("no IDAT chunk") }
    }

    /// The whole picture, for one that comes in several passes or has to be stretched.
    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let reader = try PNGReader(bytes, size: header.size)
        let raster = try Raster(size: header.size, layout: reader.layout, depth: reader.depth, budget: budget)
        try reader.readAll(into: raster)
        if let limitedBits {
            raster.expand(channels: 0..<raster.layout.withoutAlpha.channelCount, from: .limited(limitedBits))
        }
        return DecodedPicture(raster: raster, encoding: encoding(reader.pointer))
    }

    func decodeRows(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPicture? {
        let reader = try PNGReader(bytes, size: header.size)
        guard reader.passes == 1, limitedBits == nil else { return nil }
        let line = try Raster(
            size: PixelSize(width: header.size.width, height: 1), layout: reader.layout, depth: reader.depth,
            budget: budget)
        let resampler = try Resampler(
            source: header.size, target: target, layout: reader.layout.withoutAlpha, depth: reader.depth, budget: budget
        )
        for _ in 0..<header.size.height {
            line.reuse(as: reader.layout)
            try reader.read(into: line)
            line.flattenOnWhite(paper: header.codePoints?.paper ?? 1)
            resampler.take(line.row(0))
        }
        return DecodedPicture(raster: resampler.result, encoding: encoding(reader.pointer))
    }

    /// The order of precedence of the standard: cICP, iCCP, sRGB, gAMA with cHRM.
    private func encoding(_ reader: UnsafeMutablePointer<rushes_png>) -> ColorEncoding {
        if let points = header.codePoints { return .codePoints(points) }
        if let profile { return .profile(profile) }
        var exponent = 0.0
        guard rushes_png_is_srgb(reader) == 0, rushes_png_gamma(reader, &exponent) != 0 else { return .plain }
        var xy = [Double](repeating: 0, count: 8)
        let hasChromaticities = rushes_png_chromaticities(reader, &xy) != 0 && xy.allSatisfy { $0 > 0 && $0 < 1 }
        return .gamma(exponent: exponent, chromaticities: hasChromaticities ? xy : nil)
    }
}

/// One pass of libpng over a picture.
private final class PNGReader {
    let pointer: UnsafeMutablePointer<rushes_png>
    let layout: Raster.Layout
    let depth: Int
    private let height: Int

    init(_ bytes: ByteView, size: PixelSize) throws(Failure) {
        guard
            let reader = rushes_png_open(
                bytes.bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, UInt32(Int32.max),
                PNGFile.chunkBytesMax)
        else { throw Failure(.overBudget, "There is not enough memory for this picture.") }
        pointer = reader
        height = size.height
        let isRead = rushes_png_read_header(reader) != 0
        layout = isRead ? Raster.Layout(rawValue: Int(rushes_png_channels(reader))) ?? .rgb : .rgb
        depth = isRead && rushes_png_depth(reader) == 16 ? 16 : 8
        guard isRead else { throw failure }
        guard size == PixelSize(width: Int(rushes_png_width(reader)), height: Int(rushes_png_height(reader))) else {
            throw .corrupt("two sizes")
        }
        guard rushes_png_row_bytes(reader) == size.width * layout.channelCount * (depth / 8) else {
            throw .corrupt("row length")
        }
    }
    deinit { rushes_png_close(pointer) }

    var passes: Int { Int(rushes_png_passes(pointer)) }

    /// The next row.
    func read(into line: Raster) throws(Failure) {
        var row: UnsafeMutablePointer<UInt8>? = line.row(0).assumingMemoryBound(to: UInt8.self)
        guard rushes_png_read_rows(pointer, &row, 1) != 0 else { throw failure }
    }

    /// An interlaced picture is read in several passes over all rows.
    func readAll(into raster: Raster) throws(Failure) {
        raster.clear()
        var rows: [UnsafeMutablePointer<UInt8>?] = (0..<height).map {
            raster.row($0).assumingMemoryBound(to: UInt8.self)
        }
        for _ in 0..<passes {
            guard rushes_png_read_rows(pointer, &rows, UInt32(rows.count)) != 0 else { throw failure }
        }
    }

    private var failure: Failure {
        let words = withUnsafePointer(to: &pointer.pointee.message) { tuple in
            tuple.withMemoryRebound(to: CChar.self, capacity: 160) { String(cString: $0) }
        }
        return pointer.pointee.wanted_past_end != 0 ? .truncated(words) : .corrupt(words)
    }
}
