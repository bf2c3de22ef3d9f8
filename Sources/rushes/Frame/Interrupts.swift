@preconcurrency import Dispatch
import Glibc
import Synchronization

/// Turns SIGINT, SIGTERM and SIGHUP into the cancelling of a task, so that everything is put in order before the end. A second one ends at
/// once; children die with us.
final class Interrupts: Sendable {
    private static let count = Atomic<Int>(0)
    private let sources: [any DispatchSourceSignal]

    init(cancelling cancel: @escaping @Sendable () -> Void) {
        sources = [SIGINT, SIGTERM, SIGHUP].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { @Sendable in
                if Self.count.add(1, ordering: .relaxed).newValue > 1 { _exit(ExitCode.failed.rawValue) }
                cancel()
            }
            source.resume()
            return source
        }
        // Whoever reads our output may go away first: that is an error of write(2) then, not our end.
        signal(SIGPIPE, SIG_IGN)
    }
}
