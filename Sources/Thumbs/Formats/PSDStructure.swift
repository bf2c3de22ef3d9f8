/// The header and the resources of a Photoshop file (Adobe, "Photoshop File Formats"), read without pixels. Pure.
struct PSDStructure {
    private(set) var size: PixelSize
    private(set) var channels: Int
    private(set) var depth: Int
    private(set) var mode: Int
    private(set) var isLarge: Bool
    private(set) var palette: ByteView
    private(set) var profile: ByteView?
    private(set) var exif: ByteView?
    private(set) var xmp: ByteView?
    private(set) var iptc: ByteView?
    /// A channel of the merged picture is its transparency. Its colours lie on white all the same.
    private(set) var hasAlpha = false
    /// Photoshop was told to leave the merged picture out: what stands in its place is blank.
    private(set) var lacksMergedPicture = false
    /// Where the merged picture's compression is told; nil when the file ends before.
    private(set) var pictureOffset: Int?

    init?(_ bytes: ByteView) {
        guard bytes.starts(with: "8BPS"), let version = bytes.u16(at: 4), version == 1 || version == 2,
            let channels = bytes.u16(at: 12), let height = bytes.u32(at: 14), let width = bytes.u32(at: 18),
            let depth = bytes.u16(at: 22), let mode = bytes.u16(at: 24)
        else { return nil }
        isLarge = version == 2
        size = PixelSize(width: Int(width), height: Int(height))
        (self.channels, self.depth, self.mode) = (Int(channels), Int(depth), Int(mode))
        palette = bytes.clamped(at: 0, count: 0)
        guard let paletteLength = bytes.u32(at: 26).map(Int.init) else { return }
        palette = bytes.clamped(at: 30, count: paletteLength)
        let resources = 30 + paletteLength
        guard let resourcesLength = bytes.u32(at: resources).map(Int.init) else { return }
        readResources(bytes.clamped(at: resources + 4, count: resourcesLength))
        let layers = resources + 4 + resourcesLength
        let layersLength =
            isLarge ? bytes.u64(at: layers).flatMap(Int.init(exactly:)) : bytes.u32(at: layers).map(Int.init)
        // The layers' own length, then their number: below 0 it says that the first channel behind the colours is transparency.
        let ownLength = isLarge ? bytes.u64(at: layers + 8) : bytes.u32(at: layers + 4).map(UInt64.init)
        if let layersLength, layersLength > 0, let ownLength, ownLength > 0 {
            hasAlpha = bytes.u16(at: layers + (isLarge ? 16 : 8)).map { $0 >> 15 == 1 } ?? false
        }
        // Of a picture without layers there is no other.
        if layersLength == 0 { lacksMergedPicture = false }
        guard let layersLength, let offset = sum(layers, isLarge ? 8 : 4, layersLength), offset + 2 <= bytes.count
        else { return }
        pictureOffset = offset
    }

    /// FFmpeg's name, as far as it has one.
    var pixelFormat: String? {
        switch (mode, depth) {
        case (1, 8), (8, 8): hasAlpha ? "ya8" : "gray"
        case (1, 16), (8, 16): hasAlpha ? "ya16be" : "gray16be"
        case (2, 8): "pal8"
        case (3, 8): hasAlpha ? "gbrap" : "gbrp"
        case (3, 16): hasAlpha ? "gbrap16be" : "gbrp16be"
        case (4, 8): "cmyk"
        default: nil
        }
    }

    private mutating func readResources(_ bytes: ByteView) {
        for (id, body) in PhotoshopResources.read(bytes) {
            switch id {
            case PhotoshopResources.iptc: iptc = body
            case 1039: profile = body
            // A version, then whether the merged picture is one.
            case 1057: lacksMergedPicture = body.byte(at: 4) == 0
            case 1058: exif = body
            case 1060: xmp = body
            default: continue
            }
        }
    }
}
