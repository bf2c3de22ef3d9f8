import Digests
import SQLite
import Vocabulary

extension SQLiteLedger {
    func openTus(
        _ request: OpenUploadRequest, metadata: String, hash: [UInt8], owner: Owner, expiresAt: Timestamp, openMax: Int
    ) async throws(Failure) -> UploadRow {
        let requestHash = Digest.sha256(try JSON.text(request))
        return try await database.write("ledger.openTus") { database throws(Failure) in
            let open = try database.row(
                "SELECT COUNT(*) FROM tus t JOIN uploads u ON u.id = t.upload WHERE u.owner = ?1 AND u.state = 'open'",
                [SQLValue(owner)])?.int(0)
            guard open ?? 0 < openMax else {
                throw Failure(.busy, "There are \(openMax) unfinished uploads already: finish or end some.")
            }
            let row = try database.insertUpload(
                request, hash: requestHash, owner: owner, state: .open, stored: nil, expiresAt: expiresAt)
            try database.run(
                "INSERT INTO tus(upload, metadata, hash) VALUES(?1, ?2, ?3)",
                [SQLValue(row.id), .text(metadata), .text(hash.base64)])
            return row
        }
    }

    func tus(_ id: UploadID, owner: Owner) async throws(Failure) -> TusRow? {
        try database.read { database throws(Failure) in
            guard let upload = try database.uploadRow(id), upload.owner == owner,
                let row = try database.row(
                    """
                    SELECT t.metadata, t.hash, COALESCE(i.shoot, u.shoot) FROM tus t JOIN uploads u ON u.id = t.upload
                        LEFT JOIN items i ON i.id = u.item WHERE t.upload = ?1
                    """, [SQLValue(id)])
            else { return nil }
            return TusRow(
                upload: upload, metadata: try row.required(0, SQLRow.text), shoot: try row.required(2, SQLRow.text),
                hash: [UInt8](base64: try row.required(1, SQLRow.text)) ?? [])
        }
    }

    func tellSize(_ size: Int, session: StoreSession, owner: Owner) async throws(Failure) {
        try await database.write("ledger.tellSize") { database throws(Failure) in
            try database.openRow(session, owner: owner)
            try database.run(
                "UPDATE uploads SET size = COALESCE(size, ?2) WHERE id = ?1", [SQLValue(session.upload), .int(size)])
        }
    }

    func recordReceived(
        _ part: SignedPart, hash: [UInt8], session: StoreSession, owner: Owner, expiresAt: Timestamp
    ) async throws(Failure) {
        try await database.write("ledger.recordReceived") { database throws(Failure) in
            let row = try database.openRow(session, owner: owner)
            try database.doomTail(of: row, unless: .tail(part, of: session))
            try database.run(
                """
                INSERT INTO signed_parts(upload, generation, number, length, md5) VALUES(?1, ?2, ?3, ?4, ?5)
                ON CONFLICT DO UPDATE SET length = ?4, md5 = ?5
                """,
                [SQLValue(row.id), .int(row.generation), .int(part.number), .int(part.length), .text(part.md5)])
            try database.run("UPDATE tus SET hash = ?2 WHERE upload = ?1", [SQLValue(row.id), .text(hash.base64)])
            try database.run(
                "UPDATE uploads SET expires_at = MAX(expires_at, ?2) WHERE id = ?1",
                [SQLValue(row.id), SQLValue(expiresAt)])
        }
    }

    func receivedTus(limit: Int) async throws(Failure) -> [(UploadID, Owner)] {
        let rows = try database.rows(
            """
            SELECT u.id, u.owner FROM tus t JOIN uploads u ON u.id = t.upload
            WHERE u.state = 'open' AND u.size = (
                SELECT COALESCE(SUM(p.length), 0) FROM signed_parts p WHERE p.upload = u.id AND p.generation = u.generation
            ) ORDER BY u.id
            """, [], limit: limit)
        var found: [(UploadID, Owner)] = []
        for row in rows {
            found.append((try row.required(0, as: UploadID.self), try row.required(1, as: Owner.self)))
        }
        return found
    }

    func openTusUploads(after: UploadID?, limit: Int) async throws(Failure) -> [UploadRow] {
        let rows = try database.rows(
            """
            SELECT \(UploadRow.columns) FROM \(UploadRow.source) JOIN tus t ON t.upload = u.id
            WHERE u.state = 'open' AND u.id > ?1 ORDER BY u.id
            """, [.text(after?.rawValue ?? "")], limit: limit)
        var uploads: [UploadRow] = []
        for row in rows { uploads.append(try UploadRow(row)) }
        return uploads
    }
}

extension Connection {
    /// The parts of an upload are an object, or nothing, from now on.
    func forgetParts(of row: UploadRow) throws(Failure) {
        try doomTail(of: row)
        try run("DELETE FROM signed_parts WHERE upload = ?1", [SQLValue(row.id)])
    }

    /// What a foreign client's last part may have left as a tail goes.
    fileprivate func doomTail(of row: UploadRow, unless kept: BlobKey? = nil) throws(Failure) {
        let last = try self.row(
            """
            SELECT p.number, p.length, p.md5 FROM tus t JOIN signed_parts p ON p.upload = t.upload
            WHERE t.upload = ?1 AND p.generation = ?2 ORDER BY p.number DESC LIMIT 1
            """, [SQLValue(row.id), .int(row.generation)])
        guard let last else { return }
        let part = SignedPart(
            number: try last.required(0, SQLRow.int), length: try last.required(1, SQLRow.int),
            md5: try last.required(2, SQLRow.text))
        let key = BlobKey.tail(part, of: row.session)
        // A whole part was never a tail.
        guard key != kept, part.length < row.partSize else { return }
        try doom(key)
    }
}
