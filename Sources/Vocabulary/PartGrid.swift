/// The fixed division of a file into parts: equal but the last.
public struct PartGrid: Sendable, Hashable {
    /// Bytes.
    public let size: Int
    public let partSize: Int

    public struct Part: Sendable, Hashable {
        /// From 1.
        public let number: Int
        public let offset: Int
        public let length: Int
    }

    /// - Throws: `too-large` for a file that does not fit into the largest number of parts of this size.
    public init(size: Int, partSize: Int) throws(Failure) {
        guard partSize > 0, size >= 0, Self.count(size, partSize) <= PartLimits.countMax else {
            throw Failure(
                .tooLarge, "The file is larger than can be uploaded.", detail: "\(size) bytes in parts of \(partSize)")
        }
        self.size = size
        self.partSize = partSize
    }

    private static func count(_ size: Int, _ partSize: Int) -> Int {
        max(1, size / partSize + (size.isMultiple(of: partSize) ? 0 : 1))
    }

    /// An empty file is one empty part.
    public var count: Int { Self.count(size, partSize) }

    public func part(_ number: Int) -> Part {
        let offset = (number - 1) * partSize
        return Part(number: number, offset: offset, length: min(partSize, size - offset))
    }

    public var parts: [Part] { (1...count).map(part) }

    /// Whether a part has its place and length in the grid.
    public func contains(number: Int, length: Int) -> Bool {
        (1...count).contains(number) && part(number).length == length
    }
}
