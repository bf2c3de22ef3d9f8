import CWebP
import Vocabulary

/// WebP by libwebp; of an animation the first frame on its canvas.
struct WebPFile: PictureFile {
    let header: PictureHeader
    private let bytes: ByteView
    private let isAnimated: Bool
    private let hasAlpha: Bool
    private let isLossless: Bool

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = WebPStructure(bytes) else { throw .truncated("no RIFF header") }
        self.bytes = bytes
        var features = WebPBitstreamFeatures()
        let status = WebPGetFeatures(bytes.bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, &features)
        guard status == VP8_STATUS_OK || structure.canvas != nil else {
            throw structure.isCut || status == VP8_STATUS_NOT_ENOUGH_DATA
                ? .truncated("no bitstream") : .corrupt("no bitstream")
        }
        isAnimated = structure.isAnimated
        hasAlpha = features.has_alpha != 0 || structure.hasAlpha
        isLossless = structure.isLossless
        let metadata = PhotoMetadata(exif: structure.exif, xmp: structure.xmp)
        header = PictureHeader(
            size: structure.canvas ?? PixelSize(width: Int(features.width), height: Int(features.height)),
            orientation: metadata.orientation ?? .upright, codec: "webp",
            pixelFormat: structure.isLossless ? "argb" : hasAlpha ? "yuva420p" : "yuv420p",
            encoding: structure.profile.map { .profile($0) } ?? .plain, metadata: metadata,
            frames: isAnimated ? max(1, structure.frames) : 1, duration: structure.frames > 1 ? structure.duration : nil
        )
        try header.admit(limits)
        if structure.isCut { throw .truncated("RIFF length") }
        guard structure.hasPixels else { throw .corrupt("no pixels") }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        // The canvas that libwebp keeps (twice for an animation), its work, and ours.
        try budget.admit(product(header.size.width, header.size.height, 16))
        let raster = try Raster(
            size: header.size, layout: hasAlpha || isAnimated ? .rgba : .rgb, depth: 8, budget: budget)
        if isAnimated { try decodeFirstFrame(into: raster) } else { try decodeStill(into: raster) }
        return DecodedPicture(raster: raster, encoding: header.encoding)
    }

    /// Luma and chroma as they are coded: all that is not lossless and has no alpha.
    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes? {
        guard !isAnimated, !hasAlpha, !isLossless else { return nil }
        // The planes, libwebp's rows, and ours.
        try budget.admit(sum(product(header.size.width + 64, header.size.height + 64, 2), Planes.byteCount(target)))
        let input = bytes.bytes.bindMemory(to: UInt8.self).baseAddress
        let chroma = Planes.chromaSize(header.size)
        var components: [Plane] = []
        for index in 0..<3 {
            let (_, extent) = Planes.shape(index, of: header.size)
            components.append(try Plane(index == 0 ? header.size : chroma, extent: extent, budget: budget))
        }
        let (y, u, v) = (components[0], components[1], components[2])
        let result = WebPDecodeYUVInto(
            input, bytes.count, y.samples, y.rowBytes * y.size.height, Int32(y.rowBytes), u.samples,
            u.rowBytes * u.size.height, Int32(u.rowBytes), v.samples, v.rowBytes * v.size.height, Int32(v.rowBytes))
        guard result != nil else { throw .corrupt("libwebp") }
        let planes = try Planes(components: components).scaled(to: target, budget: budget)
        // RFC 6386, section 9.2: BT.601 in its limited range.
        return DecodedPlanes(
            planes: planes, coding: YCbCrCoding(matrix: 6, isFullRange: false) ?? .jpeg, encoding: header.encoding)
    }

    private func decodeStill(into raster: Raster) throws(Failure) {
        let input = bytes.bytes.bindMemory(to: UInt8.self).baseAddress
        let output = raster.pixels.bindMemory(to: UInt8.self).baseAddress
        var features = WebPBitstreamFeatures()
        guard WebPGetFeatures(input, bytes.count, &features) == VP8_STATUS_OK, Int(features.width) == raster.size.width,
            Int(features.height) == raster.size.height
        else { throw .corrupt("two sizes") }
        let stride = Int32(raster.rowBytes)
        let result =
            raster.layout == .rgba
            ? WebPDecodeRGBAInto(input, bytes.count, output, raster.pixels.count, stride)
            : WebPDecodeRGBInto(input, bytes.count, output, raster.pixels.count, stride)
        guard result != nil else { throw .corrupt("libwebp") }
    }

    private func decodeFirstFrame(into raster: Raster) throws(Failure) {
        let decoder = try Self.animation(bytes, size: raster.size)
        defer { WebPAnimDecoderDelete(decoder) }
        var canvas: UnsafeMutablePointer<UInt8>?
        var time: Int32 = 0
        guard WebPAnimDecoderGetNext(decoder, &canvas, &time) != 0, let canvas else { throw .corrupt("no frame") }
        raster.pixels.copyMemory(from: UnsafeRawBufferPointer(start: canvas, count: raster.pixels.count))
    }

    /// A decoder over the bytes, which are to outlive it; it is to be deleted.
    static func animation(_ bytes: ByteView, size: PixelSize) throws(Failure) -> OpaquePointer {
        var source = WebPData(bytes: bytes.bytes.bindMemory(to: UInt8.self).baseAddress, size: bytes.count)
        var options = WebPAnimDecoderOptions()
        guard WebPAnimDecoderOptionsInit(&options) != 0 else {
            throw Failure(.internalError, "libwebp could not be started.")
        }
        options.color_mode = MODE_RGBA
        guard let decoder = WebPAnimDecoderNew(&source, &options) else { throw .corrupt("libwebpdemux") }
        var info = WebPAnimInfo()
        guard WebPAnimDecoderGetInfo(decoder, &info) != 0, Int(info.canvas_width) == size.width,
            Int(info.canvas_height) == size.height
        else {
            WebPAnimDecoderDelete(decoder)
            throw .corrupt("two sizes")
        }
        return decoder
    }
}
