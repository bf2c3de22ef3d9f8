import CJPEGXL
import FFmpeg
import Vocabulary

/// All pictures of an animated JPEG XL, by libjxl, which lays each on the ones before it.
final class JXLAnimation: AnimationSource {
    private let reader: JXLReader
    private let size: PixelSize
    private let raster: Raster
    private var secondsPerTick: Double?
    private var isPremultiplied = false

    init(_ bytes: ByteView, size: PixelSize, budget: MemoryBudget) throws(Failure) {
        self.size = size
        raster = try Raster(size: size, layout: .rgba, depth: 8, budget: budget)
        reader = try JXLReader(bytes, events: JXL_DEC_FRAME.rawValue | JXL_DEC_FULL_IMAGE.rawValue)
    }

    /// - Returns: nil at the end.
    func next() throws(Failure) -> AnimationPicture? {
        guard try reader.finds(JXL_DEC_FRAME) else { return nil }
        let ticks = reader.frameTicks()
        if secondsPerTick == nil {
            let info = try reader.info()
            secondsPerTick =
                Double(max(1, info.animation.tps_denominator)) / Double(max(1, info.animation.tps_numerator))
            isPremultiplied = info.alpha_premultiplied != 0
        }
        var format = JxlPixelFormat(
            num_channels: 4, data_type: JXL_TYPE_UINT8, endianness: JXL_NATIVE_ENDIAN, align: 0)
        try reader.advance(to: JXL_DEC_NEED_IMAGE_OUT_BUFFER)
        try reader.setOutput(raster, &format)
        try reader.advance(to: JXL_DEC_FULL_IMAGE)
        var pixels = [UInt8](raster.pixels)
        if isPremultiplied { Self.straighten(&pixels) }
        return AnimationPicture(
            image: RGBAImage(width: size.width, height: size.height, pixels: pixels, hasAlpha: true),
            duration: Double(ticks) * (secondsPerTick ?? 0))
    }

    private static func straighten(_ pixels: inout [UInt8]) {
        for at in stride(from: 0, to: pixels.count - 3, by: 4) where pixels[at + 3] > 0 {
            let alpha = Int(pixels[at + 3])
            for channel in 0..<3 { pixels[at + channel] = UInt8(min(255, Int(pixels[at + channel]) * 255 / alpha)) }
        }
    }
}
