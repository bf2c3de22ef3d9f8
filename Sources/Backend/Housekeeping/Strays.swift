import Synchronization
import Vocabulary

/// What an object is that no row names.
enum StrayStanding: Sendable, Hashable {
    /// Something goes on with it.
    case needed
    /// Left by an attempt of this ledger's own that is over, or by a decision of it.
    case leftOver
    /// Nothing of this ledger's has made it: another one has, of which this is an older state or a copy.
    case unknown
    /// Nothing that is given here has such a name.
    case foreign
}

/// Tells of objects without a row whether they may go.
struct Strays: Sendable {
    let ledger: any Ledger

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

    /// Of one that is under way, or of its object, which comes before the object's row: while its upload is open, its client or the sweep
    /// finishes that.
    func standing(of session: StoreSession) async throws(Failure) -> StrayStanding {
        guard let known = try await ledger.generation(of: session.upload), known.number >= session.generation else {
            return .unknown
        }
        return known.isOpen && known.number == session.generation ? .needed : .leftOver
    }

    private func standing(of item: ItemID, _ epoch: Int) async throws(Failure) -> StrayStanding {
        guard let known = try await ledger.epoch(of: item), epoch <= known.number else { return .unknown }
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

/// Whether this ledger may be an older state, or a copy, of the one whose files are in the store. What it holds for left over may then be
/// all that there is of somebody's bytes.
final class LedgerDoubt: Sendable {
    private let isThere = Atomic<Bool>(false)
    private let isLooked = Atomic<Bool>(false)
    private let log: @Sendable (String) -> Void

    init(log: @escaping @Sendable (String) -> Void) { self.log = log }

    /// Nothing is removed before all that is in the store has been looked at once.
    var mayRemove: Bool { hasLooked && !isThere.load(ordering: .relaxed) }
    var hasLooked: Bool { isLooked.load(ordering: .relaxed) }

    /// All that is there has been looked at.
    func looked() { isLooked.store(true, ordering: .relaxed) }

    /// Told once; there until the next start.
    func raise(_ subject: String) {
        guard !isThere.exchange(true, ordering: .relaxed) else { return }
        log(
            "\(subject) in the store, and maybe more, belongs to no upload of this ledger, as if that were an older one or a copy of another: nothing is removed from the store. If it is, stop this backend and bring back the right ledger, and send again what has come to this one; if not, remove what `rushes check` names and start this backend again."
        )
    }
}
