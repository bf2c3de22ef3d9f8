import Vocabulary

/// What the backend's document of an item means for the box.
enum BackendVerdict: Sendable, Equatable {
    /// The backend is not done, or has not read all of the given files yet.
    case wait
    case end(ItemState, Reason?)
    /// These uploads did not arrive as they were sent, or are gone.
    case sendAgain([UploadID])

    /// - Parameters:
    ///   - uploads: the item's, with the hash that each file has here.
    init(_ document: ItemDocument, uploads: [(row: UploadRow, sha256: SHA256Digest?)]) {
        let shown = Dictionary(document.uploads.map { ($0.uploadID, $0) }, uniquingKeysWith: { first, _ in first })
        let lost = uploads.filter { upload in
            guard let seen = shown[upload.row.id] else { return false }
            if let hash = seen.sha256Recomputed { return hash != upload.sha256 }
            return seen.state == .expired || seen.state == .aborted
        }
        guard lost.isEmpty else {
            self = .sendAgain(lost.map(\.row.id))
            return
        }
        // The state may be there before every byte has been read again; only the hashes let a file leave staging.
        let isConfirmed = Self.hasConfirmedGiven(document, uploads: uploads)
        switch document.state {
        case .awaiting, .processing: self = .wait
        case .ready: self = isConfirmed ? .end(.ready, nil) : .wait
        case .rejected:
            let reason = document.reason ?? Reason(.contentRefused, "The backend refused it.")
            // What is no verdict on the file may go better another time, with more memory say.
            self = isConfirmed ? .end(reason.code.isVerdict ? .rejected : .failed, reason) : .wait
        case .deleted: self = .end(.cancelled, Reason(.gone, "The item was deleted at the backend."))
        }
    }

    /// Whether the backend has read every given file itself, and read what is here.
    static func hasConfirmedGiven(
        _ document: ItemDocument, uploads: [(row: UploadRow, sha256: SHA256Digest?)]
    ) -> Bool {
        uploads.allSatisfy { upload in
            !upload.row.role.isGiven
                || document.uploads.contains {
                    $0.uploadID == upload.row.id && $0.sha256Recomputed != nil && $0.sha256Recomputed == upload.sha256
                }
        }
    }
}
