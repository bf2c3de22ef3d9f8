import SQLite
import Vocabulary

/// The ledger of one machine. Each intent is one transaction, so one durable step.
struct SQLiteLedger: Ledger {
    let database: Database

    static func open(_ path: String) async throws(Failure) -> SQLiteLedger {
        SQLiteLedger(database: try await Database(path, migrations: SQLiteSchema.migrations))
    }

    /// For who only looks; the folder may be one that cannot be written.
    static func looking(_ path: String) async throws(Failure) -> SQLiteLedger {
        SQLiteLedger(database: try await Database.looking(path, migrations: SQLiteSchema.migrations))
    }
}

// MARK: Rows

extension SQLRow {
    func timestamp(_ column: Int) -> Timestamp? { int(column).map { Timestamp(milliseconds: Int64($0)) } }
    func digest(_ column: Int) -> SHA256Digest? { text(column).flatMap(SHA256Digest.init(rawValue:)) }
    func reason(_ column: Int) -> Reason? {
        text(column).map { Reason(FailureCode(rawValue: $0), text(column + 1) ?? "") }
    }
}

extension SQLValue {
    init(_ time: Timestamp) { self.init(time.milliseconds) }
}

extension UploadRow {
    /// The order of columns that `init(_:)` reads.
    static let columns = """
        u.id, u.owner, u.item, u.role, u.name, u.filename, u.size, u.part_size, u.sha256, u.generation, u.state, u.already_stored,
        u.attached, u.blob, u.expires_at, b.sha256, b.verified_at, u.store_name,
        EXISTS (SELECT 1 FROM tus WHERE tus.upload = u.id)
        """
    static let source = "uploads u LEFT JOIN blobs b ON b.key = u.blob"

    init(_ row: SQLRow) throws(Failure) {
        id = try row.required(0, as: UploadID.self)
        owner = try row.required(1, as: Owner.self)
        item = try row.required(2, as: ItemID.self)
        role = try row.required(3, as: FileRole.self)
        name = try row.required(4, SQLRow.text)
        filename = try row.required(5, SQLRow.text)
        size = row.int(6)
        partSize = try row.required(7, SQLRow.int)
        sha256 = row.digest(8)
        generation = try row.required(9, SQLRow.int)
        state = try row.required(10, as: SessionState.self)
        isAlreadyStored = row.bool(11)
        isAttached = row.bool(12)
        blob = row.text(13).flatMap(BlobKey.init(rawValue:))
        expiresAt = try row.required(14, SQLRow.timestamp)
        recomputed = row.digest(15)
        verifiedAt = row.timestamp(16)
        storeName = row.text(17)
        isTus = row.bool(18)
    }
}

extension RenditionRow {
    static let columns = "role, name, content_type, size, sha256, width, height, blob"

    init(_ row: SQLRow) throws(Failure) {
        rendition = Rendition(
            role: try row.required(0, as: FileRole.self), name: try row.required(1, SQLRow.text),
            contentType: try row.required(2, SQLRow.text), sizeBytes: try row.required(3, SQLRow.int),
            sha256: try row.required(4, as: SHA256Digest.self), width: row.int(5), height: row.int(6))
        blob = try row.required(7, as: BlobKey.self)
    }
}

extension ItemRow {
    static let columns =
        "id, owner, shoot, kind, state, generation, reason_code, reason_message, duration_ms, aspect, preview_color"

    init(_ row: SQLRow, uploads: [UploadRow], renditions: [RenditionRow]) throws(Failure) {
        id = try row.required(0, as: ItemID.self)
        owner = try row.required(1, as: Owner.self)
        shoot = try row.required(2, SQLRow.text)
        kind = row.text(3).flatMap(MediaFacts.Kind.init(rawValue:))
        state = try row.required(4, as: BackendItemState.self)
        generation = try row.required(5, SQLRow.int)
        reason = row.reason(6)
        durationMS = row.int(8)
        aspect = row.real(9)
        previewColor = row.text(10)
        self.uploads = uploads
        self.renditions = renditions
    }
}

// MARK: Pieces of transactions

extension Connection {
    func uploadRow(_ id: UploadID) throws(Failure) -> UploadRow? {
        guard let row = try row("SELECT \(UploadRow.columns) FROM \(UploadRow.source) WHERE u.id = ?1", [SQLValue(id)])
        else { return nil }
        return try UploadRow(row)
    }

    func itemRow(_ id: ItemID) throws(Failure) -> ItemRow? {
        guard let row = try row("SELECT \(ItemRow.columns) FROM items WHERE id = ?1", [SQLValue(id)]) else {
            return nil
        }
        return try itemRow(row, id: id)
    }

    func itemRow(_ row: SQLRow, id: ItemID) throws(Failure) -> ItemRow {
        let uploadRows = try rows(
            "SELECT \(UploadRow.columns) FROM \(UploadRow.source) WHERE u.item = ?1 AND u.attached = 1 ORDER BY u.id",
            [SQLValue(id)])
        let renditionRows = try rows(
            "SELECT \(RenditionRow.columns) FROM renditions WHERE item = ?1 ORDER BY role, name", [SQLValue(id)])
        var uploads: [UploadRow] = []
        for row in uploadRows { uploads.append(try UploadRow(row)) }
        var renditions: [RenditionRow] = []
        for row in renditionRows { renditions.append(try RenditionRow(row)) }
        return try ItemRow(row, uploads: uploads, renditions: renditions)
    }

    /// Changes an item's state, with its event, numbered without gaps inside this transaction.
    func move(_ item: ItemRow, to state: BackendItemState, generation: Int, reason: Reason? = nil, now: Timestamp)
        throws(Failure)
    {
        try run(
            "UPDATE items SET state = ?2, generation = ?3, reason_code = ?4, reason_message = ?5, updated_at = ?6 WHERE id = ?1",
            [
                SQLValue(item.id), SQLValue(state), .int(generation), SQLValue(reason?.code.rawValue),
                SQLValue(reason?.message),
                SQLValue(now),
            ])
        try run(
            """
            INSERT INTO events(owner, number, item, shoot, generation, state, reason_code, reason_message, at)
            SELECT ?1, COALESCE(MAX(number), 0) + 1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 FROM events WHERE owner = ?1
            """,
            [
                SQLValue(item.owner), SQLValue(item.id), .text(item.shoot), .int(generation), SQLValue(state),
                SQLValue(reason?.code.rawValue), SQLValue(reason?.message), SQLValue(now),
            ])
    }

    /// Removes the row of an object that nothing names any more; its bytes go after this transaction.
    func releaseBlob(_ key: BlobKey?) throws(Failure) {
        guard let key else { return }
        let removed = try run(
            """
            DELETE FROM blobs WHERE key = ?1 AND suspect_of IS NULL
                AND NOT EXISTS (SELECT 1 FROM uploads WHERE blob = ?1) AND NOT EXISTS (SELECT 1 FROM renditions WHERE blob = ?1)
            """, [SQLValue(key)])
        if removed > 0 { try doom(key) }
    }

    /// What was kept because it might be all that there is of this upload's bytes.
    /// - Parameter found: where they are now, for all who name what was kept; nil: nowhere.
    func releaseSuspects(of upload: UploadID, for found: BlobKey? = nil) throws(Failure) {
        for row in try rows("SELECT key FROM blobs WHERE suspect_of = ?1", [SQLValue(upload)]) {
            let key = try row.required(0, as: BlobKey.self)
            try run("UPDATE blobs SET suspect_of = NULL WHERE key = ?1", [SQLValue(key)])
            if let found { try replace(key, by: found) }
            try releaseBlob(key)
        }
    }

    /// The same bytes under another key.
    func replace(_ key: BlobKey, by other: BlobKey) throws(Failure) {
        for table in ["uploads", "renditions"] {
            try run("UPDATE \(table) SET blob = ?2 WHERE blob = ?1", [SQLValue(key), SQLValue(other)])
        }
    }

    /// The keys of what was made carry the epoch: an item that is deleted and brought back must never use one again. Far more than a job can
    /// have attempts.
    static let epochsPerGeneration = 1_000_000

    func insertBlob(_ blob: BlobRow, verifiedAt: Timestamp?) throws(Failure) {
        try run(
            "INSERT INTO blobs(key, owner, size, sha256, verified_at) VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT(key) DO NOTHING",
            [
                SQLValue(blob.key), SQLValue(blob.owner), .int(blob.size), SQLValue(blob.sha256),
                verifiedAt.map { SQLValue($0) } ?? .null,
            ])
    }

    /// When all that is attached has arrived, the item is processed; while something is missing, it waits.
    func refresh(_ id: ItemID, hasGrown: Bool, now: Timestamp) throws(Failure) {
        guard let item = try itemRow(id), item.state != .deleted else { return }
        let isWhole = !item.uploads.isEmpty && item.uploads.allSatisfy { $0.state == .complete }
        switch item.state {
        case .awaiting:
            guard isWhole else { return }
            try move(item, to: .processing, generation: item.generation, now: now)
            try makeRunnable(id, now: now)
        case .processing:
            guard hasGrown else { return }
            try run("UPDATE jobs SET again = 1 WHERE item = ?1 AND state = 'running'", [SQLValue(id)])
            try run(
                "UPDATE jobs SET attempts = 0, failures = 0, runnable_at = ?2 WHERE item = ?1 AND state = 'available'",
                [SQLValue(id), SQLValue(now)])
        case .ready, .rejected:
            // Who attaches once more what failed without a verdict asks for another try.
            let mayGoBetter = item.state == .rejected && item.reason?.code.isVerdict == false
            guard hasGrown || mayGoBetter, isWhole else { return }
            try move(item, to: .processing, generation: item.generation + 1, now: now)
            try makeRunnable(id, now: now)
        case .deleted: return
        }
    }

    private func makeRunnable(_ id: ItemID, now: Timestamp) throws(Failure) {
        try run(
            """
            INSERT INTO jobs(item, state, runnable_at, attempts, epoch)
            SELECT ?1, 'available', ?2, 0, (generation - 1) * \(Self.epochsPerGeneration) FROM items WHERE id = ?1
            ON CONFLICT(item) DO UPDATE SET state = 'available', runnable_at = ?2, attempts = 0, failures = 0, lease_until = NULL, again = 0
            """, [SQLValue(id), SQLValue(now)])
    }
}
