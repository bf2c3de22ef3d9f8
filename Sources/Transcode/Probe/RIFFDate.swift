import Vocabulary

/// The moment of recording as cameras write it into AVI: the chunk `IDIT`, beside or inside the header list. FFmpeg reads two of its spellings.
enum RIFFDate {
    /// Chunks looked at on the outer level and inside the lists of the header.
    private static let chunkMax = 64
    /// Bytes of a text; they are 20 to 30 long.
    private static let textMax: UInt64 = 256

    /// - Returns: nil where the file has no such chunk.
    static func text(_ source: SourceBytes) throws(Failure) -> String? {
        let riffHeader: Int64 = 12
        return try text(source, from: riffHeader, to: source.size, isInList: false)
    }

    private static func text(
        _ source: SourceBytes, from start: Int64, to end: Int64, isInList: Bool
    ) throws(Failure) -> String? {
        let headerLength: Int64 = 8, typeLength: Int64 = 4
        var offset = start
        for _ in 0..<chunkMax where offset + headerLength <= end {
            let header = try source.read(at: offset, count: Int(headerLength + typeLength))
            guard header.count >= Int(headerLength) else { return nil }
            let size = header.littleEndian(4, bytes: 4)
            let content = offset + headerLength
            if header.starts(with: Array("IDIT".utf8)) {
                let bytes = try source.read(at: content, count: Int(min(size, textMax)))
                return String(decoding: bytes, as: UTF8.self)
            }
            let isHeaderList = header.starts(with: Array("LIST".utf8)) && header.suffix(4) != Array("movi".utf8)[...]
            if !isInList, isHeaderList {
                let listEnd = min(end, content + Int64(size))
                if let found = try text(source, from: content + typeLength, to: listEnd, isInList: true) {
                    return found
                }
            }
            // Chunks begin at even places.
            offset = content + Int64(size + size % 2)
        }
        return nil
    }

    /// `Mon Mar 10 15:04:43 2003`, `2005/11/28/ 09:19`, `2001/ 1/27  1:42PM`, `2002-12-16  15:35:01` (ExifTool knows these, RIFF.pm), all of them the
    /// camera's clock without a zone.
    static func normalized(_ text: String) -> String? {
        let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
        let text = text.prefix { $0 != "\0" }.lowercased()
        var numbers = text.split { !$0.isASCII || !$0.isNumber }.prefix(6).compactMap { Int($0) }
        let words = text.split { !$0.isASCII || !$0.isLetter }
        if let month = words.compactMap({ months.firstIndex(of: String($0)) }).first, numbers.count == 5 {
            numbers = [numbers[4], month + 1] + numbers[0..<4]
        }
        guard numbers.count >= 5 else { return nil }
        var hour = numbers[3]
        if words.contains("pm"), hour < 12 { hour += 12 }
        if words.contains("am"), hour == 12 { hour = 0 }
        return CaptureTime.iso(
            numbers[0], numbers[1], numbers[2], hour, numbers[4], numbers.count > 5 ? numbers[5] : 0, zone: "")
    }
}
