import CHEIF
import FFmpeg
import Vocabulary

/// HEIC, HEIF and AVIF by libheif, which puts grids together and applies the container's own turns; EXIF's orientation is then void.
/// Sequences without a still item go to FFmpeg.
final class HEIFFile: PictureFile {
    let header: PictureHeader
    private let input: PictureInput
    private let limits: MediaLimits
    /// Nil for a sequence without a still.
    private let still: HEIFStill?
    /// Of a copy of the file with another table of items.
    private let copyBytes: Int

    init(_ input: PictureInput, format: MediaFormat, limits: MediaLimits) throws(Failure) {
        self.input = input
        self.limits = limits
        var (bytes, structure) = (input.bytes, HEIFStructure(input.bytes))
        var copyBytes = 0
        // The size is known before libheif looks at anything.
        if let size = structure.size {
            try PictureHeader(size: size, codec: "").admit(limits)
        }
        if structure.lacksBytes { throw .truncated("items or boxes beyond the end of the file") }
        if structure.needsOtherTable {
            // A copy of the file, which is mapped already, and one with the new table behind it.
            try MemoryBudget(limits, input: input).admit(
                sum(bytes.count, bytes.count, product(structure.tableBytes, 4)))
            if let resolved = HEIFItemTable.resolved(bytes, structure) {
                bytes = ByteView(resolved)
                copyBytes = bytes.count
                structure = HEIFStructure(bytes)
                if let size = structure.size { try PictureHeader(size: size, codec: "").admit(limits) }
            }
        }

        self.copyBytes = copyBytes

        var header: PictureHeader
        if let matrix = structure.matrix, !Self.isUnderstood(matrix), structure.chroma != HEIFStructure.Chroma.none {
            throw .unsupported("HEIF of matrix \(matrix)")
        }
        do throws(Failure) { still = try Self.still(bytes, structure) } catch {
            guard error.code == .corrupt, !structure.isOfKnownType else { throw error }
            throw .unsupported("HEIF of \(structure.codedItem?.type ?? "nothing")")
        }
        if still == nil, let sequence = structure.sequence {
            header = PictureHeader(size: sequence.size, codec: Self.codec(sequence.codec, format))
        } else {
            guard let still else { throw .corrupt("no picture") }
            header = PictureHeader(
                size: still.size, codec: Self.codec(structure.codedItem?.type, format), encoding: still.encoding,
                codePoints: still.codePoints, metadata: still.metadata)
            header.containerTurn = structure.turn
            header.hasGainMap = structure.hasGainMap
            header.pixelFormat = Self.pixelFormat(structure, depth: still.depth, hasAlpha: still.hasAlpha)
        }
        // libheif has turned the picture already.
        header.metadata.orientation = nil
        if let sequence = structure.sequence, structure.isSequence || structure.primary == nil, sequence.frames > 1 {
            header.frames = sequence.frames
            header.duration = sequence.duration
            header.metadata.written =
                header.metadata.written ?? CaptureTime(secondsSince1904: sequence.created, source: "mvhd")
        }
        try header.admit(limits)
        self.header = header
    }

    /// libheif takes the colours of all other matrices for those of BT.601. Beside those of luma and two differences it knows RGB, YCgCo and
    /// what follows from the primaries; constant luminance (10, 13) it shows as everybody does, like its neighbour.
    private static func isUnderstood(_ matrix: Int) -> Bool {
        [0, 8, 10, 12, 13].contains(matrix) || YCbCrCoding(matrix: matrix, isFullRange: true) != nil
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        guard let still else {
            try budget.admit(product(header.size.width, header.size.height, 16))
            let raster = try SequenceDecoder.firstFrame(input, limits: limits, budget: budget)
            return DecodedPicture(raster: raster, encoding: header.encoding)
        }
        return try still.decode(budget: budget.less(copyBytes))
    }

    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes? {
        try still?.decodePlanes(target, budget: budget.less(copyBytes))
    }

    /// - Returns: nil for a sequence without a still, or with one that libheif refuses: its first frame is the picture then.
    private static func still(_ bytes: ByteView, _ structure: HEIFStructure) throws(Failure) -> HEIFStill? {
        guard structure.sequence != nil else { return try HEIFStill(bytes, structure) }
        return structure.primary == nil ? nil : try? HEIFStill(bytes, structure)
    }

    private static func codec(_ type: String?, _ format: MediaFormat) -> String {
        switch type {
        case "hvc1", "hev1": "hevc"
        case "av01": "av1"
        case "avc1": "h264"
        case "jpeg": "mjpeg"
        case "j2k1": "jpeg2000"
        case "vvc1": "vvc"
        default: format == .avif ? "av1" : "hevc"
        }
    }

    private static func pixelFormat(_ structure: HEIFStructure, depth: Int, hasAlpha: Bool) -> String? {
        guard let chroma = structure.chroma else { return nil }
        // FFmpeg has grey with alpha in two depths only.
        if hasAlpha, chroma == HEIFStructure.Chroma.none { return depth > 8 ? "ya16le" : "ya8" }
        let name = [
            "gray", "yuv\(hasAlpha ? "a" : "")420p", "yuv\(hasAlpha ? "a" : "")422p", "yuv\(hasAlpha ? "a" : "")444p",
        ][chroma.rawValue]
        return depth > 8 ? "\(name)\(depth)le" : name
    }
}
