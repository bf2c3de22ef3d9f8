import CJPEG
import Vocabulary

/// One pass of libjpeg-turbo over a picture, which gives its planes a few rows at a time.
final class JPEGReader {
    typealias Component = rushes_jpeg_component

    // libjpeg reads from these bytes for as long as it is open.
    private let bytes: ByteView
    private let pointer: UnsafeMutablePointer<rushes_jpeg>

    init(_ bytes: ByteView) throws(Failure) {
        self.bytes = bytes
        guard
            let pointer = rushes_jpeg_open(
                bytes.bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count, JPEGScanBounds.countMax)
        else { throw Failure(.overBudget, "There is not enough memory for this picture.") }
        self.pointer = pointer
        guard rushes_jpeg_read_header(pointer) != 0 else { throw .corrupt(words) }
    }
    deinit { rushes_jpeg_close(pointer) }

    /// Grey or YCbCr: what can be scaled as it is coded.
    var isPlanar: Bool { rushes_jpeg_is_planar(pointer) != 0 }
    /// Some of the data could not be read, and something stands in its place.
    var isDamaged: Bool { pointer.pointee.is_damaged != 0 }
    var size: PixelSize {
        PixelSize(width: Int(pointer.pointee.info.image_width), height: Int(pointer.pointee.info.image_height))
    }
    /// Coefficients of a picture that comes in several passes are held whole.
    var coefficientBytes: Int { Int(rushes_jpeg_coefficient_bytes(pointer)) }

    /// - Parameters:
    ///   - denominator: 1, 2, 4 or 8: the part of the full size that luma gets.
    ///   - chromaDenominator: the part of the full size that is enough for chroma, at least as great.
    ///   - readsHuffman: by the faster reader, where the data is sound; the library reads the same.
    func start(_ denominator: Int, chroma chromaDenominator: Int, readsHuffman: Bool = true) throws(Failure)
        -> [Component]
    {
        guard
            rushes_jpeg_start(pointer, UInt32(denominator), UInt32(chromaDenominator), readsHuffman ? 1 : 0) != 0
        else { throw .corrupt(words) }
        return (0..<pointer.pointee.info.num_components).map { rushes_jpeg_component_at(pointer, $0) }
    }

    /// Whether this build has the faster reader: it knows one version of the library, on one processor.
    static let canBeFaster = RUSHES_JPEG_READS_HUFFMAN != 0
    /// Whether it is at work, from `start` on.
    var isFaster: Bool { pointer.pointee.huffman.library != nil }

    /// The next rows of every component.
    /// - Parameter rows: for each component as many as it gives at a time.
    /// - Returns: false when there are no more.
    func read(_ rows: inout [UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?]) throws(Failure) -> Bool {
        let status = rushes_jpeg_read(pointer, &rows)
        if status == 0 { throw .corrupt(words) }
        return status > 0
    }

    var words: String {
        withUnsafePointer(to: &pointer.pointee.message) { tuple in
            tuple.withMemoryRebound(to: CChar.self, capacity: MemoryLayout.size(ofValue: tuple.pointee)) {
                String(cString: $0)
            }
        }
    }
}
