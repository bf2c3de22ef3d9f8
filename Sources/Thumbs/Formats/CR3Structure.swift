/// Canon's CR3 (boxes of ISO media around EXIF blocks and JPEGs; lclevy.free.fr/cr3), read without decoding. Pure.
struct CR3Structure {
    private(set) var metadata = PhotoMetadata()
    /// The size of the camera's own JPEG, the picture that the photographer saw.
    private(set) var size: PixelSize?
    /// A JPEG of middle size.
    private(set) var preview: ByteView?
    /// The camera's own JPEG in full size.
    private(set) var fullPicture: ByteView?
    /// A box goes beyond the end of the file.
    private(set) var isCut = false
    private(set) var hasPixels = false

    init(_ bytes: ByteView) {
        for box in ISOBox.boxes(in: bytes) {
            isCut = isCut || !box.isWhole
            switch box.type {
            case "moov": readMovie(box, in: bytes)
            case "mdat": hasPixels = true
            // The box of the preview starts with its UUID and 8 bytes before the boxes inside.
            case "uuid" where box.body.u32(at: 0) == 0xEAF4_2B5E:
                if let found = box.children(after: 24).first("PRVW"), let length = found.body.u32(at: 12) {
                    preview = found.body.slice(at: 16, count: Int(length))
                }
            default: continue
            }
        }
    }

    private mutating func readMovie(_ movie: ISOBox, in bytes: ByteView) {
        let boxes = movie.children()
        if let canon = boxes.first(where: { $0.type == "uuid" && $0.body.u32(at: 0) == 0x85C0_B687 })?.children(
            after: 16)
        {
            metadata = EXIF.read(
                main: canon.first("CMT1")?.body, photo: canon.first("CMT2")?.body, place: canon.first("CMT4")?.body)
        }
        let table = boxes.first("trak")?.children().first("mdia")?.children().first("minf")?.children().first("stbl")?
            .children()
        guard let table, let entry = table.first("stsd")?.children(after: 8).first, let width = entry.body.u16(at: 24),
            let height = entry.body.u16(at: 26)
        else { return }
        size = PixelSize(width: Int(width), height: Int(height))
        let length = table.first("stsz")?.body.u32(at: 4)
        let offset = table.first("co64")?.body.u64(at: 8).flatMap(Int.init(exactly:))
        if let length, let offset { fullPicture = bytes.slice(at: offset, count: Int(length)) }
    }
}
