import Vocabulary

/// The fixed division of a file into parts: equal but the last.
struct PartGrid: Sendable, Hashable {
    /// Bytes.
    let size: Int
    let partSize: Int

    struct Part: Sendable, Hashable {
        /// From 1.
        let number: Int
        let offset: Int
        let length: Int
    }

    /// - Throws: `too-large` for a file that does not fit into the largest number of the largest parts.
    init(size: Int, partSize: Int) throws(Failure) {
        let count = max(1, (size + partSize - 1) / max(1, partSize))
        guard partSize > 0, count <= PartLimits.countMax else {
            throw Failure(
                .tooLarge, "The file is larger than can be uploaded.", detail: "\(size) bytes in parts of \(partSize)")
        }
        self.size = size
        self.partSize = partSize
    }

    /// An empty file is one empty part.
    var count: Int { max(1, (size + partSize - 1) / partSize) }

    func part(_ number: Int) -> Part {
        let offset = (number - 1) * partSize
        return Part(number: number, offset: offset, length: min(partSize, size - offset))
    }

    var parts: [Part] { (1...count).map(part) }
}
