/// Boxes of the ISO base media file format (ISO/IEC 14496-12), one level at a time. Pure; every size is checked.
struct ISOBox {
    var type: String
    /// Without the header; cut where the bytes end.
    var body: ByteView
    /// False where the box says it is longer than what is there.
    var isWhole: Bool

    /// Boxes on one level of one file.
    static let countMax = 8192

    static func boxes(in bytes: ByteView) -> [ISOBox] {
        var result: [ISOBox] = []
        var offset = 0
        while result.count < countMax, let size32 = bytes.u32(at: offset), let type = bytes.fourCC(at: offset + 4) {
            var header = 8
            var size = Int(size32)
            if size32 == 1 {
                guard let large = bytes.u64(at: offset + 8).flatMap(Int.init(exactly:)) else { break }
                (header, size) = (16, large)
            } else if size32 == 0 {
                size = bytes.count - offset
            }
            guard size >= header else { break }
            let isWhole = size <= bytes.count - offset
            result.append(
                ISOBox(type: type, body: bytes.clamped(at: offset + header, count: size - header), isWhole: isWhole))
            guard isWhole else { break }
            offset += size
        }
        return result
    }

    /// The boxes inside, after the version and flags of a full box where there are any.
    func children(after header: Int = 0) -> [ISOBox] { Self.boxes(in: body.suffix(from: header)) }

    /// Of a full box.
    var version: UInt8 { body.byte(at: 0) ?? 0 }
}

extension [ISOBox] {
    func first(_ type: String) -> ISOBox? { first { $0.type == type } }
}
