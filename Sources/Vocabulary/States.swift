/// Where an item stands on the box. Within a generation it only moves forward.
public enum ItemState: String, Codable, Sendable, Hashable, CaseIterable {
    /// The intent is written; the bytes are not all in staging yet.
    case picked
    case staged, preparing, uploading, processing
    case ready, rejected, failed, cancelled, missing

    public var isFinal: Bool {
        switch self {
        case .picked, .staged, .preparing, .uploading, .processing: false
        case .ready, .rejected, .failed, .cancelled, .missing: true
        }
    }
}

/// Where an upload stands on the box.
public enum UploadState: String, Codable, Sendable, Hashable {
    case queued, uploading, completing, completed
}

/// Where an upload session stands on the backend.
public enum SessionState: String, Codable, Sendable, Hashable {
    case open, complete, expired, aborted
}

/// Where an item stands on the backend.
public enum BackendItemState: String, Codable, Sendable, Hashable {
    case awaiting, processing, ready, rejected, deleted
}

/// Where a backend job stands. An attempt is counted at the claim, so a file that kills its worker uses up attempts.
public enum JobState: String, Codable, Sendable, Hashable {
    case available, running, completed, discarded
}

/// What the person wants of an item, beside its state.
public enum Intent: String, Codable, Sendable, Hashable {
    case run, paused, cancelled
}

/// What a file is to its item.
public enum FileRole: String, Codable, Sendable, Hashable, CaseIterable {
    case original, sidecar, rendition, poster, thumbnail, storyboard

    /// Bytes that came from the person, not derived by us: they leave staging only when the backend confirmed their hash.
    public var isGiven: Bool { self == .original || self == .sidecar }
}

/// What the box uploads of an item.
public enum PrepareMode: String, Codable, Sendable, Hashable, CaseIterable {
    case auto, original, both
    case rendition = "1080p"
}
