import Vocabulary

/// What follows an attempt that did not end well. Pure.
struct RetryPolicy: Sendable, Hashable {
    /// Claims of one job, whatever became of them. Media work runs in processes of its own, so a job that is lost with its whole worker is
    /// mostly not the file's doing (a restart, a power cut); the bound only stops what would go on for ever.
    var attemptMax = 1000
    /// Attempts that ended with a failure of the file's own processing.
    var failureMax = 4
    /// Seconds after the first failure; each later one waits four times as long.
    var firstDelay = 2.0
    var delayMax = 600.0
    /// Seconds, where the fault is this machine's and the file cannot help it.
    var machineDelay = 15.0

    enum Step: Hashable, Sendable {
        /// After so many seconds.
        case retry(after: Double)
        /// The attempt does not count.
        case wait(seconds: Double)
        /// No attempt is left, or none can help. The original is kept.
        case reject(Reason)
    }

    /// - Parameters:
    ///   - failureCount: with this one.
    ///   - attempt: from 1.
    func step(after failure: Failure, failureCount: Int, attempt: Int) -> Step {
        if failure.code.isVerdict { return .reject(Reason(failure)) }
        switch failure.code {
        case .diskFull, .readOnly, .workerMissing, .sandboxUnavailable, .databaseError, .busy, .cancelled,
            .backendUnreachable, .backendError, .clockSkewed, .quotaExceeded:
            return .wait(seconds: machineDelay)
        case .overBudget: return .reject(Reason(failure))
        default:
            return failureCount >= failureMax || attempt >= attemptMax
                ? .reject(Reason(failure)) : .retry(after: delay(after: failureCount))
        }
    }

    /// - Parameter isRestart: the worker is known to have ended, so that there is nobody to wait for.
    func stepAfterLostLease(attempt: Int, isRestart: Bool) -> Step {
        guard attempt < attemptMax else {
            return .reject(Reason(.mediaCrashed, "Processing of this file ended without an answer \(attempt) times."))
        }
        return .retry(after: isRestart ? 0 : firstDelay)
    }

    func delay(after failureCount: Int) -> Double {
        var delay = firstDelay
        for _ in 1..<max(1, min(failureCount, 16)) where delay < delayMax { delay *= 4 }
        return min(delay, delayMax)
    }
}
