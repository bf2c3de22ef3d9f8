import Vocabulary

/// What an object is that no row names.
enum StrayStanding: Sendable, Hashable {
    /// Something goes on with it.
    case needed
    /// Left by an attempt of this ledger's own that is over, or by a decision of it.
    case leftOver
    /// Nothing of this ledger's has made it, so a later one may have: this one was restored from a backup, or is a copy.
    case unknown
    /// Nothing that is given here has such a name.
    case foreign
}

/// Tells of objects without a row whether they may go.
struct Strays: Sendable {
    let ledger: any Ledger

    /// Seconds for which unknown objects are kept, counted from when they were stored.
    static let grace = 7 * 24 * 3600.0

    /// Of an object without a row.
    func standing(of key: BlobKey) async throws(Failure) -> StrayStanding {
        switch key.origin {
        case .upload(let session), .copy(let session): try await standing(of: session)
        case .tail(let part, let session):
            if try await ledger.signedParts(session).contains(part) {
                .needed
            } else {
                try await ledger.generation(of: session.upload) == nil ? .unknown : .leftOver
            }
        case .made(let item, let epoch): try await standing(of: item, epoch)
        case .probe: .leftOver
        case nil: .foreign
        }
    }

    /// The object comes before its row: while its upload is open, its client or the sweep finishes that.
    private func standing(of session: StoreSession) async throws(Failure) -> StrayStanding {
        guard let known = try await ledger.generation(of: session.upload), known.number >= session.generation else {
            return .unknown
        }
        return known.isOpen && known.number == session.generation ? .needed : .leftOver
    }

    private func standing(of item: ItemID, _ epoch: Int) async throws(Failure) -> StrayStanding {
        guard let known = try await ledger.epoch(of: item), epoch <= known.number ?? .max else { return .unknown }
        return known.isRunning && epoch == known.number ? .needed : .leftOver
    }

    /// Whether somebody is still at it, as far as the ledger says.
    func hasWriter(_ write: StoreWrite) async throws(Failure) -> Bool {
        switch write.key?.origin {
        case .made(let item, let epoch): try await standing(of: item, epoch) == .needed
        case .copy(let session): try await standing(of: session) == .needed
        case .probe: true
        case .upload, .tail, nil: false
        }
    }
}
