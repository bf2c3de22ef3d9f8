import Vocabulary

/// The parts of an upload, whose size may not be known yet. Pure.
struct UploadGrid: Sendable, Hashable {
    /// Bytes; nil while the file still grows.
    let size: Int?
    let partSize: Int

    private var grid: PartGrid? { size.flatMap { try? PartGrid(size: $0, partSize: partSize) } }
    var partCount: Int? { grid?.count }

    /// Why a file cannot be cut so; nil when it can.
    var fault: Failure? {
        guard PartLimits.bytesRange.contains(partSize) else {
            return Failure(
                .badRequest,
                "part_size has to be between \(PartLimits.bytesRange.lowerBound) and \(PartLimits.bytesRange.upperBound)."
            )
        }
        guard size == nil || grid != nil else {
            return Failure(
                .badRequest, "size_bytes does not fit into \(PartLimits.countMax) parts: choose a larger part_size.")
        }
        return nil
    }

    /// Whether a part has its place and length in the grid.
    func contains(number: Int, length: Int) -> Bool {
        guard size != nil else {
            return (1...PartLimits.countMax).contains(number) && (0...partSize).contains(length)
        }
        return grid?.contains(number: number, length: length) ?? false
    }
}
