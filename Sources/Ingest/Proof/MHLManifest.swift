import Digests
import Foundation
import Vocabulary
import XML

/// One generation of an ASC MHL history, version 2.0: a manifest of hashes, and its line in the chain. Pure.
struct MHLManifest: Sendable {
    /// What comparing with the earlier generations came to.
    enum Action: String, Sendable { case original, verified, failed }

    static let folderName = "ascmhl"
    static let chainName = "ascmhl_chain.xml"

    var files: [(file: ProofPlan.File, action: Action)]
    var creationDate: Date
    var hostName: String
    var toolVersion: String
    /// Glob patterns, as gitignore(5) has them, of what is not looked at.
    var ignored: [String]

    /// `0001_CARD_2026-11-30_083547Z.mhl`.
    static func name(generation: Int, folder: String, date: Date) -> String {
        let stamp = date.formatted(
            Date.VerbatimFormatStyle(
                format:
                    "\(year: .defaultDigits)-\(month: .twoDigits)-\(day: .twoDigits)_\(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased))\(minute: .twoDigits)\(second: .twoDigits)Z",
                locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, calendar: Calendar(identifier: .gregorian)))
        return String(format: "%04d", generation) + "_\(folder)_\(stamp).mhl"
    }

    /// Digits of a generation: what has more is some other number.
    private static let digitsRange = 4...9

    /// - Returns: the number in front of a manifest's name.
    static func generation(ofName name: String) -> Int? {
        guard name.hasSuffix(".mhl") else { return nil }
        let digits = name.prefix { $0.isASCII && $0.isNumber }
        return digitsRange.contains(digits.count) ? Int(digits) : nil
    }

    var text: String {
        var lines = [
            #"<?xml version="1.0" encoding="UTF-8"?>"#,
            #"<hashlist version="2.0" xmlns="urn:ASC:MHL:v2.0">"#,
            "  <creatorinfo>",
            "    <creationdate>\(Self.date(creationDate))</creationdate>",
            "    <hostname>\(XMLElement.escaped(hostName))</hostname>",
            "    <tool version=\"\(XMLElement.escaped(toolVersion))\">rushes</tool>",
            "  </creatorinfo>",
            "  <processinfo>",
            // The hashes are of the bytes as they came off the card.
            "    <process>transfer</process>",
            "    <ignore>",
        ]
        lines += ignored.map { "      <pattern>\(XMLElement.escaped($0))</pattern>" }
        lines += ["    </ignore>", "  </processinfo>", "  <hashes>"]
        for (file, action) in files {
            let modified = Self.date(Date(timeIntervalSince1970: Double(file.known.modified) / 1e9))
            let hashed = file.known.hashedAt.map {
                " hashdate=\"\(Self.date(Date(timeIntervalSince1970: Double($0) / 1000)))\""
            }
            lines += [
                "    <hash>",
                "      <path size=\"\(file.known.bytes ?? 0)\" lastmodificationdate=\"\(modified)\">\(XMLElement.escaped(file.path))</path>",
                "      <xxh128 action=\"\(action.rawValue)\"\(hashed ?? "")>\(file.xxh128)</xxh128>",
                "    </hash>",
            ]
        }
        lines += ["  </hashes>", "</hashlist>", ""]
        return lines.joined(separator: "\n")
    }

    private static let chainEnd = "</ascmhldirectory>"

    /// A chain with one more generation.
    /// - Parameter chain: as it is; nil where there is none.
    /// - Returns: nil when the chain has no end that one could be put before.
    static func chain(_ chain: String?, appending name: String, generation: Int, manifest: String) -> String? {
        let chain =
            chain
            ?? "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ascmhldirectory xmlns=\"urn:ASC:MHL:DIRECTORY:v2.0\">\n\(chainEnd)\n"
        guard let end = chain.range(of: chainEnd, options: .backwards) else { return nil }
        let link = """
              <hashlist sequencenr="\(generation)">
                <path>\(XMLElement.escaped(name))</path>
                <c4>\(C4.id(of: manifest))</c4>
              </hashlist>

            """
        return chain[..<end.lowerBound] + link + chain[end.lowerBound...]
    }

    private static func date(_ date: Date) -> String {
        date.formatted(.iso8601).replacingOccurrences(of: "Z", with: "+00:00")
    }
}

/// C4 identifiers: SHA-512 in base 58, 90 characters.
enum C4 {
    private static let alphabet = Array("123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz")
    private static let digitCount = 88

    static func id(of text: String) -> String {
        let digest = Digest(.sha512)
        digest.update(text)
        var number = digest.finalize()
        var digits: [Character] = []
        for _ in 0..<digitCount {
            // Long division of the whole number, byte by byte.
            var rest = 0
            for index in number.indices {
                let value = rest << 8 | Int(number[index])
                number[index] = UInt8(value / 58)
                rest = value % 58
            }
            digits.append(alphabet[rest])
        }
        return "c4" + String(digits.reversed())
    }
}
