/// Finds boxes of an ISO base media file (ISO/IEC 14496-12) by their path.
enum ISOBoxWalk {
    /// Boxes looked at in one level; more come from damaged headers.
    private static let boxMax = 4096

    /// - Parameters:
    ///   - path: of the boxes around.
    ///   - visit: gets each box inside them, with the range of its content.
    static func boxes(
        of input: DescriptorInput, in range: Range<Int64>? = nil, _ path: ArraySlice<String>,
        visit: (_ type: String, _ content: Range<Int64>) -> Void
    ) {
        let range = range ?? 0..<input.size
        var offset = range.lowerBound
        for _ in 0..<boxMax {
            let header = input.bytes(at: offset, count: 16)
            guard header.count >= 8 else { return }
            var size = Int64(number(header, 0, 4)), headerLength: Int64 = 8
            if size == 1, header.count == 16 {
                size = Int64(bitPattern: number(header, 8, 8))
                headerLength = 16
            }
            if size == 0 { size = range.upperBound - offset }
            guard size >= headerLength, size <= range.upperBound - offset else { return }
            let type = String(decoding: header[4..<8], as: UTF8.self)
            let content = (offset + headerLength)..<(offset + size)
            if path.isEmpty {
                visit(type, content)
            } else if type == path.first {
                boxes(of: input, in: content, path.dropFirst(), visit: visit)
            }
            offset += size
        }
    }

    /// Big-endian.
    static func number<Bytes: Collection>(_ bytes: Bytes, _ offset: Int, _ count: Int) -> UInt64
    where Bytes.Element == UInt8, Bytes.Index == Int {
        (offset..<(offset + count)).reduce(0) { $0 << 8 | UInt64(bytes[$1]) }
    }
}
