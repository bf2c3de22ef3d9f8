/// What to send of a file: pure, from the request's conditions and the file's facts (RFC 9110, sections 13 and 14).
enum FileAnswer: Equatable {
    case whole
    /// Inclusive offsets.
    case part(ClosedRange<Int>)
    case notModified
    case rangeNotSatisfiable

    /// - Parameters:
    ///   - headers: by lower-case name.
    ///   - size: of the file in bytes.
    init(headers: [String: String], etag: String, size: Int) {
        if let known = headers["if-none-match"] {
            let tags = known.split(separator: ",").map { Self.trimmed($0) }
            // This comparison is the weak one: a `W/` in front does not matter.
            if tags.contains(where: { $0 == "*" || $0 == etag || $0 == "W/" + etag }) {
                self = .notModified
                return
            }
        }
        guard let range = headers["range"] else {
            self = .whole
            return
        }
        // Only a strong tag can vouch for the rest of the file; a date or another tag means: send it anew.
        if let condition = headers["if-range"], Self.trimmed(condition[...]) != etag {
            self = .whole
            return
        }
        self = Self.parse(range, size: size)
    }

    /// Several ranges at once are answered with the whole file, which a server may always do.
    private static func parse(_ header: String, size: Int) -> FileAnswer {
        guard header.hasPrefix("bytes=") else { return .whole }
        let spec = trimmed(header.dropFirst("bytes=".count))
        guard !spec.contains(","), let dash = spec.firstIndex(of: "-") else { return .whole }
        let first = spec[..<dash]
        let last = spec[spec.index(after: dash)...]
        guard (first + last).utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return .whole
        }
        if first.isEmpty {
            guard let count = Int(last) else { return .whole }
            return count == 0 || size == 0 ? .rangeNotSatisfiable : .part(max(0, size - count)...(size - 1))
        }
        guard let start = Int(first) else { return .rangeNotSatisfiable }
        guard start < size else { return .rangeNotSatisfiable }
        guard !last.isEmpty else { return .part(start...(size - 1)) }
        guard let end = Int(last) else { return .part(start...(size - 1)) }
        return end < start ? .whole : .part(start...min(end, size - 1))
    }

    private static func trimmed(_ text: Substring) -> String {
        let isBlank: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        return String(text.drop(while: isBlank).reversed().drop(while: isBlank).reversed())
    }
}
