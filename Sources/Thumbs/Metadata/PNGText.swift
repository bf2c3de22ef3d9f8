import CZlib

/// EXIF and XMP that a PNG carries as text (W3C PNG, 11.3.3): XMP under the keyword that Adobe gave it, and the hexadecimal
/// profiles of ImageMagick, which are older than the chunk for EXIF. Packed or not.
enum PNGText {
    /// Of a text once it is unpacked, and of all of a picture's together.
    static let byteCountMax = 16 << 20
    /// zlib.net, "Technical Details".
    private static let deflateRatioMax = 1032
    private static let keywordMax = 79
    private static let keywords: Set<String> = [
        "XML:com.adobe.xmp", "Raw profile type exif", "Raw profile type EXIF", "Raw profile type APP1",
        "Raw profile type app1", "Raw profile type xmp", "Raw profile type XMP",
    ]

    enum Block {
        case exif(ByteView)
        case xmp(ByteView)
    }

    /// Whether a `tEXt`, `zTXt` or `iTXt` may hold any of it. Nothing is unpacked.
    static func isMetadata(_ chunk: ByteView) -> Bool { keyword(chunk).map { keywords.contains($0) } ?? false }

    /// - Parameter bytesLeft: how much may still be unpacked.
    /// - Returns: nil for text that is damaged, too long or none of these.
    static func block(type: String, _ chunk: ByteView, bytesLeft: inout Int) -> Block? {
        guard let keyword = keyword(chunk), keywords.contains(keyword), bytesLeft > 0 else { return nil }
        let text = text(type: type, chunk, keyword)
        // What could not be unpacked may have cost as much as deflate makes of it at most.
        bytesLeft -= text?.count ?? min(byteCountMax, chunk.count * deflateRatioMax)
        guard let text else { return nil }
        if keyword == "XML:com.adobe.xmp" { return .xmp(text) }
        guard let profile = rawProfile(text) else { return nil }
        let namespace = "http://ns.adobe.com/xap/1.0/\0"
        if profile.starts(with: namespace) { return .xmp(profile.suffix(from: namespace.utf8.count)) }
        return keyword.lowercased().hasSuffix("xmp") ? .xmp(profile) : .exif(profile)
    }

    /// Of an `iCCP`, which is written like a `zTXt`.
    static func profile(_ chunk: ByteView) -> ByteView? {
        keyword(chunk).flatMap { text(type: "zTXt", chunk, $0) }
    }

    private static func keyword(_ chunk: ByteView) -> String? {
        let letters = chunk.clamped(at: 0, count: keywordMax + 1).bytes
        return letters.firstIndex(of: 0).map { String(decoding: letters[..<$0], as: UTF8.self) }
    }

    private static func text(type: String, _ chunk: ByteView, _ keyword: String) -> ByteView? {
        var offset = keyword.utf8.count + 1
        switch type {
        case "tEXt": return chunk.suffix(from: offset)
        case "zTXt":
            guard chunk.byte(at: offset) == 0 else { return nil }
            return unpacked(chunk.suffix(from: offset + 1))
        default:
            guard let isPacked = chunk.byte(at: offset) else { return nil }
            offset += 2
            // The language, and the keyword in it.
            for _ in 0..<2 {
                guard let end = chunk.suffix(from: offset).bytes.firstIndex(of: 0) else { return nil }
                offset += end + 1
            }
            let text = chunk.suffix(from: offset)
            return isPacked == 0 ? text : unpacked(text)
        }
    }

    private static func unpacked(_ packed: ByteView) -> ByteView? {
        guard let count = UInt32(exactly: packed.count), count > 0 else { return nil }
        let room = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: byteCountMax)
        defer { room.deallocate() }
        let written = rushes_inflate(
            packed.bytes.bindMemory(to: UInt8.self).baseAddress, count, room.baseAddress, UInt32(byteCountMax))
        return written > 0 ? ByteView(Array(room[..<Int(written)])) : nil
    }

    /// A line with the name, one with the number of bytes, then the bytes in hexadecimal, with line ends anywhere.
    private static func rawProfile(_ text: ByteView) -> ByteView? {
        let lines = text.bytes.split(separator: 0x0A, maxSplits: 2)
        guard lines.count == 3, text.count <= byteCountMax,
            let count = Int(String(decoding: lines[1], as: UTF8.self).filter(\.isNumber)), count > 0
        else { return nil }
        var digits = lines[2].lazy.compactMap { Character(UnicodeScalar($0)).hexDigitValue }.makeIterator()
        var bytes: [UInt8] = []
        while bytes.count < count, let high = digits.next(), let low = digits.next() {
            bytes.append(UInt8(high << 4 | low))
        }
        return bytes.count == count ? ByteView(bytes) : nil
    }
}
