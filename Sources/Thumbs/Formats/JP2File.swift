import FFmpeg
import Vocabulary

/// JPEG 2000 by FFmpeg.
struct JP2File: PictureFile {
    let header: PictureHeader
    private let input: PictureInput
    private let limits: MediaLimits
    private let layout: Raster.Layout
    /// The codestream ends with its mark.
    private let hasEnd: Bool

    init(_ input: PictureInput, limits: MediaLimits) throws(Failure) {
        self.input = input
        self.limits = limits
        guard let structure = JP2Structure(input.bytes) else {
            let isCut = ISOBox.boxes(in: input.bytes).contains { !$0.isWhole }
            throw isCut || input.bytes.count < 4096 ? .truncated("no codestream") : .corrupt("no codestream")
        }
        hasEnd = structure.hasEnd
        layout = structure.layout
        header = PictureHeader(
            size: structure.size, codec: "jpeg2000", pixelFormat: structure.pixelFormat,
            encoding: structure.profile.map { .profile($0) } ?? .plain)
        try header.admit(limits)
        if structure.isLab { throw .unsupported("JPEG 2000 in L*a*b*") }
        if structure.isCut { throw .truncated("the codestream goes beyond the end of the file") }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        // FFmpeg's coefficients, its picture of up to four 16-bit channels, its RGBA, and ours.
        try budget.admit(product(header.size.width, header.size.height, 32))
        let image: RGBAImage
        do throws(Failure) {
            image = try PictureDecoder.decodeFirstFrame(input.descriptor, pixelCountMax: limits.pixelCountMax)
        } catch {
            let found = Self.verdict(error)
            // FFmpeg tells a missing end from damage no more than by giving no picture.
            guard found.code == .corrupt || found.code == .truncated else { throw found }
            throw hasEnd ? .corrupt(found.detail ?? found.message) : .truncated(found.detail ?? found.message)
        }
        let raster = try Raster(
            size: PixelSize(width: image.width, height: image.height), layout: layout, depth: 8, budget: budget)
        // FFmpeg's four channels are the file's, or its grey three times with its alpha.
        switch layout {
        case .grey, .greyAlpha:
            let count = layout.channelCount
            for pixel in 0..<(image.pixels.count / 4) {
                raster.pixels[pixel * count] = image.pixels[pixel * 4]
                if layout == .greyAlpha { raster.pixels[pixel * count + 1] = image.pixels[pixel * 4 + 3] }
            }
        default: raster.pixels.copyBytes(from: image.pixels)
        }
        return DecodedPicture(raster: raster, encoding: header.encoding)
    }

    /// What FFmpeg refuses without a reason of its own is the file's fault: its bytes are all that it was given.
    static func verdict(_ failure: Failure) -> Failure {
        failure.code == .internalError ? .corrupt(failure.detail ?? failure.message) : failure
    }
}
