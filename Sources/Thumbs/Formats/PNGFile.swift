import CPNG
import Vocabulary

/// PNG by libpng.
struct PNGFile: PictureFile {
    /// A longer profile or text is not believed.
    static let chunkBytesMax = 16 << 20

    let header: PictureHeader
    private let bytes: ByteView

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = PNGStructure(bytes) else { throw .corrupt("no PNG signature") }
        guard let size = structure.size else {
            throw structure.hasEnd || bytes.count > 64 ? .corrupt("no header chunk") : .truncated("no header chunk")
        }
        self.bytes = bytes
        var metadata = structure.exif.flatMap(EXIF.read) ?? PhotoMetadata()
        if let xmp = structure.xmp { metadata = metadata.completed(by: XMP.read(xmp)) }
        let isAnimated = structure.frames > 1
        header = PictureHeader(
            size: size, orientation: metadata.orientation ?? .upright, codec: isAnimated ? "apng" : "png",
            pixelFormat: structure.pixelFormat, codePoints: structure.codePoints, metadata: metadata,
            frames: structure.frames, duration: isAnimated ? structure.duration : nil)
        try header.admit(limits)
        guard structure.hasEnd else { throw .truncated("no IEND chunk") }
        guard structure.hasPixels else { throw .corrupt("no IDAT chunk") }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        guard
            let reader = rushes_png_open(
                bytes.bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, UInt32(Int32.max), Self.chunkBytesMax)
        else { throw Failure(.overBudget, "There is not enough memory for this picture.") }
        defer { rushes_png_close(reader) }
        guard rushes_png_read_header(reader) != 0 else { throw Self.failure(reader) }
        let size = PixelSize(width: Int(rushes_png_width(reader)), height: Int(rushes_png_height(reader)))
        guard size == header.size, let layout = Raster.Layout(rawValue: Int(rushes_png_channels(reader))) else {
            throw .corrupt("two sizes")
        }
        let depth = Int(rushes_png_depth(reader))
        let raster = try Raster(size: size, layout: layout, depth: depth == 16 ? 16 : 8, budget: budget)
        guard rushes_png_row_bytes(reader) == raster.rowBytes else { throw .corrupt("row length") }
        raster.clear()
        var rows: [UnsafeMutablePointer<UInt8>?] = (0..<size.height).map {
            raster.row($0).assumingMemoryBound(to: UInt8.self)
        }
        // An interlaced picture is read in several passes over all rows.
        for _ in 0..<Int(rushes_png_passes(reader)) {
            guard rushes_png_read_rows(reader, &rows, UInt32(rows.count)) != 0 else { throw Self.failure(reader) }
        }
        return DecodedPicture(raster: raster, encoding: encoding(reader))
    }

    /// The order of precedence of the standard: cICP, iCCP, sRGB, gAMA with cHRM.
    private func encoding(_ reader: UnsafeMutablePointer<rushes_png>) -> ColorEncoding {
        if let points = header.codePoints { return .codePoints(points) }
        var profile: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        if rushes_png_profile(reader, &profile, &count) != 0, let profile {
            return .profile(ByteView(Array(UnsafeBufferPointer(start: profile, count: Int(count)))))
        }
        var exponent = 0.0
        guard rushes_png_is_srgb(reader) == 0, rushes_png_gamma(reader, &exponent) != 0 else { return .plain }
        var xy = [Double](repeating: 0, count: 8)
        let hasChromaticities = rushes_png_chromaticities(reader, &xy) != 0 && xy.allSatisfy { $0 > 0 && $0 < 1 }
        return .gamma(exponent: exponent, chromaticities: hasChromaticities ? xy : nil)
    }

    private static func failure(_ reader: UnsafeMutablePointer<rushes_png>) -> Failure {
        let words = withUnsafePointer(to: &reader.pointee.message) { tuple in
            tuple.withMemoryRebound(to: CChar.self, capacity: 160) { String(cString: $0) }
        }
        return reader.pointee.wanted_past_end != 0 ? .truncated(words) : .corrupt(words)
    }
}
