import Synchronization
import Vocabulary

/// Who is writing to which upload: one at a time, and a bounded number altogether and of each owner.
final class TusLocks: Sendable {
    private struct Holder {
        let owner: Owner
        /// What sends to it; nil where nothing does.
        let reception: TusReception?
        /// It is ending, and its place is another's.
        var isEvicted = false
    }
    private struct State {
        var held: [UploadID: Holder] = [:]
        var onIdle: [CheckedContinuation<Void, Never>] = []
        var isStopped = false

        /// Whether there is a place, or is one when that has given way which has been silent for too long.
        mutating func makeRoom(for owner: Owner, at now: ContinuousClock.Instant) -> (
            isThere: Bool, stalled: TusReception?
        ) {
            let own = held.filter { !$0.value.isEvicted && $0.value.owner == owner }
            let all = held.filter { !$0.value.isEvicted }
            let rivals: [UploadID: Holder]
            if own.count >= Tus.receptionsOfOneOwnerMax {
                rivals = own
            } else if all.count >= Tus.receptionsMax {
                rivals = all
            } else {
                return (true, nil)
            }
            guard let stalled = rivals.first(where: { $0.value.reception?.isStalled(at: now) ?? false }) else {
                return (false, nil)
            }
            held[stalled.key]?.isEvicted = true
            return (true, stalled.value.reception)
        }
    }
    private let state = Mutex(State())

    private enum Entry { case admitted, locked, stopped, full }

    /// - Parameter reception: what is to send to it.
    /// - Throws: `locked`, or `busy` when there are too many.
    func holding<Value: Sendable>(
        _ id: UploadID, of owner: Owner, for reception: TusReception? = nil, at now: ContinuousClock.Instant = .now,
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let (entry, stalled) = state.withLock { state -> (Entry, TusReception?) in
            if let holder = state.held[id]?.reception { return (.locked, holder.isStalled(at: now) ? holder : nil) }
            guard state.held[id] == nil else { return (.locked, nil) }
            guard !state.isStopped else { return (.stopped, nil) }
            let room = state.makeRoom(for: owner, at: now)
            guard room.isThere else { return (.full, nil) }
            state.held[id] = Holder(owner: owner, reception: reception)
            return (.admitted, room.stalled)
        }
        // A phone that has changed its network cannot tell of its old connection, and is back before anyone notices.
        stalled?.breakOff()
        switch entry {
        case .admitted: break
        case .locked:
            throw Failure(.locked, "Another request is sending to this upload: try again when it has ended.")
        case .stopped: throw Failure(.busy, "The backend is stopping: try again.")
        case .full: throw Failure(.busy, "Too many files are coming in at once: try again.")
        }
        defer { release(id) }
        return try await body()
    }

    private func release(_ id: UploadID) {
        let waiting = state.withLock { state in
            state.held[id] = nil
            guard state.held.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.onIdle = [] }
            return state.onIdle
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Nobody comes in any more. Returns when nobody is writing.
    func stop() async {
        state.withLock { $0.isStopped = true }
        await idle()
    }

    /// Returns when nobody is writing.
    func idle() async {
        await withCheckedContinuation { continuation in
            let isIdle = state.withLock { state in
                if !state.held.isEmpty { state.onIdle.append(continuation) }
                return state.held.isEmpty
            }
            if isIdle { continuation.resume() }
        }
    }
}
