import Vocabulary

/// How a file is cut into parts: all of one size but the last. Pure.
struct PartGrid: Sendable, Hashable {
    /// Bytes; nil while the file still grows.
    let size: Int?
    let partSize: Int

    /// A file without bytes is one part without bytes.
    var partCount: Int? { size.map { max(1, ($0 + partSize - 1) / partSize) } }

    /// Why a file cannot be cut so; nil when it can.
    var fault: Failure? {
        guard PartLimits.bytesRange.contains(partSize) else {
            return Failure(
                .badRequest,
                "part_size has to be between \(PartLimits.bytesRange.lowerBound) and \(PartLimits.bytesRange.upperBound)."
            )
        }
        guard let size else { return nil }
        guard size >= 0, size <= partSize * PartLimits.countMax else {
            return Failure(
                .badRequest, "size_bytes does not fit into \(PartLimits.countMax) parts: choose a larger part_size.")
        }
        return nil
    }

    /// Whether a part has its place and length in the grid.
    func contains(number: Int, length: Int) -> Bool {
        guard (1...(partCount ?? PartLimits.countMax)).contains(number) else { return false }
        guard let size, let partCount else { return (0...partSize).contains(length) }
        return length == (number < partCount ? partSize : size - (partCount - 1) * partSize)
    }
}
