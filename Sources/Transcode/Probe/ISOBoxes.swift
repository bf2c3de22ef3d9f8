import Vocabulary

/// The outline of an ISO base media file (ISO/IEC 14496-12): its top boxes in order, and what the verdict on a file that no demuxer opens
/// depends on.
struct ISOBoxes: Equatable {
    /// More top boxes than any recorder writes between two fragments would make the outline useless.
    static let boxMax = 4096
    /// Boxes looked at inside the index for signs of protection; a damaged header could make it endless.
    static let innerBoxMax = 65_536

    struct Box: Equatable {
        var type: String
        var offset: Int64
        /// With its header; reaches past the end of a cut file.
        var size: Int64
    }

    var boxes: [Box] = []
    /// The walk ended at bytes that cannot be a box.
    var isMalformed = false
    /// The last box says that it is longer than the file.
    var isCut = false
    /// A sample entry or a system's header says that the samples are encrypted (ISO/IEC 23001-7).
    var isProtected = false

    func first(_ type: String) -> Box? { boxes.first { $0.type == type } }
    var hasIndex: Bool { first("moov") != nil }
    var isFragmented: Bool { first("moof") != nil }
    /// The index stands before the samples, so that playing can start at once.
    var isFastStart: Bool {
        guard let index = first("moov"), let samples = first("mdat") else { return false }
        return index.offset < samples.offset
    }

    static func read(_ source: SourceBytes) throws(Failure) -> ISOBoxes {
        var outline = ISOBoxes()
        var offset: Int64 = 0
        while offset < source.size, outline.boxes.count < boxMax {
            let header = try source.read(at: offset, count: 16)
            guard header.count >= 8 else {
                outline.isCut = true
                break
            }
            // Where the index should come, a copy that broke off has zeros up to the full length.
            if outline.first("mdat") != nil, !outline.hasIndex, header.allSatisfy({ $0 == 0 }) {
                outline.isCut = true
                break
            }
            let type = Array(header[4..<8])
            var size = Int64(header.bigEndian(0, bytes: 4))
            guard isType(type) else {
                outline.isMalformed = true
                break
            }
            if size == 1, header.count == 16 { size = Int64(bitPattern: header.bigEndian(8, bytes: 8)) }
            // Size 0: to the end of the file.
            if size == 0 { size = source.size - offset }
            guard size >= 8 else {
                outline.isMalformed = true
                break
            }
            outline.boxes.append(Box(type: String(decoding: type, as: UTF8.self), offset: offset, size: size))
            let (next, overflow) = offset.addingReportingOverflow(size)
            guard !overflow, next <= source.size else {
                outline.isCut = true
                break
            }
            offset = next
        }
        if let moov = outline.first("moov") {
            var boxesLeft = innerBoxMax
            let end = moov.offset + min(moov.size, source.size - moov.offset)
            outline.isProtected = try hasProtection(source, moov.offset..<end, path[...], &boxesLeft)
        }
        return outline
    }

    /// Where the sample entries stand.
    private static let path = ["moov", "trak", "mdia", "minf", "stbl", "stsd"]
    /// Of entries whose own format is hidden inside them.
    private static let protectedEntries: Set<String> = ["encv", "enca", "encs", "enct", "encm", "drmi", "drms"]

    /// Only what is a box counts: titles and lyrics may have any letters.
    private static func hasProtection(
        _ source: SourceBytes, _ range: Range<Int64>, _ path: ArraySlice<String>, _ boxesLeft: inout Int
    ) throws(Failure) -> Bool {
        var offset = range.lowerBound
        while boxesLeft > 0, offset + 8 <= range.upperBound {
            boxesLeft -= 1
            let header = try source.read(at: offset, count: 16)
            guard header.count >= 8 else { return false }
            var size = Int64(header.bigEndian(0, bytes: 4)), headerLength: Int64 = 8
            if size == 1, header.count == 16 {
                size = Int64(bitPattern: header.bigEndian(8, bytes: 8))
                headerLength = 16
            }
            if size == 0 { size = range.upperBound - offset }
            guard size >= headerLength else { return false }
            let type = String(decoding: header[4..<8], as: UTF8.self)
            if path.isEmpty, protectedEntries.contains(type) { return true }
            if type == "pssh", path.first == "trak" { return true }
            let end = size > range.upperBound - offset ? range.upperBound : offset + size
            // Version, flags and the number of entries come before the entries.
            let content = offset + headerLength + (type == "stsd" ? 8 : 0)
            if type == path.first, content < end,
                try hasProtection(source, content..<end, path.dropFirst(), &boxesLeft)
            {
                return true
            }
            offset = end
        }
        return false
    }

    /// Four printable characters; QuickTime also uses `©`.
    private static func isType(_ bytes: [UInt8]) -> Bool {
        bytes.allSatisfy { (0x20...0x7E).contains($0) || $0 == 0xA9 }
    }
}
