import Digests
import SQLite
import Vocabulary

extension SQLiteLedger {
    func open(
        _ request: OpenUploadRequest, owner: Owner, now: Timestamp, expiresAt: Timestamp, knowing shoot: String?,
        lost: BlobKey?, openMax: Int
    ) async throws(Failure) -> (UploadRow, isNew: Bool) {
        // The first parts may differ when the open is repeated: what is signed for them replaces what was.
        var compared = request
        compared.parts = []
        let hash = Digest.sha256(try JSON.text(compared))
        return try await database.write("ledger.open") { database throws(Failure) in
            if let known = try database.uploadRow(request.uploadID) {
                guard known.owner == owner else { throw LedgerFault.unknown }
                let knownHash = try database.row("SELECT request_hash FROM uploads WHERE id = ?1", [SQLValue(known.id)])
                guard knownHash?.digest(0) == hash else {
                    throw Failure(.conflict, "This upload was opened before with another description.")
                }
                return (known, isNew: false)
            }
            if let item = try database.itemRow(request.itemID) {
                guard item.owner == owner else { throw LedgerFault.unknown }
                guard item.state != .deleted else { throw LedgerFault.deleted }
            }
            let found = try database.storedBlob(owner, request.sha256, size: request.sizeBytes, in: shoot)
            let stored = found == lost ? nil : found
            let state: SessionState = stored == nil ? .open : .complete
            if state == .open { try database.checkRoom(owner, openMax) }
            let row = try database.insertUpload(
                request, hash: hash, owner: owner, state: state, stored: stored, expiresAt: expiresAt)
            return (row, isNew: true)
        }
    }

    func stored(_ sha256: SHA256Digest?, size: Int?, owner: Owner, shoot: String?) async throws(Failure) -> BlobKey? {
        try database.read { database throws(Failure) in
            try database.storedBlob(owner, sha256, size: size, in: shoot)
        }
    }

    func upload(_ id: UploadID, owner: Owner) async throws(Failure) -> UploadRow? {
        let row = try database.read { database throws(Failure) in try database.uploadRow(id) }
        return row?.owner == owner ? row : nil
    }

    func recordSigned(_ parts: [SignedPart], session: StoreSession, owner: Owner, expiresAt: Timestamp)
        async throws(Failure)
    {
        try await database.write("ledger.recordSigned") { database throws(Failure) in
            guard try !database.openRow(session, owner: owner).isTus else { throw LedgerFault.tus }
            for part in parts {
                try database.run(
                    """
                    INSERT INTO signed_parts(upload, generation, number, length, md5) VALUES(?1, ?2, ?3, ?4, ?5)
                    ON CONFLICT DO UPDATE SET length = ?4, md5 = ?5
                    """,
                    [
                        SQLValue(session.upload), .int(session.generation), .int(part.number), .int(part.length),
                        .text(part.md5),
                    ])
            }
            try database.run(
                "UPDATE uploads SET expires_at = MAX(expires_at, ?2) WHERE id = ?1",
                [SQLValue(session.upload), SQLValue(expiresAt)])
        }
    }

    func bind(_ session: StoreSession, to name: String) async throws(Failure) -> String? {
        try await database.write("ledger.bind") { database throws(Failure) in
            try database.run(
                """
                UPDATE uploads SET store_name = COALESCE(store_name, ?3) WHERE id = ?1 AND generation = ?2 AND state = 'open'
                """, [SQLValue(session.upload), .int(session.generation), .text(name)])
            guard let row = try database.uploadRow(session.upload), row.generation == session.generation,
                row.state == .open
            else { return nil }
            return row.storeName
        }
    }

    func signedParts(_ session: StoreSession) async throws(Failure) -> [SignedPart] {
        let rows = try database.rows(
            "SELECT number, length, md5 FROM signed_parts WHERE upload = ?1 AND generation = ?2 ORDER BY number",
            [SQLValue(session.upload), .int(session.generation)])
        var parts: [SignedPart] = []
        for row in rows {
            parts.append(
                SignedPart(
                    number: try row.required(0, SQLRow.int), length: try row.required(1, SQLRow.int),
                    md5: try row.required(2, SQLRow.text)))
        }
        return parts
    }

    func seal(
        _ session: StoreSession, owner: Owner, key: BlobKey, size: Int, sha256: SHA256Digest,
        attaching attachment: AttachRequest?, now: Timestamp
    ) async throws(Failure) -> UploadRow {
        try await database.write("ledger.seal") { database throws(Failure) in
            let row = try database.openRow(session, owner: owner)
            try database.insertBlob(BlobRow(key: key, owner: owner, size: size, sha256: nil), verifiedAt: nil)
            try database.run(
                "UPDATE uploads SET state = 'complete', blob = ?2, size = ?3, sha256 = ?4 WHERE id = ?1",
                [SQLValue(row.id), SQLValue(key), .int(size), SQLValue(sha256)])
            try database.forgetParts(of: row)
            // Where it is a copy, what that was made from goes.
            if key != .upload(session) {
                try database.doom(.upload(session))
                try database.doom(row.session)
            }
            if let attachment { try database.attach(attachment, to: row.item, owner: owner, now: now) }
            // Sent again after it had arrived damaged: the item goes on by itself.
            if row.isAttached { try database.refresh(row.item, hasGrown: true, now: now) }
            guard let sealed = try database.uploadRow(row.id) else { throw LedgerFault.vanished }
            return sealed
        }
    }

    func expire(_ session: StoreSession) async throws(Failure) {
        try await database.write("ledger.expire") { database throws(Failure) in
            guard let row = try database.uploadRow(session.upload), row.generation == session.generation,
                row.state == .open
            else { return }
            try database.end(row, as: .expired)
        }
    }

    func reopen(
        _ id: UploadID, owner: Owner, generation: Int, expiresAt: Timestamp, openMax: Int
    ) async throws(Failure) -> UploadRow? {
        try await database.write("ledger.reopen") { database throws(Failure) in
            guard let row = try database.uploadRow(id), row.owner == owner else { return nil }
            if try database.itemRow(row.item)?.state == .deleted { throw LedgerFault.deleted }
            // The answer to an earlier call was lost.
            if row.generation - 1 == generation, row.state == .open { return row }
            guard row.generation == generation else { throw LedgerFault.stale }
            guard row.state != .complete else { return row }
            if row.state == .open { try database.end(row, as: .expired) }
            try database.checkRoom(owner, openMax)
            try database.run(
                """
                UPDATE uploads SET state = 'open', generation = ?2, already_stored = 0, blob = NULL, store_name = NULL,
                    expires_at = ?3 WHERE id = ?1
                """, [SQLValue(id), .int(generation + 1), SQLValue(expiresAt)])
            try database.run("DELETE FROM signed_parts WHERE upload = ?1", [SQLValue(id)])
            return try database.uploadRow(id)
        }
    }

    func abort(_ id: UploadID, owner: Owner) async throws(Failure) -> UploadRow? {
        try await database.write("ledger.abort") { database throws(Failure) in
            guard let row = try database.uploadRow(id), row.owner == owner else { return nil }
            guard row.state != .aborted else { return row }
            guard !row.isAttached else {
                throw Failure(.conflict, "This upload belongs to an item: delete the item.")
            }
            try database.end(row, as: .aborted)
            return try database.uploadRow(id)
        }
    }

    func isOpen(_ session: StoreSession) async throws(Failure) -> Bool {
        try database.row(
            """
            SELECT 1 FROM uploads WHERE id = ?1 AND generation = ?2 AND state = 'open'
                AND (store_name IS NULL OR ?3 IS NULL OR store_name = ?3)
            """,
            [SQLValue(session.upload), .int(session.generation), SQLValue(session.storeName)]) != nil
    }

    func hasObject(of session: StoreSession) async throws(Failure) -> Bool {
        try database.row(
            """
            SELECT 1 FROM blobs WHERE key = ?1 AND NOT EXISTS(
                SELECT 1 FROM uploads WHERE id = ?2 AND generation = ?3 AND store_name <> ?4)
            """,
            [
                SQLValue(BlobKey.upload(session)), SQLValue(session.upload), .int(session.generation),
                SQLValue(session.storeName),
            ]) != nil
    }

    func openUploads(after: UploadID?, limit: Int) async throws(Failure) -> [UploadRow] {
        let rows = try database.rows(
            """
            SELECT \(UploadRow.columns) FROM \(UploadRow.source) WHERE u.state = 'open' AND u.id > ?1
                AND u.store_name IS NOT NULL ORDER BY u.id
            """, [.text(after?.rawValue ?? "")], limit: limit)
        var uploads: [UploadRow] = []
        for row in rows { uploads.append(try UploadRow(row)) }
        return uploads
    }
}

extension Connection {
    /// Bytes of this owner with this hash, recomputed by us.
    /// - Parameter shoot: the only one that they may have come for; nil for any.
    func storedBlob(_ owner: Owner, _ sha256: SHA256Digest?, size: Int?, in shoot: String? = nil) throws(Failure)
        -> BlobKey?
    {
        guard let sha256, let size else { return nil }
        // Only what came in as an upload: something made here may be made anew and go.
        return try row(
            """
            SELECT b.key FROM blobs b WHERE b.owner = ?1 AND b.sha256 = ?2 AND b.size = ?3
                AND EXISTS (
                    SELECT 1 FROM uploads u LEFT JOIN items i ON i.id = u.item
                    WHERE u.blob = b.key AND (?4 IS NULL OR COALESCE(i.shoot, u.shoot) = ?4)
                ) ORDER BY b.key
            """, [SQLValue(owner), SQLValue(sha256), .int(size), SQLValue(shoot)]
        )?.text(0).flatMap(BlobKey.init(rawValue:))
    }

    /// - Throws: `busy` when the owner has so many open uploads.
    func checkRoom(_ owner: Owner, _ openMax: Int) throws(Failure) {
        let open = try row(
            "SELECT COUNT(*) FROM uploads WHERE owner = ?1 AND state = 'open'", [SQLValue(owner)])?.int(0)
        guard open ?? 0 < openMax else {
            throw Failure(.busy, "There are \(openMax) unfinished uploads already: finish or end some.")
        }
    }

    func insertUpload(
        _ request: OpenUploadRequest, hash: SHA256Digest, owner: Owner, state: SessionState, stored: BlobKey?,
        expiresAt: Timestamp
    ) throws(Failure) -> UploadRow {
        try run(
            """
            INSERT INTO uploads(id, owner, item, role, name, filename, content_type, size, part_size, sha256, request_hash,
                generation, state, already_stored, blob, expires_at, shoot)
            VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 1, ?12, ?13, ?14, ?15, ?16)
            """,
            [
                SQLValue(request.uploadID), SQLValue(owner), SQLValue(request.itemID), SQLValue(request.role),
                .text(request.name), .text(request.filename), .text(request.contentType), SQLValue(request.sizeBytes),
                .int(request.partSize), SQLValue(request.sha256), SQLValue(hash), SQLValue(state),
                SQLValue(stored != nil), SQLValue(stored?.rawValue), SQLValue(expiresAt), .text(request.shoot),
            ])
        guard let row = try uploadRow(request.uploadID) else { throw LedgerFault.vanished }
        return row
    }

    @discardableResult
    func openRow(_ session: StoreSession, owner: Owner) throws(Failure) -> UploadRow {
        guard let row = try uploadRow(session.upload), row.owner == owner else { throw LedgerFault.unknown }
        guard row.generation == session.generation else { throw LedgerFault.stale }
        guard row.state == .open else {
            throw Failure(.gone, "This upload is no longer open: it is \(row.state.rawValue).")
        }
        return row
    }

    /// Takes an upload out of the running and lets go of its bytes.
    func end(_ row: UploadRow, as state: SessionState) throws(Failure) {
        try run("UPDATE uploads SET state = ?2, blob = NULL WHERE id = ?1", [SQLValue(row.id), SQLValue(state)])
        try forgetParts(of: row)
        try releaseBlob(row.blob)
        guard row.state == .open else { return }
        // A complete that was cut short may have left the object without its row.
        for key in [BlobKey.upload(row.session), .copied(row.session)] { try doom(key) }
        // Not every store lists what is under way.
        try doom(row.session)
    }

    func doom(_ key: BlobKey) throws(Failure) {
        try run("INSERT OR IGNORE INTO doomed(key) VALUES(?1)", [SQLValue(key)])
    }

    func doom(_ session: StoreSession) throws(Failure) {
        try run(
            "INSERT OR IGNORE INTO doomed_sessions(upload, generation, store_name) VALUES(?1, ?2, ?3)",
            [SQLValue(session.upload), .int(session.generation), .text(session.storeName ?? "")])
    }
}

enum LedgerFault {
    static let tus = Failure(.conflict, "This upload was made by tus: go on with it there.")
    /// Also for what belongs to another owner, who must not learn that it is there.
    static let unknown = Failure(.notFound, "There is no such thing here.")
    static let deleted = Failure(.gone, "This item was deleted.")
    static let stale = Failure(.staleGeneration, "This upload was opened anew meanwhile: ask for its parts and go on.")
    static let vanished = Failure(.internalError, "A row that was just written is not there.")
}
