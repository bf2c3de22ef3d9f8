import Processes
import Synchronization

/// Stops a job whose task was cancelled: the worker is killed, and the conversation ends by itself.
final class Cancellation: Sendable {
    private struct State {
        var isCancelled = false
        var child: ChildProcess?
    }
    private let state = Mutex(State())

    var isCancelled: Bool { state.withLock { $0.isCancelled } }

    func attach(_ child: ChildProcess) {
        let isTooLate = state.withLock { state in
            state.child = child
            return state.isCancelled
        }
        if isTooLate { child.kill() }
    }

    /// The job is over; its process may go on to another one.
    func detach() { state.withLock { $0.child = nil } }

    func cancel() {
        let child = state.withLock { state in
            state.isCancelled = true
            return state.child
        }
        child?.kill()
    }
}
