import SQLite
import Vocabulary

extension SQLiteLedger {
    func attach(_ request: AttachRequest, to item: ItemID, owner: Owner, now: Timestamp) async throws(Failure)
        -> ItemRow
    {
        try await database.write("ledger.attach") { database throws(Failure) in
            try database.attach(request, to: item, owner: owner, now: now)
            guard let row = try database.itemRow(item) else { throw LedgerFault.vanished }
            return row
        }
    }

    func item(_ id: ItemID, owner: Owner) async throws(Failure) -> ItemRow? {
        let row = try database.read { database throws(Failure) in try database.itemRow(id) }
        return row?.owner == owner ? row : nil
    }

    func items(owner: Owner, shoot: String?, after: ItemID?, limit: Int) async throws(Failure) -> [ItemRow] {
        try database.read { database throws(Failure) in
            let condition = shoot == nil ? "" : "AND shoot = ?3"
            let found = try database.rows(
                """
                SELECT \(ItemRow.columns) FROM items WHERE owner = ?1 AND id > ?2 \(condition) AND state <> 'deleted' ORDER BY id
                """, [SQLValue(owner), .text(after?.rawValue ?? "")] + (shoot.map { [.text($0)] } ?? []), limit: limit)
            var items: [ItemRow] = []
            for row in found { items.append(try database.itemRow(row, id: try row.required(0, as: ItemID.self))) }
            return items
        }
    }

    func remove(_ id: ItemID, owner: Owner, now: Timestamp) async throws(Failure) -> Bool {
        try await database.write("ledger.remove") { database throws(Failure) in
            let known = try database.itemRow(id)
            if let known, known.owner != owner { return false }
            if known?.state == .deleted { return true }
            // Uploads may have been opened for an item that was never described.
            var uploads: [UploadRow] = []
            for row in try database.rows(
                "SELECT \(UploadRow.columns) FROM \(UploadRow.source) WHERE u.item = ?1 AND u.owner = ?2",
                [SQLValue(id), SQLValue(owner)])
            {
                uploads.append(try UploadRow(row))
            }
            guard known != nil || !uploads.isEmpty else { return false }
            if let known {
                try database.run("DELETE FROM renditions WHERE item = ?1", [SQLValue(id)])
                try database.run("DELETE FROM jobs WHERE item = ?1", [SQLValue(id)])
                for rendition in known.renditions { try database.releaseBlob(rendition.blob) }
            }
            for upload in uploads {
                try database.end(upload, as: .aborted)
                try database.releaseSuspects(of: upload.id)
            }
            if let known {
                try database.run("UPDATE uploads SET attached = 0 WHERE item = ?1", [SQLValue(id)])
                try database.move(known, to: .deleted, generation: known.generation, now: now)
            }
            return true
        }
    }
}

extension Connection {
    func attach(_ request: AttachRequest, to item: ItemID, owner: Owner, now: Timestamp) throws(Failure) {
        try describe(item, by: request, owner: owner, now: now)
        var hasGrown = false
        for wanted in request.uploads where try attach(wanted, to: item, owner: owner) { hasGrown = true }
        try refresh(item, hasGrown: hasGrown, now: now)
    }

    /// Makes the item's row, or brings what people say about it up to date.
    fileprivate func describe(_ id: ItemID, by request: AttachRequest, owner: Owner, now: Timestamp) throws(Failure) {
        if let known = try itemRow(id) {
            guard known.owner == owner else { throw LedgerFault.unknown }
            if known.state == .deleted {
                // Only on purpose: what comes late from before the deletion names uploads.
                guard request.uploads.isEmpty else { throw LedgerFault.deleted }
                try move(known, to: .awaiting, generation: known.generation + 1, now: now)
            }
        }
        // The kind is only a hint until the original was probed.
        try run(
            """
            INSERT INTO items(id, owner, shoot, kind, title, caption, place, taken_at, state, generation, created_at, updated_at)
            VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'awaiting', 1, ?9, ?9)
            ON CONFLICT(id) DO UPDATE SET shoot = ?3, kind = COALESCE(kind, ?4), title = COALESCE(?5, title),
                caption = COALESCE(?6, caption), place = COALESCE(?7, place), taken_at = COALESCE(?8, taken_at)
            """,
            [
                SQLValue(id), SQLValue(owner), .text(request.shoot), SQLValue(request.kind?.rawValue),
                SQLValue(request.title),
                SQLValue(request.caption), SQLValue(request.place), SQLValue(request.takenAt), SQLValue(now),
            ])
    }

    /// - Returns: whether the upload is newly attached.
    fileprivate func attach(_ wanted: AttachRequest.Upload, to item: ItemID, owner: Owner) throws(Failure) -> Bool {
        // A foreign upload is told like one that does not fit: the item is what was asked for, and it is there.
        guard let row = try uploadRow(wanted.uploadID), row.owner == owner, row.item == item else {
            throw Failure(.conflict, "Upload \(wanted.uploadID) does not belong to this item.")
        }
        guard row.role == wanted.role, row.name == wanted.name else {
            throw Failure(.conflict, "Upload \(wanted.uploadID) was opened under another role or name.")
        }
        if row.isAttached { return false }
        guard row.state == .complete else {
            throw Failure(.conflict, "Upload \(wanted.uploadID) is not complete.", remedy: .retryLater)
        }
        let taken = try self.row(
            "SELECT 1 FROM uploads WHERE item = ?1 AND role = ?2 AND name = ?3 AND attached = 1",
            [SQLValue(item), SQLValue(row.role), .text(row.name)])
        guard taken == nil else {
            throw Failure(.conflict, "This item has another \(row.role.rawValue) named “\(row.name)” already.")
        }
        try run("UPDATE uploads SET attached = 1 WHERE id = ?1", [SQLValue(row.id)])
        return true
    }
}
