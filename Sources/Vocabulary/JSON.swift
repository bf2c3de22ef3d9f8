public import Foundation

/// One way of writing JSON for every message, file and output: sorted keys, no escaped slashes, so that equal values are equal bytes.
public enum JSON {
    public static func encode(_ value: some Encodable) throws(Failure) -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do { return try encoder.encode(value) } catch {
            throw Failure(.internalError, "A message could not be written.", detail: "\(type(of: value)): \(error)")
        }
    }

    public static func text(_ value: some Encodable) throws(Failure) -> String {
        String(decoding: try encode(value), as: UTF8.self)
    }

    /// - Throws: `bad-request` when the bytes are not such a message.
    public static func decode<Value: Decodable>(_ type: Value.Type, from data: Data) throws(Failure) -> Value {
        do { return try JSONDecoder().decode(type, from: data) } catch {
            throw Failure(.badRequest, "The message does not have the expected form.", detail: "\(type): \(error)")
        }
    }
}

/// An XXH128 in its canonical form, as 32 lower-case hexadecimal digits. Tells copies apart, not forgeries.
public struct XXH128Digest: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: String
    public var description: String { rawValue }

    public init?(rawValue: String) {
        guard rawValue.utf8.count == 32, rawValue.utf8.allSatisfy({ "0123456789abcdef".utf8.contains($0) }) else {
            return nil
        }
        self.rawValue = rawValue
    }
}

/// A SHA-256 as 64 lower-case hexadecimal digits.
public struct SHA256Digest: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: String
    public var description: String { rawValue }

    public init?(rawValue: String) {
        let isDigit: (UInt8) -> Bool = {
            (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
        }
        guard rawValue.utf8.count == 64, rawValue.utf8.allSatisfy(isDigit) else { return nil }
        self.rawValue = rawValue
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        guard let digest = Self(rawValue: try container.decode(String.self)) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "not a SHA-256 in hexadecimal")
        }
        self = digest
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }
}
