public import Foundation

extension Data: ContiguousBytesLike {
    public func withRawBytes(_ body: (UnsafeRawBufferPointer) -> Void) { withUnsafeBytes { body($0) } }
}

extension [UInt8] {
    /// Nil when the text is not base64 with padding (RFC 4648 section 4).
    public init?(base64 text: String) {
        guard let decoded = Data(base64Encoded: text) else { return nil }
        self = Array(decoded)
    }

    /// Lower-case hexadecimal.
    public var hexadecimal: String {
        let digits = Array<UInt8>("0123456789abcdef".utf8)
        var text: [UInt8] = []
        text.reserveCapacity(count * 2)
        for byte in self {
            text.append(digits[Int(byte >> 4)])
            text.append(digits[Int(byte & 15)])
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil when the text is not pairs of hexadecimal digits.
    public init?(hexadecimal text: String) {
        let digits = text.utf8.map { Character(UnicodeScalar($0)).hexDigitValue }
        guard digits.count.isMultiple(of: 2) else { return nil }
        self = []
        reserveCapacity(digits.count / 2)
        for index in stride(from: 0, to: digits.count, by: 2) {
            guard let high = digits[index], let low = digits[index + 1] else { return nil }
            append(UInt8(high << 4 | low))
        }
    }

    /// Base64 with padding (RFC 4648 section 4).
    public var base64: String { Data(self).base64EncodedString() }

    /// Base64 for URLs, without padding (RFC 4648 section 5).
    public var base64URL: String {
        base64.replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
            .replacingOccurrences(of: "=", with: "")
    }

    /// Nil when the text is not base64 for URLs.
    public init?(base64URL text: String) {
        var padded = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
        padded += String(repeating: "=", count: (4 - padded.utf8.count % 4) % 4)
        guard let decoded = Data(base64Encoded: padded) else { return nil }
        self = Array(decoded)
    }
}
