/// The blocks of a GIF (CompuServe, GIF89a), read without decoding. Pure; every length is checked.
struct GIFStructure {
    /// What is needed to draw one image.
    struct Image {
        var left: Int
        var top: Int
        var size: PixelSize
        var isInterlaced: Bool
        /// Three bytes a colour.
        var palette: ByteView
        var transparentIndex: UInt8?
        var minimumCodeSize: Int
        /// The compressed stretches.
        var blocks: [ByteView]
    }

    static let frameCountMax = 100_000
    static let blockCountMax = 4_000_000

    private(set) var size: PixelSize
    private(set) var frames = 0
    /// Seconds.
    private(set) var duration = 0.0
    private(set) var first: Image?
    private(set) var hasTrailer = false
    /// The file ends inside a block.
    private(set) var isCut = false
    private(set) var xmp: ByteView?

    init?(_ bytes: ByteView) {
        guard bytes.starts(with: "GIF87a") || bytes.starts(with: "GIF89a"),
            let width = bytes.u16(at: 6, bigEndian: false), let height = bytes.u16(at: 8, bigEndian: false),
            let flags = bytes.byte(at: 10)
        else { return nil }
        size = PixelSize(width: Int(width), height: Int(height))
        var offset = 13
        var palette = bytes.clamped(at: 0, count: 0)
        if flags & 0x80 != 0 {
            palette = bytes.clamped(at: offset, count: 3 << (Int(flags & 7) + 1))
            offset += 3 << (Int(flags & 7) + 1)
        }
        var delay = 0
        var transparent: UInt8?
        var blocksLeft = Self.blockCountMax
        while frames < Self.frameCountMax {
            guard let kind = bytes.byte(at: offset) else {
                // Many writers leave out the trailer, so a file that ends between blocks is whole.
                return
            }
            switch kind {
            case 0x3B:
                hasTrailer = true
                return
            case 0x21:
                let label = bytes.byte(at: offset + 1)
                if label == 0xF9, let packed = bytes.byte(at: offset + 3) {
                    delay = Int(bytes.u16(at: offset + 4, bigEndian: false) ?? 0)
                    transparent = packed & 1 == 0 ? nil : bytes.byte(at: offset + 6)
                }
                if label == 0xFF, bytes.starts(with: "XMP DataXMP", at: offset + 3) {
                    xmp = bytes.suffix(from: offset + 14)
                }
                guard let end = Self.skipBlocks(bytes, from: offset + 2, left: &blocksLeft, into: nil) else {
                    isCut = true
                    return
                }
                offset = end
            case 0x2C:
                guard let left = bytes.u16(at: offset + 1, bigEndian: false),
                    let top = bytes.u16(at: offset + 3, bigEndian: false),
                    let width = bytes.u16(at: offset + 5, bigEndian: false),
                    let height = bytes.u16(at: offset + 7, bigEndian: false), let packed = bytes.byte(at: offset + 9)
                else {
                    isCut = true
                    return
                }
                offset += 10
                var colors = palette
                if packed & 0x80 != 0 {
                    colors = bytes.clamped(at: offset, count: 3 << (Int(packed & 7) + 1))
                    offset += 3 << (Int(packed & 7) + 1)
                }
                let codeSize = Int(bytes.byte(at: offset) ?? 0)
                var blocks: [ByteView] = []
                let end =
                    first == nil
                    ? Self.skipBlocks(bytes, from: offset + 1, left: &blocksLeft) { blocks.append($0) }
                    : Self.skipBlocks(bytes, from: offset + 1, left: &blocksLeft, into: nil)
                if first == nil {
                    first = Image(
                        left: Int(left), top: Int(top), size: PixelSize(width: Int(width), height: Int(height)),
                        isInterlaced: packed & 0x40 != 0, palette: colors, transparentIndex: transparent,
                        minimumCodeSize: codeSize, blocks: blocks)
                }
                frames += 1
                duration += AnimationDelay.shown(Double(delay) / 100)
                (delay, transparent) = (0, nil)
                guard let end else {
                    isCut = true
                    return
                }
                offset = end
            case 0x00: offset += 1
            default: return
            }
        }
    }

    /// - Returns: the place behind the empty block that ends the row of blocks; nil when the file ends first.
    private static func skipBlocks(
        _ bytes: ByteView, from start: Int, left: inout Int, into take: ((ByteView) -> Void)?
    )
        -> Int?
    {
        var offset = start
        while left > 0, let length = bytes.byte(at: offset) {
            left -= 1
            if length == 0 { return offset + 1 }
            take?(bytes.clamped(at: offset + 1, count: Int(length)))
            offset += 1 + Int(length)
        }
        return nil
    }
}
