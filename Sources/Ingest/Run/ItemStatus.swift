import Foundation
public import Vocabulary

/// An item as `status` and `ingest --json` print it: every field always there, `null` where nothing is known.
public struct ItemStatus: Sendable, Encodable, Equatable {
    public var item: ItemID
    public var shoot: String
    public var name: String
    public var kind: MediaFacts.Kind?
    public var state: ItemState
    public var intent: Intent
    public var waiting: String?
    public var reason: Reason?
    public var generation: Int
    /// Of all files that are sent; of the given files as long as that is not decided.
    public var bytes: Int
    /// Of those, what the store has acknowledged.
    public var confirmedBytes: Int
    /// What the backend offers of it, as it said last; without URLs, which do not last.
    public var outputs: [Rendition]
    /// Given files that are still in staging.
    public var staged: [String]
    /// Where given files still lie that were to be moved from there: their bytes are safe, but they could not be removed yet.
    public var remaining: [String]

    enum CodingKeys: String, CodingKey {
        case item, shoot, name, kind, state, intent, waiting, reason, generation, bytes, outputs, staged, remaining
        case confirmedBytes = "confirmed_bytes"
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(item, forKey: .item)
        try container.encode(shoot, forKey: .shoot)
        try container.encode(name, forKey: .name)
        try container.encode(kind, forKey: .kind)
        try container.encode(state, forKey: .state)
        try container.encode(intent, forKey: .intent)
        try container.encode(waiting, forKey: .waiting)
        try container.encode(reason, forKey: .reason)
        try container.encode(generation, forKey: .generation)
        try container.encode(bytes, forKey: .bytes)
        try container.encode(confirmedBytes, forKey: .confirmedBytes)
        try container.encode(outputs, forKey: .outputs)
        try container.encode(staged, forKey: .staged)
        try container.encode(remaining, forKey: .remaining)
    }
}

/// An item with all that the box knows of it.
public struct ItemDetail: Sendable, Encodable {
    public struct File: Sendable, Encodable {
        public var role: FileRole
        public var name: String
        public var bytes: Int?
        public var sha256: SHA256Digest?
        /// The path in staging while the bytes are there.
        public var stagedPath: String?
        /// Where it still lies although it was to be moved from there.
        public var remainingSource: String?
        public var upload: UploadID?
        public var uploadState: UploadState?
        /// The hash that the backend took itself.
        public var confirmedSHA256: SHA256Digest?

        enum CodingKeys: String, CodingKey {
            case role, name, bytes, sha256, upload
            case stagedPath = "staged_path"
            case remainingSource = "remaining_source"
            case uploadState = "upload_state"
            case confirmedSHA256 = "confirmed_sha256"
        }
    }
    /// A step of the item's story, with its time.
    public struct Step: Sendable, Encodable {
        public var entry: HistoryEntry

        enum CodingKeys: String, CodingKey { case at }
        public func encode(to encoder: any Encoder) throws {
            try entry.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(entry.time, forKey: .at)
        }
    }
    public var status: ItemStatus
    public var source: String
    public var attempts: Int
    public var probe: ProbeReport?
    public var document: ItemDocument?
    public var files: [File]
    /// In the order of its times.
    public var history: [Step]
    /// Steps between the first and the newest ones that are not kept.
    public var leftOut: Int

    enum CodingKeys: String, CodingKey {
        case status, source, attempts, probe, document, files, history
        case leftOut = "left_out"
    }
}
