import Synchronization
import Vocabulary

/// Looks after ledger and store while the backend runs: at each ring, of the clock or of somebody who knows that there is something to do.
struct Housekeeping: Sendable {
    private let parts: BackendParts
    private let clock: @Sendable () -> Timestamp
    private let log: @Sendable (String) -> Void

    private static let sweepSeconds = 60.0

    init(_ parts: BackendParts, clock: @escaping @Sendable () -> Timestamp, log: @escaping @Sendable (String) -> Void) {
        (self.parts, self.clock, self.log) = (parts, clock, log)
    }

    /// Until it is cancelled.
    func run(_ rings: AsyncStream<Void>) async {
        let ticking = Task { await tick() }
        defer { ticking.cancel() }
        // This clock stands while the machine sleeps: waking up counts as a jump, and costs no lease either.
        let start = SuspendingClock.now
        var lastSweep = start
        var watch = ClockWatch(wall: clock(), steady: 0)
        for await _ in rings {
            do throws(Failure) {
                let now = clock()
                if let step = watch.look(wall: now, steady: (SuspendingClock.now - start) / .seconds(1)) {
                    log("the clock was set by \(step) s")
                    try await parts.ledger.followClock(
                        by: step, leaseUntil: now.adding(seconds: parts.processing.lease))
                }
                await parts.sweeper.removeDoomed()
                if parts.hint.take() { await parts.sweeper.lookAtSessions() }
                guard SuspendingClock.now - lastSweep >= .seconds(Self.sweepSeconds) else { continue }
                lastSweep = .now
                try await parts.sweeper.sweep()
                parts.events.ring(nil)
            } catch { log("housekeeping: \(error)") }
        }
    }

    private func tick() async {
        while true {
            parts.bell.ring()
            do { try await Task.sleep(for: .seconds(parts.processing.idle)) } catch { return }
            parts.chores.ring()
        }
    }
}

/// Somebody says that something has happened in the store; looking at it once answers any number of them.
final class Hint: Sendable {
    private let isGiven = Atomic<Bool>(false)
    func give() { isGiven.store(true, ordering: .relaxed) }
    func take() -> Bool { isGiven.exchange(false, ordering: .relaxed) }
}
