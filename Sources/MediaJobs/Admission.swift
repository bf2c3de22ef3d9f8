import Synchronization
import Vocabulary

/// Lets so many in at a time, the others in the order in which they came. A waiter whose task is cancelled leaves the queue.
final class Admission: Sendable {
    private struct State {
        var free: Int
        var nextTicket = 0
        var waiters: [(ticket: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        /// Cancelled before they came to wait.
        var cancelled: Set<Int> = []
    }

    private let state: Mutex<State>
    private let waiterCountMax: Int

    init(count: Int, waiterCountMax: Int) {
        state = Mutex(State(free: count))
        self.waiterCountMax = waiterCountMax
    }

    /// Each success is to be followed by one `leave`.
    func enter() async throws(Failure) {
        let ticket = state.withLock { state in
            state.nextTicket += 1
            return state.nextTicket
        }
        let isIn = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    if state.cancelled.remove(ticket) != nil { return false }
                    if state.free > 0 {
                        state.free -= 1
                        return true
                    }
                    if state.waiters.count >= waiterCountMax { return false }
                    state.waiters.append((ticket, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                guard let index = state.waiters.firstIndex(where: { $0.ticket == ticket }) else {
                    state.cancelled.insert(ticket)
                    return CheckedContinuation<Bool, Never>?.none
                }
                return state.waiters.remove(at: index).continuation
            }
            waiter?.resume(returning: false)
        }
        state.withLock { _ = $0.cancelled.remove(ticket) }
        if isIn { return }
        throw Task.isCancelled
            ? Failure(.cancelled, "Stopped.")
            : Failure(.busy, "Too much media work is waiting: try again later.", detail: "\(waiterCountMax) waiters")
    }

    func leave() {
        let next = state.withLock { state in
            if state.waiters.isEmpty {
                state.free += 1
                return CheckedContinuation<Bool, Never>?.none
            }
            return state.waiters.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
