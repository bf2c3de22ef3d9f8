import Vocabulary

/// Whose fault a failure is, and when to try again.
struct RetryPolicy: Sendable, Equatable {
    /// Attempts of one item in one generation.
    var attemptMax = 5
    var backoff = Backoff(firstDelay: 0.5, delayMax: 30)
    /// A fault of the backend's own is everybody's only as long as it meets everybody: an item that met it so often while others got through
    /// has it for itself.
    var lonelyFaultMax = 6

    enum Blame: Equatable {
        /// No network, no room, no token: all wait, nobody's attempts are used up.
        case everybody
        /// This item's: one attempt.
        case item
        /// The same thing will never work.
        case final
        /// Nobody's: the program was told to stop.
        case nobody
    }

    /// - Parameters:
    ///   - faults: how often in a row this operation has failed so, this time included.
    ///   - othersSucceeded: whether another operation got through to the backend meanwhile.
    func blame(_ failure: Failure, faults: Int, othersSucceeded: Bool) -> Blame {
        switch failure.code {
        case .cancelled: .nobody
        case .diskFull, .readOnly, .databaseError, .unauthorized, .quotaExceeded, .workerMissing, .sandboxUnavailable,
            .socketPathTooLong, .clockSkewed,
            .backendUnreachable, .busy:
            .everybody
        case .backendError, .internalError, .foreignAnswer, .redirected:
            othersSucceeded && faults >= lonelyFaultMax ? .item : .everybody
        case .badRequest, .forbidden, .bodyTooLarge, .tooLarge: .final
        default: .item
        }
    }
}

/// How long to wait after failures in a row: exponential, with full jitter over its upper half, so that many do not return at once.
struct Backoff: Sendable, Equatable {
    /// Seconds after the first failure; doubles with each.
    var firstDelay: Double
    /// Seconds at most.
    var delayMax: Double

    /// Seconds to wait after the `faults`th failure in a row.
    func delay(faults: Int, using random: inout some RandomNumberGenerator) -> Double {
        var ceiling = firstDelay
        for _ in 1..<max(1, min(faults, 32)) where ceiling < delayMax { ceiling *= 2 }
        ceiling = min(ceiling, delayMax)
        return Double.random(in: (ceiling / 2)...ceiling, using: &random)
    }
}

/// When to ask the backend again how far an item is.
struct PollPolicy: Sendable, Equatable {
    var firstDelay = 0.15
    var factor = 1.4
    var delayMax = 5.0

    /// Seconds before poll number `count`, from 1.
    func delay(count: Int, using random: inout some RandomNumberGenerator) -> Double {
        var delay = firstDelay
        for _ in 1..<max(1, min(count, 64)) where delay < delayMax { delay *= factor }
        return min(delay, delayMax) * Double.random(in: 0.8...1.2, using: &random)
    }
}
