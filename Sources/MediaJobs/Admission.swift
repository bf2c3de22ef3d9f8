import Synchronization
import Vocabulary

/// Gives out so many places, to who came first: one that needs several is not passed by those that need fewer. A waiter whose task is
/// cancelled leaves the queue.
final class Admission: Sendable {
    private struct State {
        var free: Int
        var nextTicket = 0
        var waiters: [(ticket: Int, count: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        /// Cancelled before they came to wait.
        var cancelled: Set<Int> = []

        /// Those whose turn it is, with their places taken.
        mutating func takeNext() -> [CheckedContinuation<Bool, Never>] {
            var next: [CheckedContinuation<Bool, Never>] = []
            while let first = waiters.first, first.count <= free {
                free -= first.count
                next.append(waiters.removeFirst().continuation)
            }
            return next
        }
    }

    private let state: Mutex<State>
    private let waiterCountMax: Int

    init(count: Int, waiterCountMax: Int) {
        state = Mutex(State(free: count))
        self.waiterCountMax = waiterCountMax
    }

    /// Each success is to be followed by one `leave` of as many.
    func enter(_ count: Int = 1) async throws(Failure) {
        let ticket = state.withLock { state in
            state.nextTicket += 1
            return state.nextTicket
        }
        let isIn = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let answer: Bool? = state.withLock { state in
                    if state.cancelled.remove(ticket) != nil { return false }
                    if state.waiters.isEmpty, state.free >= count {
                        state.free -= count
                        return true
                    }
                    if state.waiters.count >= waiterCountMax { return false }
                    state.waiters.append((ticket, count, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let (waiter, next) = state.withLock { state in
                guard let index = state.waiters.firstIndex(where: { $0.ticket == ticket }) else {
                    state.cancelled.insert(ticket)
                    return (CheckedContinuation<Bool, Never>?.none, [CheckedContinuation<Bool, Never>]())
                }
                let waiter = state.waiters.remove(at: index).continuation
                // It may have kept those behind it waiting.
                return (waiter, state.takeNext())
            }
            waiter?.resume(returning: false)
            for waiter in next { waiter.resume(returning: true) }
        }
        state.withLock { _ = $0.cancelled.remove(ticket) }
        if isIn { return }
        throw Task.isCancelled
            ? Failure(.cancelled, "Stopped.")
            : Failure(.busy, "Too much media work is waiting: try again later.", detail: "\(waiterCountMax) waiters")
    }

    var waiterCount: Int { state.withLock { $0.waiters.count } }

    func leave(_ count: Int = 1) {
        let next = state.withLock { state in
            state.free += count
            return state.takeNext()
        }
        for waiter in next { waiter.resume(returning: true) }
    }
}
