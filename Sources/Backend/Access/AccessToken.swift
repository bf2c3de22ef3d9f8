import Digests
import Foundation
import Vocabulary

/// A bearer token as its holder has it: `rushes_NAME_SECRET`. The name tells people and the ledger which one it is; only the whole proves
/// anything, and the ledger keeps no more than its hash.
struct AccessToken: Sendable, Hashable {
    /// Eight of `nameAlphabet`.
    let name: String
    let text: String

    private static let prefix = "rushes"
    static let nameLength = 8
    static let secretBytes = 32
    /// Without the letters and digits that look like one another.
    private static let nameAlphabet = Array("abcdefghijkmnpqrstuvwxyz23456789")

    static func make() -> AccessToken {
        let name = String(
            MessageAuthentication.randomKey(count: nameLength).map { nameAlphabet[Int($0) % nameAlphabet.count] })
        let secret = MessageAuthentication.randomKey(count: secretBytes).base64URL
        return AccessToken(name: name, text: "\(prefix)_\(name)_\(secret)")
    }

    private init(name: String, text: String) {
        self.name = name
        self.text = text
    }

    /// Nil for what was never made here.
    init?(_ text: String) {
        // The secret may hold the separator too.
        let pieces = text.split(separator: "_", maxSplits: 2, omittingEmptySubsequences: false)
        guard pieces.count == 3, pieces[0] == Self.prefix, pieces[1].count == Self.nameLength,
            pieces[1].allSatisfy(Self.nameAlphabet.contains),
            [UInt8](base64URL: String(pieces[2]))?.count == Self.secretBytes
        else { return nil }
        self.init(name: String(pieces[1]), text: text)
    }

    /// From an `Authorization` header (RFC 6750, section 2.1).
    init?(authorization: String) {
        let words = authorization.split(separator: " ", maxSplits: 1)
        guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
        self.init(String(words[1]))
    }

    var sha256: SHA256Digest { Digest.sha256(text) }
}

/// A token as the ledger keeps it.
struct TokenRow: Sendable, Hashable {
    var name: String
    var sha256: SHA256Digest
    var owner: Owner
    /// Nil: all shoots.
    var shoot: String?
    var createdAt: Timestamp
    /// Nil: never.
    var expiresAt: Timestamp?
    var revokedAt: Timestamp?

    enum State: String, Sendable { case valid, expired, revoked }

    func state(at now: Timestamp) -> State {
        if revokedAt != nil { return .revoked }
        if let expiresAt, expiresAt <= now { return .expired }
        return .valid
    }

    /// Takes the same time wherever the token is wrong.
    func admits(_ token: AccessToken, at now: Timestamp) -> Bool {
        Digest.areEqual(token.sha256, sha256) && state(at: now) == .valid
    }
}

/// Who asks, and of what it may know.
struct Caller: Sendable, Hashable {
    var owner: Owner
    /// Nil: all shoots.
    var shoot: String?
    /// The token that it came with.
    var token: AccessToken?

    static let local = Caller(owner: .local)

    func mayTouch(_ shoot: String) -> Bool { self.shoot == nil || self.shoot == shoot }
}
