import Vocabulary

/// What a picture file says before any pixel is decoded.
struct PictureHeader {
    /// As stored.
    var size: PixelSize
    /// What is still to be done to the decoded picture.
    var orientation: Orientation = .upright
    /// What the decoder does by itself (HEIF's `irot` and `imir`); only for the facts.
    var containerTurn: Orientation?
    /// FFmpeg's name.
    var codec: String
    /// FFmpeg's name of what the file holds.
    var pixelFormat: String?
    var encoding: ColorEncoding = .plain
    /// Written down beside a profile, or instead of one.
    var codePoints: CodePoints?
    /// A second picture says where the first is to be brighter on a screen that can.
    var hasGainMap = false
    var metadata = PhotoMetadata()
    /// More than one makes it an animation.
    var frames: Int = 1
    /// Seconds of an animation.
    var duration: Double?
    var warnings: [MediaWarning] = []

    var upright: PixelSize { orientation.size(ofStored: size) }

    /// Pixels along one side. The longest panoramas have some hundred thousand; beyond that, each row or column costs more than its pixels.
    static let sideMax = 1 << 20

    /// - Throws: `corrupt` for a size of nothing, `too-large` for more pixels than the bound, or a longer side.
    func admit(_ limits: MediaLimits) throws(Failure) {
        guard size.width > 0, size.height > 0 else {
            throw Failure(.corrupt, "The picture is damaged: it says it has no size.")
        }
        guard let area = size.area, area <= limits.pixelCountMax, max(size.width, size.height) <= Self.sideMax else {
            throw Failure(
                .tooLarge, "The picture has more pixels than can be worked on.",
                detail: "\(size.width)x\(size.height), allowed \(limits.pixelCountMax)")
        }
    }
}

/// A picture's bytes, and the descriptor for a library that reads for itself.
struct PictureInput {
    var bytes: ByteView
    var descriptor: Int32

    init(_ descriptor: Int32) throws(Failure) {
        bytes = ByteView(try ByteStore(mapping: descriptor))
        self.descriptor = descriptor
    }
}

/// A picture file of one format. Opening reads the header, checks it against the limits and finds a missing end.
protocol PictureFile {
    var header: PictureHeader { get }
    /// The stored picture (not turned), at least `longSide` long where it has so much.
    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture
    /// The stored picture in exactly this size, without a way through RGB; nil for a picture that is not coded so.
    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes?
    /// The stored picture in exactly this size, on white, from rows as they are decoded; nil for one that does not come in rows.
    func decodeRows(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPicture?
    /// Reads all of the picture at the least cost, to find what is damaged.
    func tryPixels(budget: MemoryBudget) throws(Failure) -> [MediaWarning]
}

extension PictureFile {
    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes? { nil }
    func decodeRows(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPicture? { nil }
    func tryPixels(budget: MemoryBudget) throws(Failure) -> [MediaWarning] {
        let least = PixelSize(width: 1, height: 1)
        if let planes = try decodePlanes(least, budget: budget) { return planes.warnings }
        if let picture = try decodeRows(least, budget: budget) { return picture.warnings }
        return try decode(longSide: 1, budget: budget).warnings
    }
}

struct DecodedPlanes {
    /// In 4:2:0.
    var planes: Planes
    var coding = YCbCrCoding.jpeg
    /// What their RGB means.
    var encoding: ColorEncoding
    var warnings: [MediaWarning] = []
}

struct DecodedPicture {
    var raster: Raster
    /// What its numbers mean.
    var encoding: ColorEncoding
    var warnings: [MediaWarning] = []

    static let damaged = MediaWarning("damaged-picture", "Parts of the picture are damaged.")
}

extension Failure {
    static func truncated(_ detail: String) -> Failure {
        Failure(.truncated, "The end of the picture is missing. Copy it again from where it came from.", detail: detail)
    }
    static func corrupt(_ detail: String) -> Failure {
        Failure(.corrupt, "The picture is damaged and cannot be read.", detail: detail)
    }
    static func unsupported(_ what: String) -> Failure {
        Failure(.unsupportedCodec, "This kind of picture cannot be decoded here: \(what).")
    }
}
