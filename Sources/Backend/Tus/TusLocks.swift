import Synchronization
import Vocabulary

/// Who is writing to which upload: one at a time, and a bounded number altogether.
final class TusLocks: Sendable {
    private struct State {
        /// With what sends to it; nil where nothing does.
        var held: [UploadID: TusReception?] = [:]
        var onIdle: [CheckedContinuation<Void, Never>] = []
        var isStopped = false
        var onHeld: [UploadID: [AsyncStream<TusReception?>.Continuation]] = [:]
    }
    private let state = Mutex(State())

    /// - Parameter reception: what is to send to it.
    /// - Throws: `locked`, or `busy` when there are too many.
    func holding<Value: Sendable>(
        _ id: UploadID, for reception: TusReception? = nil, at now: ContinuousClock.Instant = .now,
        _ body: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        var stalled: TusReception?
        let waiting = try state.withLock { state throws(Failure) -> [AsyncStream<TusReception?>.Continuation]? in
            if let holder = state.held[id] {
                if let holder, holder.isStalled(at: now) { stalled = holder }
                return nil
            }
            guard !state.isStopped else { throw Failure(.busy, "The backend is stopping: try again.") }
            guard state.held.count < Tus.receptionsMax else {
                throw Failure(.busy, "Too many files are coming in at once: try again.")
            }
            state.held.updateValue(reception, forKey: id)
            return state.onHeld.removeValue(forKey: id) ?? []
        }
        guard let waiting else {
            // A phone that has changed its network cannot tell of its old connection, and is back before anyone notices.
            stalled?.breakOff()
            throw Failure(.locked, "Another request is sending to this upload: try again when it has ended.")
        }
        defer { release(id) }
        for continuation in waiting { continuation.yield(reception) }
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

    /// Returns when somebody is writing to it.
    /// - Returns: what sends to it; nil where that is nothing, or the wait was cancelled.
    func held(_ id: UploadID) async -> TusReception? {
        let (holders, continuation) = AsyncStream<TusReception?>.makeStream()
        let holder = state.withLock { state in
            if state.held[id] == nil { state.onHeld[id, default: []].append(continuation) }
            return state.held[id]
        }
        if let holder { return holder }
        for await holder in holders { return holder }
        return nil
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
