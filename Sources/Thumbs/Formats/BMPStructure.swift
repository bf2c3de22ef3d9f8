/// The headers of a BMP (Microsoft, BITMAPFILEHEADER to BITMAPV5HEADER; OS/2's two), read without pixels. Pure.
struct BMPStructure {
    enum Compression { case none, rle8, rle4, unsupported(Int) }

    /// Where one channel lies in a pixel.
    struct Mask: Equatable {
        var shift: Int
        /// The largest value.
        var max: UInt32

        init?(_ bits: UInt32) {
            guard bits != 0 else { return nil }
            shift = bits.trailingZeroBitCount
            max = bits >> UInt32(shift)
            // The bits of a channel lie side by side.
            guard max & (max &+ 1) == 0 else { return nil }
        }

        /// From 0 to 255.
        func value(_ pixel: UInt32) -> UInt8 {
            UInt8((UInt64(pixel >> UInt32(shift) & max) * 255 + UInt64(max / 2)) / UInt64(max))
        }
    }

    private(set) var size: PixelSize
    private(set) var isTopDown = false
    private(set) var bits: Int
    private(set) var compression = Compression.none
    /// Red, green, blue of a pixel of 16, 24 or 32 bits; nil for a channel that has none.
    private(set) var masks: [Mask?] = []
    /// Only where a mask tells of it: the fourth byte of other pixels is filled with anything.
    private(set) var alpha: Mask?
    /// Blue, green, red, and a fourth byte or none.
    private(set) var palette: ByteView
    private(set) var paletteEntryBytes = 4
    private(set) var profile: ByteView?
    let pixelOffset: Int

    /// - Returns: nil where the file ends inside the headers, or has none that are known.
    init?(_ bytes: ByteView) {
        func u16(_ offset: Int) -> Int? { bytes.u16(at: offset, bigEndian: false).map(Int.init) }
        func u32(_ offset: Int) -> Int? { bytes.u32(at: offset, bigEndian: false).map(Int.init) }
        guard let start = u32(10), let headerBytes = u32(14), headerBytes <= 124 else { return nil }
        pixelOffset = start
        palette = bytes.clamped(at: 0, count: 0)
        if headerBytes == 12 {
            guard let width = u16(18), let height = u16(20), let bits = u16(24) else { return nil }
            (size, self.bits) = (PixelSize(width: width, height: height), bits)
            paletteEntryBytes = 3
        } else {
            guard headerBytes >= 16, let width = u32(18), let height = bytes.u32(at: 22, bigEndian: false),
                let bits = u16(28)
            else { return nil }
            // A negative height means rows from the top.
            let signed = Int32(bitPattern: height)
            isTopDown = signed < 0
            size = PixelSize(
                width: Swift.max(0, Int(Int32(truncatingIfNeeded: width))), height: Int(signed.magnitude))
            self.bits = bits
        }
        // What a short header leaves out is 0.
        func field(_ offset: Int) -> Int { headerBytes >= offset - 14 + 4 && headerBytes > 12 ? u32(offset) ?? 0 : 0 }
        let code = field(30)
        var tableOffset = 14 + headerBytes
        switch code {
        case 0: break
        case 1 where bits == 8: compression = .rle8
        case 2 where bits == 4: compression = .rle4
        // OS/2 counts other ways of packing with the same numbers.
        case 3 where headerBytes != 64 && (bits == 16 || bits == 32), 6 where bits == 16 || bits == 32:
            let count = headerBytes >= 56 ? 4 : code == 6 ? 4 : 3
            // The shortest header has them behind itself.
            masks = (0..<3).map { Mask(bytes.u32(at: 54 + 4 * $0, bigEndian: false) ?? 0) }
            if count == 4 { alpha = Mask(bytes.u32(at: 66, bigEndian: false) ?? 0) }
            if headerBytes == 40 { tableOffset += 4 * count }
        default: compression = .unsupported(code)
        }
        if masks.isEmpty {
            let fields: [UInt32] =
                bits == 16 ? [0x7C00, 0x3E0, 0x1F] : bits >= 24 ? [0xFF0000, 0xFF00, 0xFF] : []
            masks = fields.map { Mask($0) }
        }
        if bits <= 8 {
            // What the header says of the number is often wrong; where the pixels begin is not.
            let stated = field(46)
            let count = Swift.min(stated > 0 && stated <= 256 ? stated : 1 << bits, 256)
            palette = bytes.clamped(
                at: tableOffset, count: Swift.min(count * paletteEntryBytes, Swift.max(0, start - tableOffset)))
        }
        // 'MBED': the profile is in the file.
        if headerBytes >= 124, field(70) == 0x4D42_4544, field(126) > 0, field(130) > 0 {
            profile = bytes.slice(at: 14 + field(126), count: field(130))
        }
    }

    var rowBytes: Int? { product(size.width, bits).map { ($0 + 31) / 32 * 4 } }

    var isGrey: Bool { bits == 8 && palette.isEmpty }

    /// FFmpeg's name.
    var pixelFormat: String? {
        switch bits {
        case 8 where isGrey: "gray"
        case 1, 2, 4, 8: "pal8"
        case 16 where masks.map({ $0?.max }) == [31, 31, 31]: "rgb555le"
        case 16 where masks.map({ $0?.max }) == [31, 63, 31]: "rgb565le"
        case 16 where masks.map({ $0?.max }) == [15, 15, 15]: "rgb444le"
        case 24: "bgr24"
        case 32 where masks.map({ $0?.shift }) == [16, 8, 0]: alpha == nil ? "bgr0" : "bgra"
        case 32 where masks.map({ $0?.shift }) == [0, 8, 16]: alpha == nil ? "rgb0" : "rgba"
        case 32 where masks.map({ $0?.shift }) == [24, 16, 8]: alpha == nil ? "0bgr" : "abgr"
        default: nil
        }
    }
}
