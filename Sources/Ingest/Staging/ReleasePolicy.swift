import Vocabulary

/// When a file may leave staging (safekeeping rules 3 and 4).
enum ReleasePolicy: Sendable, Equatable {
    case go, stay
    /// A copy of what is no media: the source is as good.
    case goIfSourceHasIt

    /// - Parameters:
    ///   - sha256: the file's hash here.
    ///   - state: its item's, with the reason and whether the source went when it was taken.
    ///   - confirmed: the hash that the backend took itself of the file's upload.
    static func decide(
        role: FileRole, sha256: SHA256Digest?, state: ItemState, reason: FailureCode?, isMoved: Bool,
        confirmed: SHA256Digest?
    ) -> ReleasePolicy {
        if let confirmed, confirmed == sha256 { return .go }
        guard role.isGiven else { return state.isFinal && state != .failed ? .go : .stay }
        let isNoMedia = reason == .empty || reason == .notMedia
        return state == .rejected && isNoMedia && !isMoved && confirmed == nil ? .goIfSourceHasIt : .stay
    }
}
