import Files
import SQLite
import Vocabulary

/// From the pick to bytes in staging.
extension Catalog {
    /// An item to be, with its given files.
    struct NewItem: Sendable {
        var id: ItemID
        var shoot: String
        var name: String
        var source: WalkedFile
        var isMoved: Bool
        var prepare: PrepareMode
        var title, caption, place: String?
        var isUrgent = false
        var isAsked = false
        var files: [FileRow]
        /// Milliseconds since 1970.
        var created: Int64
    }

    /// What a pick changes.
    struct Picks: Sendable {
        var new: [NewItem] = []
        /// Finished items that are to be tried once more.
        var again: [ItemID] = []
        /// Finished items of which the backend has nothing any more, with the files that stand for them now.
        var lost: [NewItem] = []
        /// Files that known items get beside those that they have.
        var sidecars: [FileRow] = []
        /// Known items that are not to wait for better conditions.
        var urgent: [ItemID] = []
        /// Known items that a person has just asked for.
        var asked: [ItemID] = []
        var isEmpty: Bool {
            new.isEmpty && again.isEmpty && lost.isEmpty && sidecars.isEmpty && urgent.isEmpty && asked.isEmpty
        }
    }

    /// Writes the intent: from here on the items exist, whatever happens.
    /// - Parameter since: when the picks were compared with the catalog, in milliseconds since 1970.
    /// - Returns: for a pick that another process has enrolled meanwhile, the item that stands for it.
    func picked(_ picks: Picks, since: Int64) async throws(Failure) -> [ItemID: ItemID] {
        try await database.write("catalog.picked") { database throws(Failure) in
            var joined: [ItemID: ItemID] = [:]
            var urgent = picks.urgent
            var asked = picks.asked
            for item in picks.new {
                let same = try database.row(
                    """
                    SELECT id FROM item WHERE source = ?1 AND shoot = ?2 AND source_size = ?3 AND source_modified = ?4
                        AND (state IN (\(Self.unfinishedStates)) OR created >= ?5)
                    """,
                    [
                        .blob(item.source.path.bytes), SQLValue(item.shoot), SQLValue(item.source.size),
                        SQLValue(item.source.modified), SQLValue(since),
                    ])
                if let same {
                    let known = try same.required(0, as: ItemID.self)
                    joined[item.id] = known
                    if item.isUrgent { urgent.append(known) }
                    if item.isAsked { asked.append(known) }
                    continue
                }
                try database.insert(item)
                try remember(item.id, HistoryEntry(.picked, words: item.source.path.description), in: database)
            }
            for id in urgent {
                let changed = try database.run(
                    "UPDATE item SET is_urgent = 1 WHERE id = ?1 AND is_urgent = 0", [SQLValue(id)])
                if changed > 0 { try remember(id, HistoryEntry(.steered, words: "upload now"), in: database) }
            }
            for id in asked {
                try database.run("UPDATE item SET is_asked = 1 WHERE id = ?1 AND is_asked = 0", [SQLValue(id)])
            }
            for item in picks.lost where try database.beginAnew(item) {
                try remember(
                    item.id, HistoryEntry(.startedAgain, words: "the backend does not have it any more"), in: database)
            }
            var grown: Set<ItemID> = []
            for file in picks.sidecars {
                // Another process may have added the same one.
                let taken = try database.row("SELECT 1 FROM file WHERE path = ?1", [SQLValue(file.path)])
                guard taken == nil else { continue }
                try database.insert(file)
                grown.insert(file.item)
            }
            for id in grown.union(picks.again) {
                try database.startAgain(id)
                let words = grown.contains(id) ? "there is another sidecar" : "picked again"
                try remember(id, HistoryEntry(.startedAgain, words: words), in: database)
            }
            return joined
        }
    }

    /// The bytes are in staging, whole and durable. The last of the given files makes the item staged.
    func staged(_ file: FileRow, of item: ItemRow) async throws(Failure) {
        try await database.write("catalog.staged") { database throws(Failure) -> Void in
            try database.run(
                """
                UPDATE file SET state = 'staged', bytes = ?4, sha256 = ?5, ends = ?6, source_size = ?7,
                    source_modified = ?8, source_removed = ?9, xxh128 = ?10, hashed_at = ?11 WHERE item = ?1 AND role = ?2 AND name = ?3
                """,
                [
                    SQLValue(file.item), SQLValue(file.role), SQLValue(file.name), SQLValue(file.bytes),
                    SQLValue(file.sha256), SQLValue(file.ends), SQLValue(file.sourceSize),
                    SQLValue(file.sourceModified), SQLValue(file.isSourceRemoved), SQLValue(file.xxh128?.rawValue),
                    SQLValue(notes.now()),
                ])
            var entry = HistoryEntry(.staged, file: file.label, bytes: file.bytes, sha256: file.sha256)
            entry.xxh128 = file.xxh128?.rawValue
            try remember(item.id, entry, in: database)
            try database.advanceIfNoneIsWanted(item)
        }
    }

    /// A sidecar that cannot be read: the item goes without it.
    func leftOut(_ file: FileRow, of item: ItemRow, _ reason: Reason) async throws(Failure) {
        try await database.write("catalog.leftOut") { database throws(Failure) -> Void in
            try database.run(
                "UPDATE file SET state = 'discarded' WHERE item = ?1 AND role = ?2 AND name = ?3 AND state = 'wanted'",
                [SQLValue(file.item), SQLValue(file.role), SQLValue(file.name)])
            try remember(item.id, HistoryEntry(.attempt, file: file.label, reason: reason), in: database)
            try database.advanceIfNoneIsWanted(item)
        }
    }

    /// The move is finished: the source is gone.
    func sourceRemoved(_ file: FileRow) async throws(Failure) {
        try await database.write("catalog.sourceRemoved") { database throws(Failure) -> Void in
            try database.run(
                "UPDATE file SET source_removed = 1 WHERE item = ?1 AND role = ?2 AND name = ?3",
                [SQLValue(file.item), SQLValue(file.role), SQLValue(file.name)])
            try remember(file.item, HistoryEntry(.sourceRemoved, file: file.label), in: database)
        }
    }

    /// The move is not finished: the source could not be removed.
    func sourceStays(_ file: FileRow, _ reason: Reason) async throws(Failure) {
        try await database.write("catalog.sourceStays") { database throws(Failure) -> Void in
            try remember(file.item, HistoryEntry(.sourceStays, file: file.label, reason: reason), in: database)
        }
    }

    /// Given files that were to be moved and whose bytes are safe, with their sources still there as far as is known. What was cancelled is in
    /// nobody's way where it is.
    func unmoved() throws(Failure) -> [FileRow] {
        let columns = FileRow.columns.split(separator: ",").map { "file." + $0.filter { $0 != " " } }
        return try database.rows(
            """
            SELECT \(columns.joined(separator: ", ")) FROM file JOIN item ON item.id = file.item
            WHERE item.is_moved = 1 AND item.intent <> 'cancelled' AND file.source_removed = 0
                AND file.source IS NOT NULL
                AND file.state IN ('staged', 'released') AND file.role IN ('original', 'sidecar')
            ORDER BY item.rowid, file.path
            """
        ).map(FileRow.init)
    }

    // MARK: Picked before?

    /// Those of the items that no person has asked for, and that are on their way or could be again.
    func unasked(_ ids: [ItemID]) throws(Failure) -> [ItemID] {
        let unasked = try database.rows(
            "SELECT id FROM item WHERE is_asked = 0 AND state NOT IN ('ready', 'rejected')"
        ).map { row throws(Failure) in try row.required(0, as: ItemID.self) }
        return ids.filter(Set(unasked).contains)
    }

    /// - Parameter shoot: nil for all of them.
    func picks(of source: RawPath, shoot: String?) throws(Failure) -> [ItemRow] {
        try items("source = ?1 AND (?2 IS NULL OR shoot = ?2)", [.blob(source.bytes), SQLValue(shoot)])
    }

    /// Finished items of so many bytes: their bytes were confirmed by this backend, or they were refused for what they are.
    /// - Parameter source: what was picked from there counts in whatever shoot it is.
    func settled(bytes: Int, shoot: String, orSource source: RawPath?, server: String) throws(Failure) -> [(
        item: ItemRow, file: FileRow
    )] {
        let ids = try database.rows(
            """
            SELECT item.id FROM file JOIN item ON item.id = file.item
                LEFT JOIN upload ON upload.item = file.item AND upload.role = file.role AND upload.name = file.name
            WHERE file.role = 'original' AND file.bytes = ?1 AND (item.shoot = ?2 OR item.source = ?4)
                AND file.sha256 IS NOT NULL
                AND (upload.confirmed_sha256 = file.sha256 OR item.state = 'rejected')
                AND (item.server = ?3 OR item.server IS NULL)
            ORDER BY item.rowid
            """,
            [
                SQLValue(bytes), SQLValue(shoot), SQLValue(server), source.map { .blob($0.bytes) } ?? .null,
            ])
        var found: [(ItemRow, FileRow)] = []
        for row in ids {
            let id = try row.required(0, as: ItemID.self)
            guard let item = try item(id),
                let file = try files(of: id).first(where: { $0.role == .original })
            else { continue }
            found.append((item, file))
        }
        return found
    }
}

extension Connection {
    fileprivate func insert(_ item: Catalog.NewItem) throws(Failure) {
        try run(
            """
            INSERT INTO item(id, shoot, name, source, source_size, source_modified, is_moved, prepare, title, caption,
                place, state, created, is_urgent, is_asked)
            VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 'picked', ?12, ?13, ?14)
            """,
            [
                SQLValue(item.id), SQLValue(item.shoot), SQLValue(item.name), .blob(item.source.path.bytes),
                SQLValue(item.source.size), SQLValue(item.source.modified), SQLValue(item.isMoved),
                SQLValue(item.prepare), SQLValue(item.title), SQLValue(item.caption), SQLValue(item.place),
                SQLValue(item.created), SQLValue(item.isUrgent), SQLValue(item.isAsked),
            ])
        for file in item.files { try insert(file) }
    }

    func advanceIfNoneIsWanted(_ item: ItemRow) throws(Failure) {
        let wanted = try row("SELECT count(*) FROM file WHERE item = ?1 AND state = 'wanted'", [SQLValue(item.id)])
        if wanted?.int(0) == 0 { _ = try advance(item.id, generation: item.generation, to: .staged) }
    }

    func insert(_ file: FileRow) throws(Failure) {
        try run(
            """
            INSERT INTO file(item, role, name, source, source_size, source_modified, path, content_type, state, bytes,
                sha256, card, below) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
            """,
            [
                SQLValue(file.item), SQLValue(file.role), SQLValue(file.name),
                file.source.map { .blob($0.bytes) } ?? .null, SQLValue(file.sourceSize), SQLValue(file.sourceModified),
                SQLValue(file.path), SQLValue(file.contentType), SQLValue(file.state), SQLValue(file.bytes),
                SQLValue(file.sha256), file.card.map { .blob($0.bytes) } ?? .null,
                file.below.map { .blob($0.bytes) } ?? .null,
            ])
    }

    /// A new generation of a finished item, of which nothing is left to go on with.
    /// - Returns: false where somebody has done so already.
    fileprivate func beginAnew(_ item: Catalog.NewItem) throws(Failure) -> Bool {
        let id = [SQLValue(item.id)]
        let busy = "state IN (\(Catalog.unfinishedStates)) OR intent = 'cancelled' AND state <> 'cancelled'"
        guard try row("SELECT 1 FROM item WHERE id = ?1 AND (\(busy))", id) == nil else { return false }
        try run("DELETE FROM part WHERE upload IN (SELECT id FROM upload WHERE item = ?1)", id)
        try run("DELETE FROM upload WHERE item = ?1", id)
        try run("DELETE FROM file WHERE item = ?1", id)
        for file in item.files { try insert(file) }
        // The backend may have a tombstone of it.
        try run(
            """
            UPDATE item SET source = ?2, source_size = ?3, source_modified = ?4, is_moved = ?5, prepare = ?6,
                document = NULL, server = NULL, was_deleted = 1 WHERE id = ?1
            """,
            id + [
                .blob(item.source.path.bytes), SQLValue(item.source.size), SQLValue(item.source.modified),
                SQLValue(item.isMoved), SQLValue(item.prepare),
            ])
        try startAgain(item.id)
        return true
    }

    /// A new generation, from as far back as its files make necessary. What the backend holds already stays known.
    func startAgain(_ id: ItemID) throws(Failure) {
        try run("UPDATE file SET state = 'wanted' WHERE item = ?1 AND state = 'discarded'", [SQLValue(id)])
        try run(
            """
            UPDATE item SET generation = generation + 1, attempts = 0, waiting = NULL, reason_code = NULL,
                reason_message = NULL, is_retryable = 0,
                intent = CASE WHEN intent = 'paused' AND state IN (\(Catalog.unfinishedStates)) THEN intent ELSE 'run' END,
                state = CASE
                    WHEN EXISTS(SELECT 1 FROM file WHERE file.item = item.id AND file.state = 'wanted') THEN 'picked'
                    WHEN EXISTS(SELECT 1 FROM upload WHERE upload.item = item.id) THEN 'uploading'
                    ELSE 'staged' END
            WHERE id = ?1
            """, [SQLValue(id)])
    }
}
