/// The tag structure that TIFF, EXIF, DNG and most raw formats share (TIFF 6.0, section 2; BigTIFF). Reads tags, no pixels.
struct TIFFStructure {
    struct Entry {
        var tag: UInt16
        var type: UInt16
        var count: Int
        /// The value's bytes, wherever they are; empty when they lie outside the file.
        var value: ByteView
    }

    struct Directory {
        var entries: [Entry]
        /// 0 after the last.
        var next: Int
        func entry(_ tag: UInt16) -> Entry? { entries.first { $0.tag == tag } }
    }

    /// More tags than any camera writes.
    static let entryCountMax = 4096
    /// Directories followed in one file.
    static let directoryCountMax = 64

    let bytes: ByteView
    let isBigEndian: Bool
    let isBig: Bool
    let firstDirectory: Int
    /// The number behind the byte order.
    let magic: UInt16
    static let panasonic: UInt16 = 0x55

    /// Directories without a header before them.
    init(directoriesIn bytes: ByteView, isBigEndian: Bool) {
        self.bytes = bytes
        self.isBigEndian = isBigEndian
        (isBig, firstDirectory, magic) = (false, 0, 42)
    }

    /// - Returns: nil when the bytes do not start with a TIFF header.
    init?(_ bytes: ByteView) {
        self.bytes = bytes
        if bytes.starts(with: "II") {
            isBigEndian = false
        } else if bytes.starts(with: "MM") {
            isBigEndian = true
        } else {
            return nil
        }
        guard let magic = bytes.u16(at: 2, bigEndian: isBigEndian) else { return nil }
        self.magic = magic
        isBig = magic == 43
        if isBig {
            guard let offset = bytes.u64(at: 8, bigEndian: isBigEndian), let first = Int(exactly: offset) else {
                return nil
            }
            firstDirectory = first
        } else {
            // 42, or the marks of Olympus (RO, RS) and Panasonic.
            guard [42, 0x4F52, 0x5352, Self.panasonic].contains(magic),
                let offset = bytes.u32(at: 4, bigEndian: isBigEndian)
            else { return nil }
            firstDirectory = Int(offset)
        }
    }

    /// - Returns: nil when the directory does not lie inside the bytes.
    func directory(at offset: Int) -> Directory? {
        let (countSize, entrySize, inlineSize) = isBig ? (8, 20, 8) : (2, 12, 4)
        guard offset > 0, let count = isBig ? u64(at: offset) : u16(at: offset), count <= Self.entryCountMax else {
            return nil
        }
        let start = offset + countSize
        var entries: [Entry] = []
        for index in 0..<count {
            let position = start + index * entrySize
            guard let tag = bytes.u16(at: position, bigEndian: isBigEndian),
                let type = bytes.u16(at: position + 2, bigEndian: isBigEndian),
                let number = isBig ? u64(at: position + 4) : u32(at: position + 4)
            else { break }
            let field = position + (isBig ? 12 : 8)
            guard let size = Self.sizes[type], let length = product(number, size) else { continue }
            let place = length <= inlineSize ? field : (isBig ? u64(at: field) : u32(at: field)) ?? -1
            entries.append(
                Entry(
                    tag: tag, type: type, count: number,
                    value: bytes.slice(at: place, count: length) ?? bytes.clamped(at: 0, count: 0)))
        }
        let after = start + count * entrySize
        return Directory(entries: entries, next: (isBig ? u64(at: after) : u32(at: after)) ?? 0)
    }

    /// The chain of main directories, each at most once.
    func directories() -> [Directory] {
        var result: [Directory] = []
        var seen: Set<Int> = []
        var offset = firstDirectory
        while offset != 0, result.count < Self.directoryCountMax, seen.insert(offset).inserted,
            let directory = directory(at: offset)
        {
            result.append(directory)
            offset = directory.next
        }
        return result
    }

    /// The directories that a tag of offsets points to (SubIFDs, EXIF, GPS).
    func children(_ entry: Entry?) -> [Directory] {
        guard let entry else { return [] }
        return (0..<min(entry.count, Self.directoryCountMax)).compactMap {
            integer(entry, at: $0).flatMap(directory(at:))
        }
    }

    /// An unsigned integer of any width.
    func integer(_ entry: Entry?, at index: Int = 0) -> Int? {
        guard let entry, index >= 0, index < entry.count else { return nil }
        switch entry.type {
        case 1, 7: return entry.value.byte(at: index).map(Int.init)
        case 3: return entry.value.u16(at: index * 2, bigEndian: isBigEndian).map(Int.init)
        case 4, 13: return entry.value.u32(at: index * 4, bigEndian: isBigEndian).map(Int.init)
        case 16, 18: return entry.value.u64(at: index * 8, bigEndian: isBigEndian).flatMap(Int.init(exactly:))
        default: return nil
        }
    }

    /// An integer or a fraction; nil for a denominator of zero.
    func number(_ entry: Entry?, at index: Int = 0) -> Double? {
        guard let entry, index >= 0, index < entry.count else { return nil }
        guard entry.type == 5 || entry.type == 10 else { return integer(entry, at: index).map(Double.init) }
        guard let above = entry.value.u32(at: index * 8, bigEndian: isBigEndian),
            let below = entry.value.u32(at: index * 8 + 4, bigEndian: isBigEndian), below != 0
        else { return nil }
        return entry.type == 5
            ? Double(above) / Double(below) : Double(Int32(bitPattern: above)) / Double(Int32(bitPattern: below))
    }

    /// Text up to its first NUL, trimmed; nil when nothing is left.
    func text(_ entry: Entry?) -> String? {
        guard let entry, entry.type == 2 || entry.type == 7 || entry.type == 1 || entry.type == 129 else { return nil }
        let letters = entry.value.clamped(at: 0, count: Self.textLengthMax).bytes.prefix { $0 != 0 }
        let text = String(decoding: letters, as: UTF8.self).filter { !$0.isNewline && $0 != "\t" }
        let trimmed = text.drop { $0 == " " }.reversed().drop { $0 == " " }.reversed()
        return trimmed.isEmpty ? nil : String(trimmed)
    }

    /// Bytes of one text that are looked at.
    static let textLengthMax = 1024
    /// Bytes of one value by its type.
    private static let sizes: [UInt16: Int] = [
        1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8, 17: 8, 18: 8, 129: 1,
    ]

    private func u16(at offset: Int) -> Int? { bytes.u16(at: offset, bigEndian: isBigEndian).map(Int.init) }
    private func u32(at offset: Int) -> Int? { bytes.u32(at: offset, bigEndian: isBigEndian).map(Int.init) }
    private func u64(at offset: Int) -> Int? {
        bytes.u64(at: offset, bigEndian: isBigEndian).flatMap(Int.init(exactly:))
    }
}
