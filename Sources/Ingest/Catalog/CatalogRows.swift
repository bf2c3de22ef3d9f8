import Files
import SQLite
import Vocabulary

/// An item as the catalog keeps it.
struct ItemRow: Sendable, Equatable {
    var id: ItemID
    var shoot: String
    /// The original's name as a person reads it.
    var name: String
    var source: RawPath
    /// Bytes, and nanoseconds since 1970, when it was picked.
    var sourceSize: Int
    var sourceModified: Int64
    var isMoved: Bool
    var prepare: PrepareMode
    var title: String?
    var caption: String?
    var place: String?
    var state: ItemState
    var intent: Intent
    var waiting: String?
    var reason: Reason?
    var isRetryable: Bool
    /// Raised by a retry, a repeated pick and a vanished session; states go back only with it.
    var generation: Int
    var attempts: Int
    var kind: MediaFacts.Kind?
    var probe: StoredMessage<ProbeReport>?
    /// What the backend said last.
    var document: StoredMessage<ItemDocument>?
    /// It was cancelled once: the backend may have a tombstone of it.
    var wasDeleted: Bool
    /// The backend that its bytes go to; nil until that is decided.
    var server: String?

    static let columns = """
        id, shoot, name, source, source_size, source_modified, is_moved, prepare, title, caption, place, state, intent, \
        waiting, reason_code, reason_message, is_retryable, generation, attempts, kind, probe, document, was_deleted, \
        server
        """

    init(_ row: SQLRow) throws(Failure) {
        id = try row.required(0, as: ItemID.self)
        shoot = try row.required(1, SQLRow.text)
        name = try row.required(2, SQLRow.text)
        source = RawPath(try row.required(3, SQLRow.blob))
        sourceSize = try row.required(4, SQLRow.int)
        sourceModified = Int64(try row.required(5, SQLRow.int))
        isMoved = row.bool(6)
        prepare = try row.required(7, as: PrepareMode.self)
        title = row.text(8)
        caption = row.text(9)
        place = row.text(10)
        state = try row.required(11, as: ItemState.self)
        intent = try row.required(12, as: Intent.self)
        waiting = row.text(13)
        reason = row.text(14).map { Reason(FailureCode(rawValue: $0), row.text(15) ?? "") }
        isRetryable = row.bool(16)
        generation = try row.required(17, SQLRow.int)
        attempts = try row.required(18, SQLRow.int)
        kind = row.text(19).flatMap { MediaFacts.Kind(rawValue: $0) }
        probe = row.text(20).map(StoredMessage.init)
        document = row.text(21).map(StoredMessage.init)
        wasDeleted = row.bool(22)
        server = row.text(23)
    }
}

/// A message as the catalog keeps it. Most readers of a row do not need it, and reading it costs more than all the rest of the row.
struct StoredMessage<Message: Decodable>: Sendable, Equatable {
    let text: String
    func read() throws(Failure) -> Message { try JSON.decode(Message.self, from: .init(text.utf8)) }
}

/// Where a file's bytes are.
enum FileState: String, Sendable {
    /// Only at the source.
    case wanted
    case staged
    /// The backend has them, confirmed; or they were not worth keeping and the source still has them.
    case released
    /// A person has thrown the bytes away; or it is a sidecar that could not be read.
    case discarded
}

/// A file of an item.
struct FileRow: Sendable, Equatable {
    var item: ItemID
    var role: FileRole
    /// Unique among the item's files of one role.
    var name: String
    /// Nil for derived files.
    var source: RawPath?
    var sourceSize: Int
    var sourceModified: Int64
    /// The move is finished: the source is gone.
    var isSourceRemoved: Bool
    /// Below the staging folder.
    var path: String
    var contentType: String
    var state: FileState
    /// Both nil until staged.
    var bytes: Int?
    var sha256: SHA256Digest?
    /// The hash of the first and the last 64 KiB.
    var ends: SHA256Digest?
    /// Nil until staged, and of what a version staged that took none.
    var xxh128: XXH128Digest?
    /// The folder that was picked.
    var card: RawPath?
    /// Where the file lay below it.
    var below: RawPath?

    static let columns = """
        item, role, name, source, source_size, source_modified, source_removed, path, content_type, state, bytes, sha256, \
        ends, xxh128, card, below
        """

    init(_ row: SQLRow) throws(Failure) {
        item = try row.required(0, as: ItemID.self)
        role = try row.required(1, as: FileRole.self)
        name = try row.required(2, SQLRow.text)
        source = row.blob(3).map { RawPath($0) }
        sourceSize = row.int(4) ?? 0
        sourceModified = Int64(row.int(5) ?? 0)
        isSourceRemoved = row.bool(6)
        path = try row.required(7, SQLRow.text)
        contentType = try row.required(8, SQLRow.text)
        state = try row.required(9, as: FileState.self)
        bytes = row.int(10)
        sha256 = row.text(11).flatMap { SHA256Digest(rawValue: $0) }
        ends = row.text(12).flatMap { SHA256Digest(rawValue: $0) }
        xxh128 = row.text(13).flatMap { XXH128Digest(rawValue: $0) }
        card = row.blob(14).map { RawPath($0) }
        below = row.blob(15).map { RawPath($0) }
    }

    init(
        item: ItemID, role: FileRole, name: String, source: RawPath? = nil, sourceSize: Int = 0,
        sourceModified: Int64 = 0,
        path: String, contentType: String, state: FileState, bytes: Int? = nil, sha256: SHA256Digest? = nil,
        card: RawPath? = nil, below: RawPath? = nil
    ) {
        self.item = item
        self.role = role
        self.name = name
        self.source = source
        self.sourceSize = sourceSize
        self.sourceModified = sourceModified
        isSourceRemoved = false
        self.path = path
        self.contentType = contentType
        self.state = state
        self.bytes = bytes
        self.sha256 = sha256
        self.card = card
        self.below = below
    }
}

/// A file on its way to the backend.
struct UploadRow: Sendable, Equatable {
    var id: UploadID
    var item: ItemID
    var role: FileRole
    var name: String
    var state: UploadState
    /// Of the session at the backend; 0 until one is open, `unheardOf` where the backend knows none.
    var generation: Int
    static let unheardOf = -1
    var partSize: Int
    /// What the backend read itself; the only proof that it has the bytes.
    var confirmedSHA256: SHA256Digest?

    static let columns = "id, item, role, name, state, generation, part_size, confirmed_sha256"

    init(_ row: SQLRow) throws(Failure) {
        id = try row.required(0, as: UploadID.self)
        item = try row.required(1, as: ItemID.self)
        role = try row.required(2, as: FileRole.self)
        name = try row.required(3, SQLRow.text)
        state = try row.required(4, as: UploadState.self)
        generation = try row.required(5, SQLRow.int)
        partSize = try row.required(6, SQLRow.int)
        confirmedSHA256 = row.text(7).flatMap { SHA256Digest(rawValue: $0) }
    }

    init(id: UploadID, item: ItemID, role: FileRole, name: String, partSize: Int) {
        self.id = id
        self.item = item
        self.role = role
        self.name = name
        state = .queued
        generation = 0
        self.partSize = partSize
    }
}

/// A part whose bytes the store is known to hold, in its upload's present generation.
struct PartRow: Sendable, Equatable {
    var number: Int
    var bytes: Int
    var etag: String?
}

extension FileRow {
    /// Its bytes were to be moved, and are safe; but it still lies where they were taken from.
    func isUnmoved(of item: ItemRow) -> Bool {
        item.isMoved && item.intent != .cancelled && role.isGiven && source != nil && !isSourceRemoved
            && (state == .staged || state == .released)
    }

    /// Of an item that goes on, or is done, without it.
    func isLeftOut(of item: ItemRow) -> Bool {
        role == .sidecar && state == .discarded && (item.state == .ready || !item.state.isFinal)
    }
}

extension ItemRow {
    /// Nothing is left to do: at its end, and not to be cancelled still.
    var isOver: Bool { intent == .cancelled ? state == .cancelled : state.isFinal }
}

extension ItemState {
    /// Within a generation the rank only grows.
    var rank: Int {
        switch self {
        case .picked: 0
        case .staged: 1
        case .preparing: 2
        case .uploading: 3
        case .processing: 4
        case .ready, .rejected, .failed, .cancelled, .missing: 5
        }
    }

    static let unfinished: [ItemState] = allCases.filter { !$0.isFinal }
}
