import Dispatch
import Glibc
import Synchronization

/// The thread on which children are started. A child's die-with-parent signal (PR_SET_PDEATHSIG) comes when the *thread* that started it ends,
/// and the threads of dispatch queues and of Swift's pool end when they are idle; this one never does.
final class SpawnerThread: Sendable {
    static let shared = SpawnerThread()

    private let orders = Mutex<[@Sendable () -> Void]>([])
    private let waiting = DispatchSemaphore(value: 0)

    private init() {
        var thread = pthread_t()
        // The thread keeps its own reference for ever.
        let result = pthread_create(&thread, nil, spawnerMain, Unmanaged.passRetained(self).toOpaque())
        precondition(result == 0, "no thread could be started")
        pthread_detach(thread)
    }

    /// Runs the body on the thread and waits for it. To be called from a thread that may block.
    func run<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) -> Answer {
        let answer = Mutex<Answer?>(nil)
        let done = DispatchSemaphore(value: 0)
        orders.withLock {
            $0.append {
                let value = body()
                answer.withLock { $0 = value }
                done.signal()
            }
        }
        waiting.signal()
        done.wait()
        guard let value = answer.withLock({ $0 }) else { preconditionFailure("the order was not carried out") }
        return value
    }

    fileprivate func carryOutOrders() {
        while true {
            waiting.wait()
            let order = orders.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            order?()
        }
    }
}

private func spawnerMain(_ thread: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let thread { Unmanaged<SpawnerThread>.fromOpaque(thread).takeUnretainedValue().carryOutOrders() }
    return nil
}
