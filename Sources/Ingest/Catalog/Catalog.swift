import Files
import SQLite
import Vocabulary

/// The box's durable memory: one SQLite database in the home, shared by every Rushes process of the home. Each change is one transaction, and
/// is named for what has happened.
struct Catalog: Sendable {
    let database: Database
    let notes: HistoryNotes

    /// - Parameters:
    ///   - now: milliseconds since 1970, for the items' stories.
    ///   - isLooking: nothing will be written; the home may be one that cannot be.
    /// - Throws: also what `Home.isInUse` does.
    static func open(
        home: String, now: @escaping @Sendable () -> Int64 = BoxClock.system.now, isLooking: Bool = false
    ) async throws(Failure) -> Catalog {
        _ = try Home.isInUse(home)
        let holdsItems = try Home.holdsItems(home)
        let (path, migrations) = (home + "/" + Home.catalogName, CatalogSchema.migrations)
        let database =
            isLooking
            ? try await Database.looking(path, migrations: migrations)
            : try await Database(path, migrations: migrations)
        let catalog = Catalog(database: database, notes: HistoryNotes(now: now))
        // A whole catalog, but not the one of this home.
        if holdsItems, try catalog.database.row("SELECT 1 FROM item LIMIT 1") == nil {
            throw Home.catalogIsGone(home)
        }
        return catalog
    }

    // MARK: Looking

    func item(_ id: ItemID) throws(Failure) -> ItemRow? {
        try database.row("SELECT \(ItemRow.columns) FROM item WHERE id = ?1", [SQLValue(id)]).map(ItemRow.init)
    }

    /// In the order in which they were picked.
    func items(_ condition: String = "1", _ parameters: [SQLValue] = []) throws(Failure) -> [ItemRow] {
        try database.rows(
            "SELECT \(ItemRow.columns) FROM item WHERE \(condition) ORDER BY rowid", parameters
        ).map(ItemRow.init)
    }

    /// What is not over, paused items among it.
    func open() throws(Failure) -> [WorkQueue.Item] {
        try database.rows(
            """
            SELECT id, state, intent, source_size, source_modified, is_asked OR is_urgent FROM item WHERE state IN (\(Self.unfinishedStates)) OR intent = 'cancelled' AND state <> 'cancelled'
            ORDER BY rowid
            """
        ).map { row throws(Failure) in
            WorkQueue.Item(
                id: try row.required(0, as: ItemID.self), state: try row.required(1, as: ItemState.self),
                intent: try row.required(2, as: Intent.self), bytes: row.int(3) ?? 0,
                modified: Int64(row.int(4) ?? 0), isAsked: row.bool(5))
        }
    }

    static let unfinishedStates = ItemState.unfinished.map { "'\($0.rawValue)'" }.joined(separator: ",")

    /// The given files first, in the order of their paths.
    func files(of item: ItemID) throws(Failure) -> [FileRow] {
        try database.rows(
            "SELECT \(FileRow.columns) FROM file WHERE item = ?1 ORDER BY path", [SQLValue(item)]
        ).map(FileRow.init)
    }

    func uploads(of item: ItemID) throws(Failure) -> [UploadRow] {
        try database.rows(
            "SELECT \(UploadRow.columns) FROM upload WHERE item = ?1 ORDER BY id", [SQLValue(item)]
        ).map(UploadRow.init)
    }

    func parts(of upload: UploadID) throws(Failure) -> [PartRow] {
        try database.rows(
            "SELECT number, bytes, etag FROM part WHERE upload = ?1 ORDER BY number", [SQLValue(upload)]
        ).map { row throws(Failure) in
            PartRow(number: try row.required(0, SQLRow.int), bytes: try row.required(1, SQLRow.int), etag: row.text(2))
        }
    }

    /// An item that was picked earlier, is on its way to the same backend by itself, and has a given file of the same bytes that the backend has
    /// not confirmed yet. Who waits for it waits for earlier ones only, so that no two wait for each other.
    /// - Returns: its name.
    func twin(of file: FileRow, _ item: ItemRow) throws(Failure) -> String? {
        guard file.role.isGiven, let sha256 = file.sha256 else { return nil }
        return try database.row(
            """
            SELECT other.name FROM file JOIN item AS other ON other.id = file.item JOIN item AS this ON this.id = ?2
                LEFT JOIN upload ON upload.item = file.item AND upload.role = file.role AND upload.name = file.name
            WHERE file.sha256 = ?1 AND file.role IN ('original', 'sidecar') AND file.state = 'staged'
                AND other.rowid < this.rowid AND other.intent = 'run' AND other.is_urgent >= this.is_urgent
                AND (other.state IN ('staged', 'preparing') AND upload.id IS NULL
                    OR other.state IN ('uploading', 'processing') AND upload.confirmed_sha256 IS NULL
                        AND upload.id IS NOT NULL AND other.server = this.server)
            """, [SQLValue(sha256), SQLValue(item.id)])?.text(0)
    }

    /// Changes whenever another connection has committed something.
    func version() async throws(Failure) -> Int { try await database.version() }

    /// What is on its way and what has arrived, in bytes: of every upload of an item, and the parts that the store is known to hold.
    func transferred(_ item: ItemID) throws(Failure) -> (total: Int, confirmed: Int) {
        let row = try database.row(
            """
            SELECT coalesce(sum(file.bytes), 0),
                coalesce(sum(CASE WHEN upload.state = 'completed' THEN file.bytes
                    ELSE (SELECT coalesce(sum(bytes), 0) FROM part WHERE part.upload = upload.id) END), 0)
            FROM upload JOIN file USING(item, role, name) WHERE upload.item = ?1
            """, [SQLValue(item)])
        return (row?.int(0) ?? 0, row?.int(1) ?? 0)
    }
}

extension Connection {
    /// The one place where an item's state goes on.
    /// - Returns: false when the item is past that state, in another generation, or to be cancelled: the event came late and changes nothing.
    func advance(_ id: ItemID, generation: Int, to state: ItemState) throws(Failure) -> Bool {
        guard let row = try row("SELECT state, generation, intent FROM item WHERE id = ?1", [SQLValue(id)]) else {
            return false
        }
        let present = try row.required(0, as: ItemState.self)
        guard row.int(1) == generation, row.text(2) != Intent.cancelled.rawValue, state.rank >= present.rank,
            !present.isFinal || present == state
        else {
            return false
        }
        try run(
            "UPDATE item SET state = ?2, waiting = NULL WHERE id = ?1 AND (state <> ?2 OR waiting IS NOT NULL)",
            [SQLValue(id), SQLValue(state)])
        return true
    }

    /// Goes back to a state, in a generation of its own.
    /// - Returns: false when the item is in another generation: the event came late and changes nothing.
    func goBack(_ item: ItemRow, to state: ItemState) throws(Failure) -> Bool {
        try run(
            """
            UPDATE item SET generation = generation + 1, attempts = attempts + 1, state = ?3, waiting = NULL
            WHERE id = ?1 AND generation = ?2
            """, [SQLValue(item.id), SQLValue(item.generation), SQLValue(state)]) > 0
    }
}
