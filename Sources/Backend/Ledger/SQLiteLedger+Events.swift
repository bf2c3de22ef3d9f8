import SQLite
import Vocabulary

extension SQLiteLedger {
    func eventSpan(owner: Owner) async throws(Failure) -> EventSpan {
        let row = try database.row(
            """
            SELECT (SELECT trimmed_to FROM event_trims WHERE owner = ?1), (SELECT MAX(number) FROM events WHERE owner = ?1)
            """, [SQLValue(owner)])
        return EventSpan(trimmedTo: row?.int(0) ?? 0, last: row?.int(1) ?? 0)
    }

    func events(owner: Owner, after number: Int, limit: Int) async throws(Failure) -> [EventRow] {
        let rows = try database.rows(
            """
            SELECT number, item, shoot, generation, state, reason_code, reason_message FROM events
            WHERE owner = ?1 AND number > ?2 ORDER BY number
            """, [SQLValue(owner), .int(number)], limit: limit)
        var events: [EventRow] = []
        for row in rows {
            events.append(
                EventRow(
                    number: try row.required(0, SQLRow.int), item: try row.required(1, as: ItemID.self),
                    shoot: try row.required(2, SQLRow.text), generation: try row.required(3, SQLRow.int),
                    state: try row.required(4, as: BackendItemState.self), reason: row.reason(5)))
        }
        return events
    }

    func trimEvents(_ bounds: EventLogBounds, now: Timestamp) async throws(Failure) {
        let owners = try database.rows(
            "SELECT owner, MIN(number), MAX(number) FROM events GROUP BY owner HAVING COUNT(*) > ?1",
            [.int(max(1, bounds.keptMin))])
        for row in owners {
            let owner = try row.required(0, as: Owner.self)
            let first = try row.required(1, SQLRow.int)
            let last = try row.required(2, SQLRow.int)
            let old = try database.row(
                "SELECT MAX(number) FROM events WHERE owner = ?1 AND number <= ?2 AND at < ?3",
                [
                    SQLValue(owner), .int(last - max(1, bounds.keptMin)),
                    SQLValue(now.adding(seconds: -bounds.age)),
                ])?.int(0)
            let end = min(max(old ?? 0, last - bounds.keptMax), first - 1 + bounds.sweptMax)
            guard end >= first else { continue }
            try await database.write("ledger.trimEvents") { database throws(Failure) in
                try database.run("DELETE FROM events WHERE owner = ?1 AND number <= ?2", [SQLValue(owner), .int(end)])
                try database.run(
                    """
                    INSERT INTO event_trims(owner, trimmed_to) VALUES(?1, ?2) ON CONFLICT(owner) DO UPDATE SET trimmed_to = ?2
                    """, [SQLValue(owner), .int(end)])
            }
        }
    }
}
