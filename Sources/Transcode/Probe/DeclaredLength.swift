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
        case .mxf: mxf(head)
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

    /// The partition pack of the header (SMPTE ST 377-1, 7.1) says where the footer begins; 0 where the recording was not finished.
    private static func mxf(_ head: [UInt8]) -> Int64? {
        let keyLength = 16, footerAt = 24, headerPartition: UInt8 = 2, longForm: UInt8 = 0x80
        guard head.count > keyLength, head[13] == headerPartition, head[keyLength] >= longForm else { return nil }
        let place = keyLength + 1 + Int(head[keyLength] & ~longForm) + footerAt
        guard head.count >= place + 8 else { return nil }
        let footer = Int64(bitPattern: head.bigEndian(place, bytes: 8))
        return footer > 0 ? footer : nil
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

    /// The Content Encryption object and the extended one (3.14, 3.15): what FFmpeg decodes of such a file is noise.
    static func asfIsProtected(_ head: [UInt8]) -> Bool {
        let objects: [[UInt8]] = [
            [0xFB, 0xB3, 0x11, 0x22, 0x23, 0xBD, 0xD2, 0x11, 0xB4, 0xB7, 0x00, 0xA0, 0xC9, 0x55, 0xFC, 0x6E],
            [0x14, 0xE6, 0x8A, 0x29, 0x22, 0x26, 0x17, 0x4C, 0xB9, 0x35, 0xDA, 0xE0, 0x7E, 0xE9, 0x28, 0x9C],
        ]
        return objects.contains { head.firstIndex(of: $0) != nil }
    }
}
