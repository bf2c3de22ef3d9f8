/// The chunks of a WebP (RFC 9649), read without decoding. Pure; every length is checked.
struct WebPStructure {
    private(set) var canvas: PixelSize?
    private(set) var isAnimated = false
    private(set) var frames = 0
    /// Seconds.
    private(set) var duration = 0.0
    private(set) var profile: ByteView?
    private(set) var exif: [ByteView] = []
    private(set) var xmp: ByteView?
    private(set) var hasPixels = false
    private(set) var isLossless = false
    private(set) var hasAlpha = false
    /// The file is shorter than it says.
    private(set) var isCut = false

    static let chunkCountMax = 200_000

    init?(_ bytes: ByteView) {
        guard bytes.starts(with: "RIFF"), bytes.starts(with: "WEBP", at: 8),
            let length = bytes.u32(at: 4, bigEndian: false)
        else {
            return nil
        }
        // Odd lengths are padded, and some writers forget the last padding byte.
        isCut = Int(length) + 8 > bytes.count + 1
        let end = min(bytes.count, Int(length) + 8)
        var offset = 12
        for _ in 0..<Self.chunkCountMax where offset < end {
            guard let type = bytes.fourCC(at: offset),
                let size = bytes.u32(at: offset + 4, bigEndian: false).map(Int.init)
            else {
                return
            }
            if offset + 8 + size > bytes.count { isCut = true }
            read(type, bytes.clamped(at: offset + 8, count: size))
            offset += 8 + size + size & 1
        }
    }

    private mutating func read(_ type: String, _ body: ByteView) {
        switch type {
        case "VP8X":
            guard let flags = body.byte(at: 0), let width = body.u24(at: 4, bigEndian: false),
                let height = body.u24(at: 7, bigEndian: false)
            else { return }
            canvas = PixelSize(width: Int(width) + 1, height: Int(height) + 1)
            isAnimated = flags & 0x02 != 0
            hasAlpha = flags & 0x10 != 0
        case "VP8 ", "VP8L":
            hasPixels = true
            isLossless = type == "VP8L"
        case "ANMF":
            frames += 1
            hasPixels = true
            duration += AnimationDelay.shown(Double(body.u24(at: 12, bigEndian: false) ?? 0) / 1000)
        case "ICCP": profile = profile ?? body
        case "EXIF": if exif.count < JPEGStructure.exifCountMax { exif.append(body) }
        case "XMP ": xmp = xmp ?? body
        default: return
        }
    }
}
