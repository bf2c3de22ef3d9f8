/// An identifier that is the same on both sides for ever: 1 to 64 of `A-Z a-z 0-9 - _`. `Kind` keeps one sort of id from standing where
/// another is meant.
public struct Identifier<Kind>: RawRepresentable, Hashable, Sendable, Codable, CustomStringConvertible {
    public static var lengthMax: Int { 64 }
    public let rawValue: String
    public var description: String { rawValue }

    /// Nil when the text is not an identifier. Ids arrive from outside and become file names, so the door is narrow.
    public init?(rawValue: String) {
        let isAllowed: (UInt8) -> Bool = { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        guard (1...Self.lengthMax).contains(rawValue.utf8.count), rawValue.utf8.allSatisfy(isAllowed) else {
            return nil
        }
        self.rawValue = rawValue
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let id = Self(rawValue: text) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an identifier")
        }
        self = id
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    /// A new id: UUID version 7 (RFC 9562), so that ids sort by the time they were made.
    /// - Parameter milliseconds: Unix time.
    public static func make(
        milliseconds: Int64, using random: inout some RandomNumberGenerator
    ) -> Identifier {
        var high = UInt64(bitPattern: milliseconds) << 16
        high |= 0x7000 | (UInt64.random(in: 0...0x0FFF, using: &random))
        let low = 0x8000_0000_0000_0000 | (UInt64.random(in: 0...0x3FFF_FFFF_FFFF_FFFF, using: &random))
        let digits = hex(high) + hex(low)
        var text = ""
        for (index, character) in digits.enumerated() {
            if [8, 12, 16, 20].contains(index) { text.append("-") }
            text.append(character)
        }
        guard let id = Self(rawValue: text) else { preconditionFailure("a UUID is always an identifier") }
        return id
    }

    private static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}

public enum ItemKind: Sendable {}
public enum UploadKind: Sendable {}

public typealias ItemID = Identifier<ItemKind>
public typealias UploadID = Identifier<UploadKind>
