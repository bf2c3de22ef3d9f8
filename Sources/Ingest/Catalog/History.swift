import Foundation
import SQLite
import Synchronization
public import Vocabulary

/// Something that happened to an item, as `rushes show` tells it.
public struct HistoryEntry: Sendable, Equatable, Codable {
    public enum What: String, Sendable, Codable {
        /// A person named it; or named it once more, or gave it another sidecar.
        case picked, startedAgain = "started_again"
        /// The bytes are in staging, with their hashes.
        case staged
        /// The move is finished: the source is gone.
        case sourceRemoved = "source_removed"
        /// It could not be removed; the next run tries again.
        case sourceStays = "source_stays"
        case probed
        /// A file was made here from the original.
        case made
        /// What is to be sent, and where to.
        case planned
        /// The backend holds a session for an upload; the generation is the session's.
        case session
        /// The store holds a part.
        case part
        case completing, completed
        /// The backend has tied the uploads to the item.
        case attached
        /// The backend's event came, and the item is looked at.
        case event
        /// The backend has read a file back, and came to this hash.
        case confirmed
        /// What the backend holds is not what was sent, or is gone: sent again, from zero.
        case vanished
        /// Staged bytes were gone or damaged, and are taken once more.
        case restaged
        /// Something failed and is tried again; of `times` in a row the last.
        case retry
        /// One attempt of the item is used up.
        case attempt
        case waiting
        case goesOn = "goes_on"
        /// A person paused, resumed, cancelled, retried or discarded it.
        case steered
        /// A copy left staging.
        case released
        /// The item came to this state.
        case state
    }

    /// Milliseconds since 1970. Not part of the entry's text: it has a column of its own, and is printed as ISO 8601.
    public var at: Int64 = 0
    public var what: What
    /// `role/name`.
    public var file: String?
    public var upload: UploadID?
    public var part: Int?
    public var generation: Int?
    public var bytes: Int?
    public var sha256: SHA256Digest?
    public var xxh128: String?
    public var state: ItemState?
    public var reason: Reason?
    /// Whatever else there is to say.
    public var words: String?
    public var times: Int?

    enum CodingKeys: String, CodingKey {
        case what, file, upload, part, generation, bytes, sha256, xxh128, state, reason, words, times
    }

    /// ISO 8601, UTC, with milliseconds.
    public var time: String {
        Date(timeIntervalSince1970: Double(at) / 1000).formatted(
            Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    init(
        _ what: What, file: String? = nil, upload: UploadID? = nil, part: Int? = nil, generation: Int? = nil,
        bytes: Int? = nil, sha256: SHA256Digest? = nil, state: ItemState? = nil, reason: Reason? = nil,
        words: String? = nil
    ) {
        self.what = what
        self.file = file
        self.upload = upload
        self.part = part
        self.generation = generation
        self.bytes = bytes
        self.sha256 = sha256
        self.state = state
        self.reason = reason
        self.words = words
    }

    /// The same again, but for its time.
    func repeats(_ other: HistoryEntry) -> Bool {
        var other = other
        (other.at, other.times) = (at, times)
        return other == self
    }
}

/// What is known of items and not written down yet: it goes with the item's next step, since nothing of it is worth a step of its own. What
/// comes after an item's last step, or before a kill, is lost.
final class HistoryNotes: Sendable {
    /// Of one item; later ones are not taken.
    static let entriesMax = 64
    static let itemsMax = 4096
    private let pending = Mutex<[ItemID: [HistoryEntry]]>([:])
    let now: @Sendable () -> Int64

    init(now: @escaping @Sendable () -> Int64) { self.now = now }

    func note(_ item: ItemID, _ entry: HistoryEntry) {
        var entry = entry
        entry.at = now()
        pending.withLock { pending in
            guard pending[item] != nil || pending.count < Self.itemsMax else { return }
            var entries = pending[item] ?? []
            if let last = entries.last, last.repeats(entry) {
                entry.times = (last.times ?? 1) + 1
                entries[entries.count - 1] = entry
            } else if entries.count < Self.entriesMax {
                entries.append(entry)
            }
            pending[item] = entries
        }
    }

    fileprivate func take(_ item: ItemID) -> [HistoryEntry] { pending.withLock { $0.removeValue(forKey: item) } ?? [] }
}

/// How much of an item's story is kept: its beginning, and the newest.
enum HistoryBounds {
    static let firstKept = 100
    static let lastKept = 900
}

extension Catalog {
    /// Written down with the step that the surrounding transaction is.
    func remember(_ item: ItemID, _ entries: HistoryEntry..., in database: Connection) throws(Failure) {
        for entry in notes.take(item) { try database.append(entry, to: item, at: entry.at) }
        let now = notes.now()
        for entry in entries { try database.append(entry, to: item, at: now) }
    }

    /// For many items at once.
    /// - Parameter condition: on `item`, with its parameters.
    func rememberAll(
        where condition: String, _ parameters: [SQLValue], _ entry: HistoryEntry, in database: Connection
    ) throws(Failure) {
        try database.run(
            """
            INSERT INTO history(item, number, at, entry)
            SELECT id, (SELECT coalesce(max(number), 0) + 1 FROM history WHERE history.item = item.id),
                ?\(parameters.count + 1), ?\(parameters.count + 2)
            FROM item WHERE \(condition)
            """, parameters + [SQLValue(notes.now()), .text(try JSON.text(entry))])
    }

    /// The item's story in its order: what was written down, and when each part was known to be stored. What was left out in between shows in
    /// `leftOut`.
    func history(of item: ItemID) throws(Failure) -> (entries: [HistoryEntry], leftOut: Int) {
        let rows = try database.rows(
            "SELECT number, at, entry FROM history WHERE item = ?1 ORDER BY number", [SQLValue(item)])
        let written = try rows.map { row throws(Failure) in
            var entry = try JSON.decode(
                HistoryEntry.self, from: Data((try row.required(2, SQLRow.text)).utf8))
            entry.at = Int64(try row.required(1, SQLRow.int))
            return entry
        }
        let parts = try database.rows(
            """
            SELECT part.at, part.number, part.bytes, upload.id, upload.role, upload.name, upload.generation
            FROM part JOIN upload ON upload.id = part.upload WHERE upload.item = ?1 AND part.at IS NOT NULL
            ORDER BY part.at, part.number
            """, [SQLValue(item)])
        let stored = try parts.map { row throws(Failure) in
            let role = try row.required(4, as: FileRole.self)
            var entry = HistoryEntry(
                .part, file: Self.label(role, try row.required(5, SQLRow.text)),
                upload: try row.required(3, as: UploadID.self), part: row.int(1), generation: row.int(6),
                bytes: row.int(2))
            entry.at = Int64(try row.required(0, SQLRow.int))
            return entry
        }
        // What was only noted at first was written down after what came later.
        let entries = written.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
        return (Self.merged(entries.map(\.element), with: stored), (rows.last?.int(0) ?? 0) - rows.count)
    }

    /// Both in the order of their times.
    private static func merged(_ entries: [HistoryEntry], with parts: [HistoryEntry]) -> [HistoryEntry] {
        var merged: [HistoryEntry] = []
        var parts = parts[...]
        for entry in entries {
            // Within one millisecond the last part comes before what it completes, and a session before its parts.
            while let part = parts.first, part.at < entry.at || part.at == entry.at && entry.what == .completing {
                merged.append(part)
                parts.removeFirst()
            }
            merged.append(entry)
        }
        return merged + parts
    }

    static func label(_ role: FileRole, _ name: String) -> String { role.rawValue + "/" + name }
}

extension FileRow {
    var label: String { Catalog.label(role, name) }
}

extension Connection {
    fileprivate func append(_ entry: HistoryEntry, to item: ItemID, at time: Int64) throws(Failure) {
        let row = try row(
            """
            INSERT INTO history(item, number, at, entry)
            SELECT ?1, coalesce(max(number), 0) + 1, ?2, ?3 FROM history WHERE item = ?1 RETURNING number
            """, [SQLValue(item), SQLValue(time), .text(try JSON.text(entry))])
        guard let number = row?.int(0), number > HistoryBounds.firstKept + HistoryBounds.lastKept else { return }
        try run(
            "DELETE FROM history WHERE item = ?1 AND number > \(HistoryBounds.firstKept) AND number <= ?2",
            [SQLValue(item), SQLValue(number - HistoryBounds.lastKept)])
    }

    /// Whose an upload is, and which of its files.
    func subject(of upload: UploadID) throws(Failure) -> (item: ItemID, file: String)? {
        guard let row = try row("SELECT item, role, name FROM upload WHERE id = ?1", [SQLValue(upload)]) else {
            return nil
        }
        return (
            try row.required(0, as: ItemID.self),
            Catalog.label(try row.required(1, as: FileRole.self), try row.required(2, SQLRow.text))
        )
    }
}
