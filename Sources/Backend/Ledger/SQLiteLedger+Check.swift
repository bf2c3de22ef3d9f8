import SQLite
import Vocabulary

extension SQLiteLedger {
    func selfCheck(_ policy: RetryPolicy) async throws(Failure) -> [Finding] {
        try database.read { database throws(Failure) in
            var findings: [Finding] = []
            for check in RowCheck.all {
                let limits: [SQLValue] = check.isLimited ? [.int(policy.attemptMax), .int(policy.failureMax)] : []
                for row in try database.rows(check.sql, limits, limit: RowCheck.findingsMax) {
                    findings.append(
                        Finding(
                            check.code, invariant: check.invariant, check.message,
                            subject: try row.required(0, SQLRow.text)))
                }
            }
            return findings
        }
    }

    /// What the ledger says of one item, for a box that relies on it.
    func holds(_ item: ItemID, _ sha256: SHA256Digest) throws(Failure) -> Bool {
        try database.row(
            """
            SELECT 1 FROM items WHERE id = ?1 AND (state = 'deleted' OR EXISTS(
                SELECT 1 FROM uploads JOIN blobs ON blobs.key = uploads.blob
                WHERE uploads.item = items.id AND blobs.sha256 = ?2))
            """, [SQLValue(item), SQLValue(sha256)]) != nil
    }

    func blobs(after: BlobKey?, limit: Int) async throws(Failure) -> [BlobRow] {
        let rows = try database.rows(
            "SELECT key, owner, size, sha256 FROM blobs WHERE key > ?1 ORDER BY key", [.text(after?.rawValue ?? "")],
            limit: limit)
        var blobs: [BlobRow] = []
        for row in rows {
            blobs.append(
                BlobRow(
                    key: try row.required(0, as: BlobKey.self), owner: try row.required(1, as: Owner.self),
                    size: try row.required(2, SQLRow.int), sha256: row.digest(3)))
        }
        return blobs
    }

    func knows(_ upload: UploadID) async throws(Failure) -> Bool {
        try database.row("SELECT 1 FROM uploads WHERE id = ?1", [SQLValue(upload)]) != nil
    }

    func knows(_ item: ItemID) async throws(Failure) -> Bool {
        try database.row("SELECT 1 FROM items WHERE id = ?1", [SQLValue(item)]) != nil
    }
}

/// A query that answers with what breaks an invariant, named in the first column.
private struct RowCheck: Sendable {
    var code: String
    var invariant: Int
    var message: String
    /// With ?1 for the claims of one job at most and ?2 for its failures, where it is limited.
    var sql: String
    var isLimited = false

    static let findingsMax = 1000

    static let all = [
        RowCheck(
            code: "upload-without-blob", invariant: 5, message: "An upload names no stored object.",
            sql: """
                SELECT id FROM uploads WHERE state = 'complete' AND blob IS NULL
                    OR blob IS NOT NULL AND blob NOT IN (SELECT key FROM blobs)
                """
        ),
        RowCheck(
            code: "rendition-without-blob", invariant: 5, message: "A rendition names an object that has no row.",
            sql: "SELECT item || '/' || name FROM renditions WHERE blob NOT IN (SELECT key FROM blobs)"),
        RowCheck(
            code: "rendition-differs", invariant: 3,
            message: "A rendition does not have the recorded size or hash of its object.",
            sql: """
                SELECT r.item || '/' || r.name FROM renditions r JOIN blobs b ON b.key = r.blob
                WHERE r.size <> b.size OR r.sha256 IS NOT b.sha256
                """),
        RowCheck(
            code: "ready-without-rendition", invariant: 3,
            message: "An item is ready, and was found to be something to look at, but there is nothing to show.",
            sql: """
                SELECT id FROM items WHERE state = 'ready' AND facts IS NOT NULL AND kind IN ('video', 'photo', 'animation')
                    AND id NOT IN (SELECT item FROM renditions)
                """),
        RowCheck(
            code: "received-unattached", invariant: 1,
            message: "A foreign client's file has come whole, and no item has it.",
            sql: """
                SELECT u.id FROM uploads u JOIN tus t ON t.upload = u.id WHERE u.state = 'complete' AND u.attached = 0
                """),
        RowCheck(
            code: "item-missing", invariant: 2,
            message: "An attached upload belongs to an item that has no row of this owner.",
            sql:
                "SELECT u.id FROM uploads u WHERE u.attached = 1 AND u.owner IS NOT (SELECT owner FROM items WHERE id = u.item)"
        ),
        RowCheck(
            code: "too-many-attempts", invariant: 6, message: "A job was attempted more often than the limit allows.",
            sql: "SELECT item FROM jobs WHERE attempts > ?1 OR failures > ?2", isLimited: true),
        RowCheck(
            code: "row-orphaned", invariant: 5, message: "A row belongs to something that has none.",
            sql: """
                SELECT 'job of ' || item FROM jobs WHERE item NOT IN (SELECT id FROM items)
                UNION ALL SELECT 'completion of ' || item FROM completions WHERE item NOT IN (SELECT id FROM items)
                UNION ALL SELECT 'event of ' || item FROM events WHERE item NOT IN (SELECT id FROM items)
                UNION ALL SELECT 'rendition of ' || item FROM renditions WHERE item NOT IN (SELECT id FROM items)
                UNION ALL SELECT 'tus upload ' || upload FROM tus WHERE upload NOT IN (SELECT id FROM uploads)
                UNION ALL SELECT 'signed part of ' || upload FROM signed_parts
                    WHERE upload NOT IN (SELECT id FROM uploads)
                """),
        RowCheck(
            code: "epoch-ahead", invariant: 7, message: "A completion was recorded under a lease that was never given.",
            sql: "SELECT c.item FROM completions c LEFT JOIN jobs j ON j.item = c.item WHERE j.epoch < c.epoch"),
        RowCheck(
            code: "job-missing", invariant: 7, message: "An item in processing has no job that could end it.",
            sql: """
                SELECT id FROM items WHERE state = 'processing'
                    AND id NOT IN (SELECT item FROM jobs WHERE state IN ('available', 'running'))
                """),
        RowCheck(
            code: "event-gap", invariant: 8, message: "The events of an owner are not numbered without gaps.",
            sql: """
                SELECT e.owner FROM events e LEFT JOIN event_trims t ON t.owner = e.owner GROUP BY e.owner
                HAVING MIN(e.number) <> COALESCE(t.trimmed_to, 0) + 1
                    OR MAX(e.number) <> COALESCE(t.trimmed_to, 0) + COUNT(*)
                UNION SELECT owner FROM event_trims WHERE owner NOT IN (SELECT owner FROM events)
                """),
        RowCheck(
            code: "event-missing", invariant: 8, message: "The last event of an item does not tell its state.",
            sql: """
                SELECT i.id FROM items i WHERE i.state <> 'awaiting' AND i.state IS NOT COALESCE(
                    (SELECT e.state FROM events e WHERE e.owner = i.owner AND e.item = i.id ORDER BY e.number DESC LIMIT 1),
                    -- It may be among those that were trimmed.
                    (SELECT i.state FROM event_trims t WHERE t.owner = i.owner))
                """),
    ]
}
