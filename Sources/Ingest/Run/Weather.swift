import Synchronization
import Vocabulary

/// What is everybody's fault: no network, no room, no token. All operations of a run wait here with one reason, and nobody's attempts are
/// used up.
actor Weather {
    private let clock: BoxClock
    private let patience: Double?
    private let policy: RetryPolicy
    private let random: BoxRandom
    private let say: @Sendable (String?) -> Void

    private(set) var successCount = 0
    private(set) var reason: Failure?
    /// When the present bad weather began, in seconds.
    private var since: Double?
    /// Why the run has to end.
    private(set) var verdict: Failure?

    /// Refusals that only a person can end are asked for so often, in case a token is being renewed.
    static let personFaultMax = 3

    init(
        clock: BoxClock, patience: Double?, policy: RetryPolicy, random: BoxRandom, say: @escaping @Sendable (String?) -> Void
    ) {
        self.clock = clock
        self.patience = patience
        self.policy = policy
        self.random = random
        self.say = say
    }

    func succeeded() {
        successCount += 1
        since = nil
        if reason != nil {
            reason = nil
            say(nil)
        }
    }

    /// Carries an operation out, again and again while its failure is everybody's.
    nonisolated func persist<Value: Sendable>(
        _ operation: @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let before = await successCount
        var faults = 0
        while true {
            do throws(Failure) {
                if let verdict = await verdict { throw verdict }
                let value = try await operation()
                await succeeded()
                return value
            } catch {
                faults += 1
                let othersSucceeded = await successCount > before
                guard await verdict == nil,
                    policy.blame(error, faults: faults, othersSucceeded: othersSucceeded) == .everybody
                else { throw error }
                let delay = try await endured(error, faults: faults)
                await clock.sleep(delay)
                if Task.isCancelled { throw Failure(.cancelled, "Stopped.") }
            }
        }
    }

    /// - Returns: seconds to wait.
    private func endured(_ failure: Failure, faults: Int) throws(Failure) -> Double {
        let start = since ?? clock.seconds
        since = start
        if reason?.code != failure.code {
            reason = failure
            say(failure.message)
        }
        let isForAPerson = failure.remedy != .retryLater && faults >= Self.personFaultMax
        let isOverdue = patience.map { clock.seconds - start >= $0 } ?? false
        if isForAPerson || isOverdue {
            verdict = failure
            throw failure
        }
        var random = random
        return policy.delay(faults: faults, using: &random)
    }

    /// The run ends with this.
    func giveUp(_ failure: Failure) { if verdict == nil { verdict = failure } }
}
