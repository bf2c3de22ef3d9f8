import Vocabulary

/// How long a file must be by its own header.
enum DeclaredLength {
    /// Recorders disagree by a padding byte or two.
    static let slack: Int64 = 16

    /// - Parameter head: the first `MediaFormat.headLength` bytes.
    /// - Returns: bytes from the start of the file; nil where the format does not say.
    static func bytes(_ format: MediaFormat?, head: [UInt8]) -> Int64? {
        switch format {
        case .avi, .wav: riff(head)
        case .matroska: matroska(head)
        case .asf: asf(head)
        case .flv: flv(head)
        default: nil
        }
    }

    static func isCut(_ format: MediaFormat?, head: [UInt8], size: Int64) -> Bool {
        bytes(format, head: head).map { $0 > size + slack } ?? false
    }

    private static func riff(_ head: [UInt8]) -> Int64? {
        guard head.count >= 12, head.starts(with: Array("RIFF".utf8)) else { return nil }
        let size = Int64(head.littleEndian(4, bytes: 4))
        // Streaming writers leave one of these two.
        return size == 0 || size == 0xFFFF_FFFF ? nil : size + 8
    }

    /// RFC 8794: EBML header, then the Segment, whose size may be unknown (all ones).
    private static func matroska(_ head: [UInt8]) -> Int64? {
        guard let header = element(head, at: 0), header.id == 0x1A45_DFA3, let headerSize = header.size,
            let segment = element(head, at: header.start + Int(headerSize)), segment.id == 0x1853_8067,
            let size = segment.size
        else { return nil }
        return Int64(segment.start) + size
    }

    private static func element(_ head: [UInt8], at offset: Int) -> (id: UInt64, size: Int64?, start: Int)? {
        guard head.indices.contains(offset), head[offset] != 0 else { return nil }
        let idLength = head[offset].leadingZeroBitCount + 1
        let sizeAt = offset + idLength
        guard idLength <= 4, head.indices.contains(sizeAt), head[sizeAt] != 0 else { return nil }
        let sizeLength = head[sizeAt].leadingZeroBitCount + 1
        guard sizeAt + sizeLength <= head.count else { return nil }
        let mask = (UInt64(1) << (7 * UInt64(sizeLength))) - 1
        let size = head.bigEndian(sizeAt, bytes: sizeLength) & mask
        return (head.bigEndian(offset, bytes: idLength), size == mask ? nil : Int64(size), sizeAt + sizeLength)
    }

    /// `filesize` of the script data, a number in AMF 0 (Adobe Flash Video File Format Specification, E.5).
    private static func flv(_ head: [UInt8]) -> Int64? {
        let key = Array("filesize".utf8) + [0]
        guard let at = head.firstIndex(of: key), head.count >= at + key.count + 8 else { return nil }
        let size = Double(bitPattern: head.bigEndian(at + key.count, bytes: 8))
        return size >= 1 && size < 1e15 ? Int64(size) : nil
    }

    /// The File Properties object says the length of the whole file (ASF specification, 3.2).
    private static func asf(_ head: [UInt8]) -> Int64? {
        guard let at = asfFileProperties(head), head.count >= at + 48 else { return nil }
        let size = Int64(bitPattern: head.littleEndian(at + 40, bytes: 8))
        return size > 0 ? size : nil
    }

    static func asfFileProperties(_ head: [UInt8]) -> Int? {
        head.firstIndex(of: [
            0xA1, 0xDC, 0xAB, 0x8C, 0x47, 0xA9, 0xCF, 0x11, 0x8E, 0xE4, 0x00, 0xC0, 0x0C, 0x20, 0x53, 0x65,
        ])
    }
}
