import SQLite
import Vocabulary

extension SQLiteLedger {
    /// Rows that one sweep looks at, of each kind; the rest waits for the next.
    private static let sweptMax = 1000

    func sweep(now: Timestamp, isRestart: Bool, policy: RetryPolicy) async throws(Failure) {
        try await database.write("ledger.sweep") { database throws(Failure) in
            // No wait is longer than the policy's longest; one that seems so was written before the clock was set back.
            try database.run(
                "UPDATE jobs SET runnable_at = ?1 WHERE state = 'available' AND runnable_at > ?2",
                [SQLValue(now), SQLValue(now.adding(seconds: max(policy.delayMax, policy.machineDelay)))])
            try database.endLostLeases(now: now, isRestart: isRestart, policy: policy, limit: Self.sweptMax)
            // A damaged upload that is attached waits for its bytes without a time limit: the item says so.
            for row in try database.rows(
                """
                SELECT \(UploadRow.columns) FROM \(UploadRow.source)
                WHERE u.attached = 0 AND u.state IN ('open', 'complete') AND u.expires_at < ?1
                """, [SQLValue(now)], limit: Self.sweptMax)
            {
                try database.end(try UploadRow(row), as: .expired)
            }
        }
    }

    func followClock(by seconds: Double, leaseUntil: Timestamp) async throws(Failure) {
        try await database.write("ledger.followClock") { database throws(Failure) in
            // Whoever holds a lease renews it by the same clock: none is lost because of the jump.
            try database.run("UPDATE jobs SET lease_until = ?1 WHERE state = 'running'", [SQLValue(leaseUntil)])
            if seconds < 0 {
                // What was about to run would wait for as long again. Sessions only live longer.
                try database.run(
                    "UPDATE jobs SET runnable_at = runnable_at + ?1 WHERE state = 'available'",
                    [.int(Int((seconds * 1000).rounded()))])
                return
            }
            // What is to run only runs sooner.
            try database.run(
                "UPDATE uploads SET expires_at = expires_at + ?1 WHERE attached = 0 AND state IN ('open', 'complete')",
                [.int(Int((seconds * 1000).rounded()))])
        }
    }

    func doomedBlobs(after: BlobKey?, limit: Int) async throws(Failure) -> [BlobKey] {
        let rows = try database.rows(
            "SELECT key FROM doomed WHERE key > ?1 ORDER BY key", [.text(after?.rawValue ?? "")], limit: limit)
        return rows.compactMap { $0.text(0).flatMap(BlobKey.init(rawValue:)) }
    }

    func forgetDoomed(_ keys: [BlobKey]) async throws(Failure) {
        try await database.write("ledger.forgetDoomed") { database throws(Failure) in
            for key in keys { try database.run("DELETE FROM doomed WHERE key = ?1", [SQLValue(key)]) }
        }
    }

    func doomedSessions(after: UploadID?, limit: Int) async throws(Failure) -> [StoreSession] {
        let rows = try database.rows(
            """
            SELECT upload, generation, store_name FROM doomed_sessions WHERE upload > ?1
            ORDER BY upload, generation, store_name
            """, [.text(after?.rawValue ?? "")], limit: limit)
        var sessions: [StoreSession] = []
        for row in rows {
            let name = try row.required(2, SQLRow.text)
            sessions.append(
                StoreSession(
                    upload: try row.required(0, as: UploadID.self), generation: try row.required(1, SQLRow.int),
                    storeName: name.isEmpty ? nil : name))
        }
        return sessions
    }

    func forgetDoomed(_ session: StoreSession) async throws(Failure) {
        _ = try await database.write("ledger.forgetDoomed") { database throws(Failure) in
            try database.run(
                "DELETE FROM doomed_sessions WHERE upload = ?1 AND generation = ?2 AND store_name = ?3",
                [SQLValue(session.upload), .int(session.generation), .text(session.storeName ?? "")])
        }
    }

    func suspects(limit: Int) async throws(Failure) -> [SuspectRow] {
        var suspects: [SuspectRow] = []
        for row in try database.rows(
            "SELECT key, size, suspect_of FROM blobs WHERE suspect_of IS NOT NULL ORDER BY key", limit: limit)
        {
            suspects.append(
                SuspectRow(
                    key: try row.required(0, as: BlobKey.self), size: try row.required(1, SQLRow.int),
                    upload: try row.required(2, as: UploadID.self)))
        }
        return suspects
    }

    func restore(_ suspect: SuspectRow, now: Timestamp) async throws(Failure) -> Bool {
        try await database.write("ledger.restore") { database throws(Failure) in
            // Where its bytes are coming in anew already, they go on.
            guard let row = try database.uploadRow(suspect.upload), row.state == .expired, row.isAttached else {
                return false
            }
            try database.run(
                "UPDATE uploads SET state = 'complete', blob = ?2 WHERE id = ?1",
                [SQLValue(row.id), SQLValue(suspect.key)])
            try database.refresh(row.item, hasGrown: true, now: now)
            return true
        }
    }

    func generation(of upload: UploadID) async throws(Failure) -> (number: Int, isOpen: Bool)? {
        guard
            let row = try database.row("SELECT generation, state FROM uploads WHERE id = ?1", [SQLValue(upload)])
        else { return nil }
        return (try row.required(0, SQLRow.int), try row.required(1, as: SessionState.self) == .open)
    }

    func epoch(of item: ItemID) async throws(Failure) -> (number: Int, isRunning: Bool)? {
        // Without a job: none of this generation's yet, or any of them where the item is deleted.
        let row = try database.row(
            """
            SELECT COALESCE(j.epoch, (i.generation - (i.state <> 'deleted')) * \(Connection.epochsPerGeneration)), j.state
            FROM items i LEFT JOIN jobs j ON j.item = i.id WHERE i.id = ?1
            """, [SQLValue(item)])
        guard let row else { return nil }
        return (try row.required(0, SQLRow.int), row.text(1) == JobState.running.rawValue)
    }

    func blob(_ key: BlobKey) async throws(Failure) -> BlobRow? {
        guard let row = try database.row("SELECT owner, size, sha256 FROM blobs WHERE key = ?1", [SQLValue(key)])
        else { return nil }
        return BlobRow(
            key: key, owner: try row.required(0, as: Owner.self), size: try row.required(1, SQLRow.int),
            sha256: row.digest(2))
    }

    func storePrefix(orMake proposal: String?) async throws(Failure) -> String? {
        if let row = try database.row("SELECT prefix FROM store_prefix") { return row.text(0) }
        guard let proposal else { return nil }
        _ = try await database.write("ledger.storePrefix") { database throws(Failure) in
            try database.run("INSERT INTO store_prefix(prefix) VALUES(?1)", [.text(proposal)])
        }
        return proposal
    }

    func offering(_ key: BlobKey) async throws(Failure) -> Rendition? {
        let row = try database.row(
            "SELECT \(RenditionRow.columns) FROM renditions WHERE blob = ?1", [SQLValue(key)])
        guard let row else { return nil }
        return try RenditionRow(row).rendition
    }

    func counts() async throws(Failure) -> LedgerCounts {
        try database.read { database throws(Failure) in
            var counts = LedgerCounts(items: [:], jobs: [:], openSessions: 0)
            for row in try database.rows("SELECT state, COUNT(*) FROM items GROUP BY state") {
                counts.items[try row.required(0, as: BackendItemState.self)] = row.int(1)
            }
            for row in try database.rows("SELECT state, COUNT(*) FROM jobs GROUP BY state") {
                counts.jobs[try row.required(0, as: JobState.self)] = row.int(1)
            }
            counts.openSessions = try database.row("SELECT COUNT(*) FROM uploads WHERE state = 'open'")?.int(0) ?? 0
            return counts
        }
    }
}

extension Connection {
    /// The worker is gone without a word: its attempt was counted at the claim.
    fileprivate func endLostLeases(now: Timestamp, isRestart: Bool, policy: RetryPolicy, limit: Int) throws(Failure) {
        let lost = try rows(
            "SELECT item, epoch, attempts FROM jobs WHERE state = 'running' AND (lease_until < ?1 OR ?2)",
            [SQLValue(now), SQLValue(isRestart)], limit: limit)
        for row in lost {
            let id = try row.required(0, as: ItemID.self)
            let epoch = try row.required(1, SQLRow.int)
            switch policy.stepAfterLostLease(attempt: try row.required(2, SQLRow.int), isRestart: isRestart) {
            case .retry(let seconds), .wait(let seconds):
                try run(
                    "UPDATE jobs SET state = 'available', lease_until = NULL, runnable_at = ?2 WHERE item = ?1",
                    [SQLValue(id), SQLValue(now.adding(seconds: seconds))])
            case .reject(let reason):
                guard let item = try itemRow(id) else { continue }
                try complete(id, epoch, generation: item.generation, state: .rejected, now: now)
                try move(item, to: .rejected, generation: item.generation, reason: reason, now: now)
            }
        }
    }
}
