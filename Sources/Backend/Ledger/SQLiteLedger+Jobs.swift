import SQLite
import Vocabulary

extension SQLiteLedger {
    func claim(now: Timestamp, leaseUntil: Timestamp) async throws(Failure) -> ClaimedJob? {
        try await database.write("ledger.claim") { database throws(Failure) in
            let claimed = try database.row(
                """
                UPDATE jobs SET state = 'running', attempts = attempts + 1, epoch = epoch + 1, lease_until = ?2, again = 0
                WHERE item = (SELECT item FROM jobs WHERE state = 'available' AND runnable_at <= ?1 ORDER BY runnable_at, item LIMIT 1)
                RETURNING item, epoch, attempts, failures
                """, [SQLValue(now), SQLValue(leaseUntil)])
            guard let claimed else { return nil }
            guard let item = try database.itemRow(try claimed.required(0, as: ItemID.self)) else {
                throw LedgerFault.vanished
            }
            return ClaimedJob(
                item: item, epoch: try claimed.required(1, SQLRow.int), attempt: try claimed.required(2, SQLRow.int),
                failureCount: try claimed.required(3, SQLRow.int))
        }
    }

    func heartbeat(_ item: ItemID, epoch: Int, leaseUntil: Timestamp) async throws(Failure) -> Bool {
        try await database.write("ledger.heartbeat") { database throws(Failure) in
            guard try database.holds(item, epoch) else { return false }
            try database.run(
                "UPDATE jobs SET lease_until = ?2 WHERE item = ?1", [SQLValue(item), SQLValue(leaseUntil)])
            return true
        }
    }

    func recordVerified(
        _ upload: UploadID, item: ItemID, epoch: Int, sha256: SHA256Digest, lost: BlobKey?, now: Timestamp
    ) async throws(Failure) -> BlobKey? {
        try await database.write("ledger.recordVerified") { database throws(Failure) in
            guard try database.holds(item, epoch), let row = try database.uploadRow(upload), row.item == item,
                let key = row.blob
            else { return nil }
            if let lost {
                try database.replace(lost, by: key)
                try database.releaseBlob(lost)
            }
            if let kept = try database.storedBlob(row.owner, sha256, size: row.size), kept != key {
                try database.replace(key, by: kept)
                try database.releaseBlob(key)
                try database.releaseSuspects(of: upload, for: kept)
                return kept
            }
            try database.run(
                "UPDATE blobs SET sha256 = ?2, verified_at = ?3 WHERE key = ?1",
                [SQLValue(key), SQLValue(sha256), SQLValue(now)])
            try database.releaseSuspects(of: upload, for: key)
            return key
        }
    }

    func recordDamaged(_ upload: UploadID, key: BlobKey?, item: ItemID, epoch: Int, now: Timestamp)
        async throws(Failure) -> Bool
    {
        try await database.write("ledger.recordDamaged") { database throws(Failure) in
            guard try database.holds(item, epoch), let row = try database.uploadRow(upload), row.item == item,
                row.blob == key, let itemRow = try database.itemRow(item)
            else { return false }
            // What points to these bytes goes first; a rendition that was an alias of them is made anew.
            if let key {
                try database.run(
                    "DELETE FROM renditions WHERE item = ?1 AND blob = ?2", [SQLValue(item), SQLValue(key)])
                // Others may name these bytes too; nobody is told any more that they are there. What was verified may be all that there is
                // of them: it stays, in case the store is wrong, until what comes in its place is verified.
                try database.run(
                    """
                    UPDATE blobs SET suspect_of = CASE WHEN verified_at IS NULL THEN suspect_of ELSE ?2 END, sha256 = NULL,
                        verified_at = NULL WHERE key = ?1
                    """, [SQLValue(key), SQLValue(upload)])
            }
            try database.end(row, as: .expired)
            try database.complete(item, epoch, generation: itemRow.generation, state: .awaiting, now: now)
            try database.move(itemRow, to: .awaiting, generation: itemRow.generation + 1, now: now)
            return true
        }
    }

    func publish(_ manifest: Manifest, item: ItemID, epoch: Int, now: Timestamp) async throws(Failure) -> Bool {
        try await end(item, epoch, as: .ready, reason: nil, manifest: manifest, now: now, step: "ledger.publish")
    }

    func reject(_ reason: Reason, manifest: Manifest, item: ItemID, epoch: Int, now: Timestamp) async throws(Failure)
        -> Bool
    {
        try await end(item, epoch, as: .rejected, reason: reason, manifest: manifest, now: now, step: "ledger.reject")
    }

    private func end(
        _ item: ItemID, _ epoch: Int, as state: BackendItemState, reason: Reason?, manifest: Manifest, now: Timestamp,
        step: String
    ) async throws(Failure) -> Bool {
        try await database.write(step) { database throws(Failure) in
            guard try database.holds(item, epoch), let row = try database.itemRow(item) else { return false }
            try database.install(manifest, in: row, now: now)
            let hasGrown =
                try database.row("SELECT again FROM jobs WHERE item = ?1", [SQLValue(item)])?.bool(0) ?? false
            if hasGrown {
                // Something was attached meanwhile: the item stays in processing and the job starts over.
                try database.complete(item, epoch, generation: row.generation, state: .processing, now: now)
                try database.run(
                    """
                    UPDATE jobs SET state = 'available', attempts = 0, failures = 0, lease_until = NULL, again = 0, runnable_at = ?2 WHERE item = ?1
                    """, [SQLValue(item), SQLValue(now)])
            } else {
                try database.complete(item, epoch, generation: row.generation, state: state, now: now)
                try database.move(row, to: state, generation: row.generation, reason: reason, now: now)
            }
            return true
        }
    }

    func retry(_ item: ItemID, epoch: Int, failure: Failure, runnableAt: Timestamp) async throws(Failure) -> Bool {
        try await database.write("ledger.retry") { database throws(Failure) in
            guard try database.holds(item, epoch) else { return false }
            try database.run(
                """
                UPDATE jobs SET state = 'available', failures = failures + 1, lease_until = NULL, runnable_at = ?2, failure_code = ?3, failure_message = ?4
                WHERE item = ?1
                """,
                [SQLValue(item), SQLValue(runnableAt), .text(failure.code.rawValue), .text(failure.description)])
            return true
        }
    }

    func giveBack(_ item: ItemID, epoch: Int, runnableAt: Timestamp) async throws(Failure) -> Bool {
        try await database.write("ledger.giveBack") { database throws(Failure) in
            guard try database.holds(item, epoch) else { return false }
            try database.run(
                "UPDATE jobs SET state = 'available', attempts = attempts - 1, lease_until = NULL, runnable_at = ?2 WHERE item = ?1",
                [SQLValue(item), SQLValue(runnableAt)])
            return true
        }
    }
}

extension Connection {
    /// Whether the lease of this epoch is still the job's.
    func holds(_ item: ItemID, _ epoch: Int) throws(Failure) -> Bool {
        try row(
            "SELECT 1 FROM jobs WHERE item = ?1 AND epoch = ?2 AND state = 'running'", [SQLValue(item), .int(epoch)])
            != nil
    }

    func complete(_ item: ItemID, _ epoch: Int, generation: Int, state: BackendItemState, now: Timestamp)
        throws(Failure)
    {
        try run(
            "INSERT INTO completions(item, epoch, generation, state, at) VALUES(?1, ?2, ?3, ?4, ?5)",
            [SQLValue(item), .int(epoch), .int(generation), SQLValue(state), SQLValue(now)])
        try run(
            "UPDATE jobs SET state = 'completed', lease_until = NULL, runnable_at = NULL WHERE item = ?1",
            [SQLValue(item)])
    }

    /// Replaces what the item offers.
    fileprivate func install(_ manifest: Manifest, in item: ItemRow, now: Timestamp) throws(Failure) {
        try run("DELETE FROM renditions WHERE item = ?1", [SQLValue(item.id)])
        for blob in manifest.blobs { try insertBlob(blob, verifiedAt: now) }
        for row in manifest.renditions {
            let rendition = row.rendition
            try run(
                """
                INSERT INTO renditions(item, role, name, blob, content_type, size, sha256, width, height)
                VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                """,
                [
                    SQLValue(item.id), SQLValue(rendition.role), .text(rendition.name), SQLValue(row.blob),
                    .text(rendition.contentType),
                    .int(rendition.sizeBytes), SQLValue(rendition.sha256), SQLValue(rendition.width),
                    SQLValue(rendition.height),
                ])
        }
        for old in item.renditions { try releaseBlob(old.blob) }
        try run(
            """
            UPDATE items SET kind = COALESCE(?2, kind), facts = ?3, duration_ms = ?4, aspect = ?5, preview_color = ?6 WHERE id = ?1
            """,
            [
                SQLValue(item.id), SQLValue(manifest.kind?.rawValue), SQLValue(manifest.facts),
                SQLValue(manifest.durationMS),
                SQLValue(manifest.aspect), SQLValue(manifest.previewColor),
            ])
    }
}
