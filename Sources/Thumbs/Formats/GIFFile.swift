import Vocabulary

/// GIF: its first picture, and how many there are.
struct GIFFile: PictureFile {
    let header: PictureHeader
    /// One code stands for as many indices as the dictionary has places, at most.
    private static let pixelsPerByteMax = 4096

    private let image: GIFStructure.Image

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = GIFStructure(bytes) else { throw .truncated("no screen descriptor") }
        var header = PictureHeader(
            size: structure.size, codec: "gif", pixelFormat: "bgra", frames: max(1, structure.frames))
        // Some writers leave the screen empty and mean the first picture.
        if structure.size.width == 0 || structure.size.height == 0, let first = structure.first {
            header.size = first.size
        }
        if structure.frames > 1 { header.duration = structure.duration }
        if let xmp = structure.xmp { header.metadata = XMP.read(xmp) }
        try header.admit(limits)
        self.header = header
        if structure.isCut { throw .truncated("the file ends inside a block") }
        guard let first = structure.first else {
            throw structure.hasTrailer ? .corrupt("no picture") : .truncated("no picture")
        }
        // A picture may be larger than its screen.
        try PictureHeader(size: first.size, codec: "gif").admit(limits)
        guard first.left < header.size.width, first.top < header.size.height else {
            throw .corrupt("the picture lies outside its screen")
        }
        // What cannot fill the picture is found before any of it is drawn.
        let byteCount = first.blocks.reduce(0) { $0 + $1.count }
        guard let area = first.size.area, let most = product(byteCount, Self.pixelsPerByteMax), area <= most else {
            throw .truncated("\(byteCount) bytes for \(first.size.width)x\(first.size.height)")
        }
        image = first
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        try budget.admit(
            sum(Raster.byteCount(header.size, layout: .rgba, depth: 8), image.size.area.map { $0 * 2 }))
        let raster = try Raster(size: header.size, layout: .rgba, depth: 8, budget: budget)
        let (decoded, drawn) = GIFDecoder(image).draw(on: raster)
        guard drawn > 0 else { throw .corrupt("\(decoded) pixels") }
        let warnings = decoded == image.size.area ? [] : [DecodedPicture.damaged]
        return DecodedPicture(raster: raster, encoding: .plain, warnings: warnings)
    }
}
