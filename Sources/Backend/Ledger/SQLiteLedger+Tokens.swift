import SQLite
import Vocabulary

extension SQLiteLedger {
    func token(_ name: String) async throws(Failure) -> TokenRow? {
        try database.row("SELECT \(TokenRow.columns) FROM tokens WHERE name = ?1", [.text(name)])
            .map(TokenRow.init)
    }

    func tokens() async throws(Failure) -> [TokenRow] {
        try database.rows(
            "SELECT \(TokenRow.columns) FROM tokens WHERE name IS NOT NULL ORDER BY created_at, name"
        ).map(TokenRow.init)
    }

    func addToken(_ token: TokenRow, forgettingOver limit: Timestamp, validMax: Int) async throws(Failure) -> Bool {
        try await database.write("ledger.addToken") { database throws(Failure) in
            try database.run("DELETE FROM tokens WHERE revoked_at < ?1 OR expires_at < ?1", [SQLValue(limit)])
            let valid = try database.row(
                "SELECT COUNT(*) FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1)",
                [SQLValue(token.createdAt)])
            guard valid?.int(0) ?? 0 < validMax else { return false }
            try database.run(
                "INSERT INTO tokens(name, sha256, owner, shoot, created_at, expires_at) VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
                [
                    .text(token.name), SQLValue(token.sha256), SQLValue(token.owner), SQLValue(token.shoot),
                    SQLValue(token.createdAt), token.expiresAt.map { SQLValue($0) } ?? .null,
                ])
            return true
        }
    }

    func revokeToken(_ name: String, now: Timestamp) async throws(Failure) -> TokenRow? {
        try await database.write("ledger.revokeToken") { database throws(Failure) in
            try database.run(
                "UPDATE tokens SET revoked_at = ?2 WHERE name = ?1 AND revoked_at IS NULL",
                [.text(name), SQLValue(now)])
            return try database.row("SELECT \(TokenRow.columns) FROM tokens WHERE name = ?1", [.text(name)])
                .map(TokenRow.init)
        }
    }

    func shoot(of upload: UploadID) async throws(Failure) -> String? {
        try database.row(
            """
            SELECT COALESCE(i.shoot, u.shoot) FROM uploads u LEFT JOIN items i ON i.id = u.item WHERE u.id = ?1
            """, [SQLValue(upload)])?.text(0)
    }
}

extension TokenRow {
    static let columns = "name, sha256, owner, shoot, created_at, expires_at, revoked_at"

    init(_ row: SQLRow) throws(Failure) {
        name = try row.required(0, SQLRow.text)
        sha256 = try row.required(1, as: SHA256Digest.self)
        owner = try row.required(2, as: Owner.self)
        shoot = row.text(3)
        createdAt = try row.required(4, SQLRow.timestamp)
        expiresAt = row.timestamp(5)
        revokedAt = row.timestamp(6)
    }
}
