/// The headers of a JPEG 2000 picture (ISO/IEC 15444-1, annexes A and I), in its boxes or as a bare codestream, read without decoding. Pure.
struct JP2Structure {
    private(set) var size: PixelSize
    /// Of the deepest component.
    private(set) var depth = 0
    private(set) var componentCount: Int
    /// How many columns and rows share a sample of the second component.
    private(set) var subsampling = (horizontal: 1, vertical: 1)
    private(set) var profile: ByteView?
    private(set) var hasPalette = false
    /// The box of the codestream goes beyond the end of the file.
    private(set) var isCut = false
    /// EOC, the mark of its end, stands there.
    private(set) var hasEnd = false
    private var isCMYK = false
    /// CIE L*a*b*, which FFmpeg takes for RGB.
    private(set) var isLab = false
    private var isYCbCr = false

    /// What the samples are. A palette's colours, and luma and chroma, become RGB on the way.
    var layout: Raster.Layout {
        if isCMYK { return .cmyk }
        guard componentCount <= 2, !hasPalette else { return .rgba }
        return componentCount == 1 ? .grey : .greyAlpha
    }

    /// - Returns: nil where the file ends before the size, or has none.
    init?(_ bytes: ByteView) {
        var codestream = bytes
        var boxes: [ISOBox] = []
        if bytes.u16(at: 0) != 0xFF4F {
            boxes = ISOBox.boxes(in: bytes)
            guard let box = boxes.first("jp2c") else { return nil }
            (codestream, isCut) = (box.body, !box.isWhole)
        }
        // SIZ is the first segment.
        guard codestream.u32(at: 0) == 0xFF4F_FF51, let right = codestream.u32(at: 8).map(Int.init),
            let bottom = codestream.u32(at: 12).map(Int.init), let left = codestream.u32(at: 16).map(Int.init),
            let top = codestream.u32(at: 20).map(Int.init), let count = codestream.u16(at: 40).map(Int.init)
        else { return nil }
        hasEnd = codestream.u16(at: codestream.count - 2) == 0xFFD9
        size = PixelSize(width: max(0, right - left), height: max(0, bottom - top))
        componentCount = count
        for component in 0..<min(count, 4) {
            guard let precision = codestream.byte(at: 42 + 3 * component) else { return nil }
            depth = max(depth, Int(precision & 0x7F) + 1)
        }
        if count >= 3, let across = codestream.byte(at: 46), let down = codestream.byte(at: 47) {
            subsampling = (Int(across), Int(down))
        }
        let header = boxes.first("jp2h")?.children() ?? []
        hasPalette = header.first("pclr") != nil
        if let color = header.first("colr") {
            switch color.body.byte(at: 0) {
            // Numbers of tables I.10 and, in 15444-2, M.25; 18 is luma and chroma in sRGB's primaries.
            case 1:
                let space = color.body.u32(at: 3)
                (isCMYK, isLab, isYCbCr) = (space == 12 && count >= 4, space == 14, space == 18)
            case 2, 3: profile = color.body.suffix(from: 3)
            default: break
            }
        }
    }

    /// FFmpeg's name; nil for what has none that is known from the header.
    var pixelFormat: String? {
        if hasPalette { return "pal8" }
        if isCMYK { return "cmyk" }
        let isDeep = depth > 8
        switch componentCount {
        case 1: return isDeep ? "gray\(depth <= 10 ? 10 : depth <= 12 ? 12 : depth <= 14 ? 14 : 16)le" : "gray"
        case 2: return isDeep ? "ya16le" : "ya8"
        case 3 where isYCbCr || subsampling != (1, 1):
            let name: String
            switch subsampling {
            case (1, 1): name = "yuv444p"
            case (2, 1): name = "yuv422p"
            case (2, 2): name = "yuv420p"
            case (1, 2): name = "yuv440p"
            case (4, 1): name = "yuv411p"
            default: return nil
            }
            return isDeep ? "\(name)\(depth)le" : name
        case 3: return isDeep ? "rgb48le" : "rgb24"
        case 4: return isDeep ? "rgba64le" : "rgba"
        default: return nil
        }
    }
}
