import SQLite
import Vocabulary

/// What people want of items, and how a cancellation comes to its end.
extension Catalog {
    struct Steered: Sendable {
        var item: ItemRow
        var decision: SteeringPolicy.Decision
    }

    /// Decides and writes down in one transaction: what a runner does meanwhile comes before or after.
    /// - Parameter ids: nil for all items for which the verb does something; the others are not told of then.
    func steer(_ verb: SteeringVerb, _ ids: [ItemID]?) async throws(Failure) -> [Steered] {
        try await database.write("catalog.steer") { database throws(Failure) in
            var steered: [Steered] = []
            let condition = ids == nil ? "1" : "id = ?1"
            for parameters in ids.map({ $0.map { [SQLValue($0)] } }) ?? [[]] {
                for row in try database.rows(
                    "SELECT \(ItemRow.columns) FROM item WHERE \(condition) ORDER BY rowid", parameters)
                {
                    let item = try ItemRow(row)
                    let decision = SteeringPolicy.decide(
                        verb, state: item.state, intent: item.intent, hasStaged: try database.hasStaged(item.id))
                    if decision == .go {
                        try database.apply(verb, to: item)
                        try remember(item.id, HistoryEntry(.steered, words: verb.rawValue), in: database)
                    }
                    if decision == .go || ids != nil { steered.append(Steered(item: item, decision: decision)) }
                }
            }
            return steered
        }
    }

    // MARK: Cancelling

    /// Why a cancellation is not through yet; for people.
    func cancelling(_ item: ItemRow, waiting: String) async throws(Failure) {
        try await database.write("catalog.cancelling") { database throws(Failure) -> Void in
            let changed = try database.run(
                "UPDATE item SET waiting = ?2 WHERE id = ?1 AND intent = 'cancelled' AND waiting IS NOT ?2",
                [SQLValue(item.id), SQLValue(waiting)])
            if changed > 0 { try remember(item.id, HistoryEntry(.waiting, words: waiting), in: database) }
        }
    }

    /// It must not be cancelled: it goes on as if nobody had asked.
    func cancelRefused(_ item: ItemRow, _ why: String) async throws(Failure) {
        try await database.write("catalog.cancelRefused") { database throws(Failure) -> Void in
            let changed = try database.run(
                "UPDATE item SET intent = 'run', waiting = ?2 WHERE id = ?1 AND intent = 'cancelled' AND state <> 'cancelled'",
                [SQLValue(item.id), SQLValue(why)])
            guard changed > 0 else { return }
            try remember(item.id, HistoryEntry(.goesOn, words: why), in: database)
            // What was taken while it was to be cancelled did not move it on.
            if item.state == .picked { try database.advanceIfNoneIsWanted(item) }
        }
    }

    /// The source has the same bytes: the copy in staging may go.
    func leftToItsSource(_ file: FileRow) async throws(Failure) {
        try await database.write("catalog.leftToItsSource") { database throws(Failure) -> Void in
            try database.run(
                """
                UPDATE file SET state = 'wanted', bytes = NULL, sha256 = NULL, ends = NULL, xxh128 = NULL
                WHERE item = ?1 AND role = ?2 AND name = ?3
                """, [SQLValue(file.item), SQLValue(file.role), SQLValue(file.name)])
            try remember(
                file.item, HistoryEntry(.released, file: file.label, words: "its source has it"), in: database)
        }
    }

    /// Nothing of the item is left at the backend, and nothing that was made of it here.
    func cancelled(_ item: ItemRow, _ reason: Reason) async throws(Failure) {
        try await database.write("catalog.cancelled") { database throws(Failure) -> Void in
            let id = [SQLValue(item.id)]
            let hadUploads = try database.row("SELECT 1 FROM upload WHERE item = ?1", id) != nil
            try database.run(
                """
                UPDATE item SET state = 'cancelled', waiting = NULL, reason_code = ?2, reason_message = ?3, is_retryable = 1,
                    document = NULL, was_deleted = max(was_deleted, ?4)
                WHERE id = ?1 AND intent = 'cancelled'
                """, id + [SQLValue(reason.code.rawValue), SQLValue(reason.message), SQLValue(hadUploads)])
            try database.run("DELETE FROM part WHERE upload IN (SELECT id FROM upload WHERE item = ?1)", id)
            try database.run("DELETE FROM upload WHERE item = ?1", id)
            try database.run("DELETE FROM file WHERE item = ?1 AND role NOT IN ('original', 'sidecar')", id)
            // Their source has them; that was looked at before the backend let go of them.
            try database.run(
                """
                UPDATE file SET state = 'wanted', bytes = NULL, sha256 = NULL, ends = NULL, xxh128 = NULL
                WHERE item = ?1 AND state = 'released'
                """, id)
            try remember(item.id, HistoryEntry(.state, state: .cancelled, reason: reason), in: database)
        }
    }

    /// The backend knows the item again.
    func broughtBack(_ item: ItemRow) async throws(Failure) {
        try await database.write("catalog.broughtBack") { database throws(Failure) -> Void in
            try database.run("UPDATE item SET was_deleted = 0 WHERE id = ?1", [SQLValue(item.id)])
        }
    }
}

extension Connection {
    fileprivate func hasStaged(_ item: ItemID) throws(Failure) -> Bool {
        try row(
            "SELECT 1 FROM file WHERE item = ?1 AND state = 'staged' AND role IN ('original', 'sidecar')",
            [SQLValue(item)]) != nil
    }

    fileprivate func apply(_ verb: SteeringVerb, to item: ItemRow) throws(Failure) {
        let id = [SQLValue(item.id)]
        switch verb {
        case .pause: try run("UPDATE item SET intent = 'paused', waiting = NULL WHERE id = ?1", id)
        case .resume: try run("UPDATE item SET intent = 'run', waiting = NULL WHERE id = ?1", id)
        case .cancel:
            try run(
                "UPDATE item SET intent = 'cancelled', waiting = 'Cancelling' WHERE id = ?1 AND intent <> 'cancelled'",
                id)
        case .retry:
            try startAgain(item.id)
            try run("UPDATE item SET is_asked = 1 WHERE id = ?1", id)
        case .discard:
            try run(
                "UPDATE file SET state = 'discarded' WHERE item = ?1 AND state = 'staged' AND role IN ('original', 'sidecar')",
                id)
        }
    }
}
