import FFmpeg
import Vocabulary

/// BMP and JPEG 2000 by FFmpeg.
struct FFmpegFile: PictureFile {
    let header: PictureHeader
    private let input: PictureInput
    private let limits: MediaLimits

    init(_ input: PictureInput, format: MediaFormat, limits: MediaLimits) throws(Failure) {
        self.input = input
        self.limits = limits
        if format == .bmp { try Self.checkBMP(input.bytes, limits: limits) }
        let found: PictureDecoder.Header
        do throws(Failure) { found = try PictureDecoder.header(input.descriptor) } catch { throw Self.verdict(error) }
        header = PictureHeader(
            size: PixelSize(width: found.width, height: found.height), codec: found.codec ?? format.rawValue,
            pixelFormat: found.pixelFormat.name)
        try header.admit(limits)
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        try Self.decode(input, header: header, limits: limits, budget: budget)
    }

    /// What FFmpeg refuses without a reason of its own is the file's fault: its bytes are all that it was given.
    static func verdict(_ failure: Failure) -> Failure {
        failure.code == .internalError ? .corrupt(failure.detail ?? failure.message) : failure
    }

    static func decode(_ input: PictureInput, header: PictureHeader, limits: MediaLimits, budget: MemoryBudget)
        throws(Failure) -> DecodedPicture
    {
        // FFmpeg's picture of up to four 16-bit channels, its RGBA, and ours.
        try budget.admit(product(header.size.width, header.size.height, 16))
        let image: RGBAImage
        do throws(Failure) {
            image = try PictureDecoder.decodeFirstFrame(input.descriptor, pixelCountMax: limits.pixelCountMax)
        } catch { throw verdict(error) }
        let raster = try Raster(
            size: PixelSize(width: image.width, height: image.height), layout: .rgba, depth: 8, budget: budget)
        raster.pixels.copyBytes(from: image.pixels)
        return DecodedPicture(raster: raster, encoding: image.profile.map { .profile(ByteView($0)) } ?? header.encoding)
    }

    /// The header is plain enough to see a bomb or a missing end before FFmpeg opens it.
    private static func checkBMP(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let start = bytes.u32(at: 10, bigEndian: false), let headerSize = bytes.u32(at: 14, bigEndian: false)
        else {
            throw .truncated("no header")
        }
        guard headerSize >= 40, let width = bytes.u32(at: 18, bigEndian: false),
            let height = bytes.u32(at: 22, bigEndian: false),
            let bits = bytes.u16(at: 28, bigEndian: false), let compression = bytes.u32(at: 30, bigEndian: false)
        else { return }
        // A negative height means rows from the top.
        let size = PixelSize(
            width: Int(Int32(bitPattern: width).magnitude), height: Int(Int32(bitPattern: height).magnitude))
        try PictureHeader(size: size, codec: "bmp").admit(limits)
        guard compression == 0 || compression == 3, let rowBits = product(size.width, Int(bits)),
            let needed = product((rowBits + 31) / 32 * 4, size.height)
        else { return }
        if sum(Int(start), needed).map({ $0 > bytes.count }) ?? true { throw .truncated("\(needed) bytes of pixels") }
    }
}
