import Files
public import Vocabulary

/// The tokens of a backend: made, listed and taken back beside a server that runs on the same folder, or without one.
public struct TokenRegister: Sendable {
    private let ledger: SQLiteLedger
    private let clock: @Sendable () -> Timestamp

    /// Tokens that may be valid at one moment.
    static let validMax = 1000
    /// Seconds for which a token that is over is still listed.
    static let overKept = 90 * 24 * 3600.0
    /// Bytes of an owner's name.
    static let ownerBytesMax = 64

    /// A token as people may see it at any time.
    public struct Entry: Sendable, Encodable, Equatable {
        public var name: String
        public var owner: String
        /// Nil: all shoots.
        public var shoot: String?
        /// `valid`, `expired` or `revoked`.
        public var state: String
        /// As ISO 8601.
        public var createdAt: String
        public var expiresAt: String?
        public var revokedAt: String?
        /// Only where it was just made; it cannot be had a second time.
        public var token: String?

        enum CodingKeys: String, CodingKey {
            case name, owner, shoot, state, token
            case createdAt = "created_at"
            case expiresAt = "expires_at"
            case revokedAt = "revoked_at"
        }

        init(_ row: TokenRow, at now: Timestamp, token: AccessToken? = nil) {
            name = row.name
            owner = row.owner.rawValue
            shoot = row.shoot
            state = row.state(at: now).rawValue
            createdAt = row.createdAt.iso8601
            expiresAt = row.expiresAt?.iso8601
            revokedAt = row.revokedAt?.iso8601
            self.token = token?.text
        }
    }

    /// - Parameter makes: whether the folder is made where there is none.
    /// - Returns: nil where no backend has ever been, and none is to be.
    public static func open(
        dataFolder: String, makes: Bool, clock: @escaping @Sendable () -> Timestamp = Timestamp.system
    ) async throws(Failure) -> TokenRegister? {
        let path = dataFolder + "/" + Backend.ledgerName
        if makes {
            try Files.makeFolder(dataFolder)
        } else if try Files.facts(path) == nil {
            return nil
        }
        return TokenRegister(
            ledger: makes ? try await SQLiteLedger.open(path) : try await SQLiteLedger.looking(path), clock: clock)
    }

    /// - Parameters:
    ///   - owner: whose items it is for; nil for the one who speaks over the Unix socket.
    ///   - shoot: the only one that it may write and read; nil for all.
    /// - Returns: the entry with its token, which is kept nowhere.
    /// - Throws: `usage` for names and times that cannot be, `conflict` when there are too many.
    public func create(owner: String?, shoot: String?, expiresAt: Timestamp?) async throws(Failure) -> Entry {
        let owner = owner ?? Owner.local.rawValue
        guard Self.isName(owner, bytesMax: Self.ownerBytesMax) else {
            throw Failure(.usage, "An owner's name has 1 to \(Self.ownerBytesMax) bytes, without control characters.")
        }
        if let shoot, !Self.isName(shoot, bytesMax: APIBounds.nameBytesMax) {
            throw Failure(
                .usage, "A shoot's name has 1 to \(APIBounds.nameBytesMax) bytes, without control characters.")
        }
        let now = clock()
        if let expiresAt, expiresAt <= now { throw Failure(.usage, "The token would have expired already.") }
        let token = AccessToken.make()
        let row = TokenRow(
            name: token.name, sha256: token.sha256, owner: Owner(rawValue: owner), shoot: shoot, createdAt: now,
            expiresAt: expiresAt)
        guard
            try await ledger.addToken(
                row, forgettingOver: now.adding(seconds: -Self.overKept), validMax: Self.validMax)
        else {
            throw Failure(
                .conflict, "There are \(Self.validMax) valid tokens already: revoke what nobody uses any more.")
        }
        return Entry(row, at: now, token: token)
    }

    /// The oldest first.
    public func list() async throws(Failure) -> [Entry] {
        let now = clock()
        return try await ledger.tokens().map { Entry($0, at: now) }
    }

    /// From here on it opens nothing. Repeatable.
    /// - Throws: `not-found`.
    public func revoke(_ name: String) async throws(Failure) -> Entry {
        let now = clock()
        guard let row = try await ledger.revokeToken(name, now: now) else { throw Self.unknown(name) }
        return Entry(row, at: now)
    }

    public static func unknown(_ name: String) -> Failure {
        Failure(.notFound, "There is no token “\(name)”: rushes token list names them.")
    }

    private static func isName(_ text: String, bytesMax: Int) -> Bool {
        (1...bytesMax).contains(text.utf8.count)
            && !text.unicodeScalars.contains { $0.properties.generalCategory == .control }
    }
}
