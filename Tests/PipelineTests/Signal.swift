import Synchronization

/// Something that happens once and that many may wait for.
final class Signal: Sendable {
    private struct State {
        var isGiven = false
        var waiting: [CheckedContinuation<Void, Never>] = []
    }
    private let state = Mutex(State())
    func give() {
        let waiting = state.withLock { state in
            state.isGiven = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }
    func wait() async {
        await withCheckedContinuation { continuation in
            let isGiven = state.withLock { state in
                if !state.isGiven { state.waiting.append(continuation) }
                return state.isGiven
            }
            if isGiven { continuation.resume() }
        }
    }
}

/// Counts what happens, from any thread.
final class Tally: Sendable {
    private let count = Mutex(0)
    var total: Int { count.withLock { $0 } }
    /// - Returns: 1 for the first.
    func next() -> Int {
        count.withLock { count in
            count += 1
            return count
        }
    }
}
