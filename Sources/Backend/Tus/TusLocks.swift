import Synchronization
import Vocabulary

/// Who is writing to which upload: one at a time, and a bounded number altogether.
final class TusLocks: Sendable {
    private struct State {
        var held: Set<UploadID> = []
        var onIdle: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())

    /// - Throws: `locked`, or `busy` when there are too many.
    func holding<Value: Sendable>(_ id: UploadID, _ body: () async throws(Failure) -> Value) async throws(Failure)
        -> Value
    {
        try state.withLock { state throws(Failure) in
            guard !state.held.contains(id) else {
                throw Failure(.locked, "Another request is sending to this upload: try again when it has ended.")
            }
            guard state.held.count < Tus.receptionsMax else {
                throw Failure(.busy, "Too many files are coming in at once: try again.")
            }
            state.held.insert(id)
        }
        defer { release(id) }
        return try await body()
    }

    private func release(_ id: UploadID) {
        let waiting = state.withLock { state in
            state.held.remove(id)
            guard state.held.isEmpty else { return [CheckedContinuation<Void, Never>]() }
            defer { state.onIdle = [] }
            return state.onIdle
        }
        for continuation in waiting { continuation.resume() }
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
