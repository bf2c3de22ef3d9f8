import Vocabulary

/// Whom ids belong to.
struct Owner: RawRepresentable, Sendable, Hashable {
    let rawValue: String
    /// Who speaks over the Unix socket.
    static let local = Owner(rawValue: "local")
}

/// The name of an object in the blob store. Never used twice: it carries an upload's generation or a lease's epoch.
struct BlobKey: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
    let rawValue: String
    var description: String { rawValue }
    static let lengthMax = 200

    init?(rawValue: String) {
        let isAllowed: (UInt8) -> Bool = { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
                true
            default: false
            }
        }
        guard (1...Self.lengthMax).contains(rawValue.utf8.count), rawValue.utf8.allSatisfy(isAllowed),
            !rawValue.hasPrefix(".")
        else { return nil }
        self.rawValue = rawValue
    }

    private init(safe text: String) { rawValue = text }

    /// The bytes of one generation of an upload.
    static func upload(_ session: StoreSession) -> BlobKey { BlobKey(safe: "u-\(session.folderName)") }
    /// The same bytes under a key for which no URL was ever signed.
    static func copied(_ session: StoreSession) -> BlobKey { BlobKey(safe: "c-\(session.folderName)") }

    /// The beginning of a part, as far as it has come. What it is stands in its name, so that it never changes.
    static func tail(_ part: SignedPart, of session: StoreSession) -> BlobKey {
        BlobKey(safe: "\(tailPrefix)\(session.folderName).\(part.number)-\(part.md5)-\(part.length)")
    }
    private static let tailPrefix = "t-"

    /// With which a store is tried.
    static func probe(_ id: UploadID) -> BlobKey { BlobKey(safe: "p-\(id)") }

    /// Something made for an item under a lease.
    static func made(for item: ItemID, epoch: Int, name: OutputName) -> BlobKey {
        let safe = String(
            name.rawValue.unicodeScalars.filter { $0.isASCII && $0.properties.isAlphabetic || ("0"..."9").contains($0) }
        )
        return BlobKey(safe: "d-\(item).\(epoch).\(safe)")
    }

    /// What lies under a key of each form.
    enum Origin: Sendable, Hashable {
        case upload(StoreSession)
        case copy(StoreSession)
        case tail(SignedPart, StoreSession)
        case made(ItemID, epoch: Int)
        case probe
    }

    /// Nil for a key that is not given here.
    var origin: Origin? {
        let rest = String(rawValue.dropFirst(Self.tailPrefix.utf8.count))
        switch String(rawValue.prefix(Self.tailPrefix.utf8.count)) {
        case "u-": return StoreSession(folderName: rest).map { .upload($0) }
        case "c-": return StoreSession(folderName: rest).map { .copy($0) }
        case "p-": return .probe
        case Self.tailPrefix:
            guard let dot = rest.lastIndex(of: "."), let session = StoreSession(folderName: String(rest[..<dot])),
                let part = StoredPart(fileName: String(rest[rest.index(after: dot)...]))
            else { return nil }
            return .tail(SignedPart(number: part.number, length: part.size, md5: part.etag), session)
        case "d-":
            let pieces = rest.split(separator: ".", omittingEmptySubsequences: false)
            guard pieces.count == 3, let item = ItemID(rawValue: String(pieces[0])), let epoch = Int(pieces[1]) else {
                return nil
            }
            return .made(item, epoch: epoch)
        default: return nil
        }
    }
}

struct UploadRow: Sendable, Hashable {
    var id: UploadID
    var owner: Owner
    var item: ItemID
    var role: FileRole
    var name: String
    var filename: String
    var size: Int?
    var partSize: Int
    /// Declared by the client: at open, or else at complete.
    var sha256: SHA256Digest?
    var generation: Int
    var state: SessionState
    var isAlreadyStored: Bool
    var isAttached: Bool
    /// A foreign client's: its parts are made here, and recorded when the store has them.
    var isTus: Bool
    /// The store's name for the session of this generation, where it gives one.
    var storeName: String?
    var blob: BlobKey?
    var expiresAt: Timestamp
    /// Recomputed from the store.
    var recomputed: SHA256Digest?
    var verifiedAt: Timestamp?

    var session: StoreSession { StoreSession(upload: id, generation: generation, storeName: storeName) }
    var grid: UploadGrid { UploadGrid(size: size, partSize: partSize) }
}

/// What is kept of a foreign client's upload besides its row.
struct TusRow: Sendable, Hashable {
    var upload: UploadRow
    var metadata: String
    var shoot: String
    /// The state of a `ResumableSHA256` over the recorded parts.
    var hash: [UInt8]
}

/// A part for which a URL was signed, or that was received here.
struct SignedPart: Sendable, Hashable {
    var number: Int
    /// Bytes.
    var length: Int
    /// Hexadecimal.
    var md5: String
}

struct ItemRow: Sendable, Hashable {
    var id: ItemID
    var owner: Owner
    var shoot: String
    var kind: MediaFacts.Kind?
    var state: BackendItemState
    var generation: Int
    var reason: Reason?
    var durationMS: Int?
    var aspect: Double?
    var previewColor: String?
    var uploads: [UploadRow]
    var renditions: [RenditionRow]
}

struct RenditionRow: Sendable, Hashable {
    var rendition: Rendition
    var blob: BlobKey
}

struct BlobRow: Sendable, Hashable {
    var key: BlobKey
    var owner: Owner
    var size: Int
    /// Recomputed; nil until the bytes were read.
    var sha256: SHA256Digest?
}

/// An object that was verified once, and was then not found or not as it was.
struct SuspectRow: Sendable, Hashable {
    var key: BlobKey
    var size: Int
    /// Whose bytes have to come again.
    var upload: UploadID
}

/// A job with the right to do it.
struct ClaimedJob: Sendable, Hashable {
    var item: ItemRow
    /// Raised by each claim: what was done under an older one no longer counts.
    var epoch: Int
    /// 1 for the first.
    var attempt: Int
    /// Attempts that failed before this one.
    var failureCount: Int
}

/// What processing found and made.
struct Manifest: Sendable, Hashable {
    var kind: MediaFacts.Kind?
    /// The probe's facts as JSON, for later work.
    var facts: String?
    var durationMS: Int?
    var aspect: Double?
    var previewColor: String?
    var renditions: [RenditionRow]
    /// Objects that were made, and are in the store already.
    var blobs: [BlobRow]
}

struct EventRow: Sendable, Hashable {
    var number: Int
    var item: ItemID
    var shoot: String
    var generation: Int
    var state: BackendItemState
    var reason: Reason?
}

/// What an owner's log of events holds.
struct EventSpan: Sendable, Hashable {
    /// The number of the last event that was removed; 0 when none was.
    var trimmedTo: Int
    /// The number of the newest event; 0 when there was none.
    var last: Int
}

/// How much of each owner's log is kept.
struct EventLogBounds: Sendable, Hashable {
    /// Events; older ones go.
    var keptMax = 50_000
    /// Seconds after which events go, but for the newest `keptMin`: a client that was away for longer looks at everything anyway.
    var age = 7 * 24 * 3600.0
    /// With a clock that has jumped, age alone must not empty the log. At least 1: the newest event carries the numbering on.
    var keptMin = 1000
    /// Events that one sweep removes at most of one owner.
    var sweptMax = 10_000
}

/// Counts for operators.
struct LedgerCounts: Sendable, Hashable {
    var items: [BackendItemState: Int]
    var jobs: [JobState: Int]
    var openSessions: Int
}
