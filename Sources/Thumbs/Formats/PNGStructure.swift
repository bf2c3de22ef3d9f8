/// The chunks of a PNG (W3C PNG, third edition), read without inflating. Pure; every length is checked.
struct PNGStructure {
    private(set) var size: PixelSize?
    private(set) var depth = 0
    private(set) var colorType = 0
    private(set) var hasPixels = false
    private(set) var hasEnd = false
    private(set) var codePoints: CodePoints?
    /// The colours are in the limited range.
    private(set) var isLimited = false
    /// As it is stored: a name, then packed.
    private(set) var iccp: ByteView?
    private(set) var exif: [ByteView] = []
    /// Text that may hold EXIF or XMP, as it is stored.
    private(set) var texts: [(type: String, body: ByteView)] = []
    static let textCountMax = 16
    /// Of an animated PNG; 1 otherwise.
    private(set) var frames = 1
    /// Seconds that each picture of an animated PNG stands.
    private(set) var delays: [Double] = []
    var duration: Double { delays.reduce(0, +) }

    static let chunkCountMax = 1_000_000

    init?(_ bytes: ByteView) {
        guard bytes.u64(at: 0) == 0x8950_4E47_0D0A_1A0A else { return nil }
        var offset = 8
        for _ in 0..<Self.chunkCountMax {
            guard let length = bytes.u32(at: offset).map(Int.init), let type = bytes.fourCC(at: offset + 4) else {
                return
            }
            let body = bytes.clamped(at: offset + 8, count: length)
            read(type, body)
            // The checksum belongs to the chunk.
            guard length <= bytes.count - offset - 12 else {
                hasEnd = false
                return
            }
            if hasEnd { return }
            offset += 12 + length
        }
    }

    private mutating func read(_ type: String, _ body: ByteView) {
        switch type {
        case "IHDR":
            guard size == nil, let width = body.u32(at: 0), let height = body.u32(at: 4), let bits = body.byte(at: 8),
                let color = body.byte(at: 9)
            else { return }
            size = PixelSize(width: Int(width), height: Int(height))
            (depth, colorType) = (Int(bits), Int(color))
        case "IDAT": hasPixels = true
        case "IEND": hasEnd = true
        case "cICP":
            guard let primaries = body.byte(at: 0), let transfer = body.byte(at: 1), let matrix = body.byte(at: 2)
            else { return }
            codePoints = CodePoints(primaries: Int(primaries), transfer: Int(transfer), matrix: Int(matrix))
            isLimited = body.byte(at: 3) == 0
        case "iCCP": iccp = iccp ?? body
        case "eXIf": if exif.count < JPEGStructure.exifCountMax { exif.append(body) }
        case "tEXt", "zTXt", "iTXt":
            if texts.count < Self.textCountMax, PNGText.isMetadata(body) { texts.append((type, body)) }
        case "acTL": frames = max(1, Int(body.u32(at: 0) ?? 1))
        case "fcTL":
            guard let above = body.u16(at: 20), let below = body.u16(at: 22) else { return }
            // A denominator of 0 stands for hundredths.
            delays.append(AnimationDelay.shown(Double(above) / Double(below == 0 ? 100 : below)))
        default: return
        }
    }

    /// FFmpeg's name.
    var pixelFormat: String? {
        switch (colorType, depth) {
        case (0, 1): "monob"
        case (0, 2), (0, 4), (0, 8): "gray"
        case (0, 16): "gray16be"
        case (2, 8): "rgb24"
        case (2, 16): "rgb48be"
        case (3, _): "pal8"
        case (4, 8): "ya8"
        case (4, 16): "ya16be"
        case (6, 8): "rgba"
        case (6, 16): "rgba64be"
        default: nil
        }
    }
}
