internal import CCrypto

/// HMAC-SHA-256 (RFC 2104), for URLs that the backend signs to itself.
public enum MessageAuthentication {
    public static func sign(_ message: some ContiguousBytesLike, key: [UInt8]) -> [UInt8] {
        var tag = [UInt8](repeating: 0, count: 32)
        message.withRawBytes { bytes in
            var length: UInt32 = 0
            _ = HMAC(
                EVP_sha256(), key, Int32(key.count), bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
                bytes.count, &tag,
                &length)
        }
        return tag
    }

    /// Takes the same time wherever the tags differ.
    public static func isValid(_ tag: [UInt8], for message: some ContiguousBytesLike, key: [UInt8]) -> Bool {
        let expected = sign(message, key: key)
        guard tag.count == expected.count else { return false }
        return zip(tag, expected).reduce(UInt8(0)) { $0 | ($1.0 ^ $1.1) } == 0
    }

    /// Bytes that nobody can guess.
    public static func randomKey(count: Int = 32) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    }
}
