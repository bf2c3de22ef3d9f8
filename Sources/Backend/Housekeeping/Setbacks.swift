import Synchronization
import Vocabulary

/// What could not be done, each with the time at which it is tried again: later after each failure. Pure.
struct Setbacks: Sendable {
    private struct Setback {
        var attempts = 0
        var due: ContinuousClock.Instant
    }
    private var setbacks: [String: Setback] = [:]
    /// Seconds; doubles with each failure.
    let firstDelay: Double
    let delayMax: Double
    /// Beyond so many the oldest knowledge is dropped: that is then tried again at once.
    static let countMax = 10_000

    init(firstDelay: Double, delayMax: Double) {
        (self.firstDelay, self.delayMax) = (firstDelay, delayMax)
    }

    func isDue(_ subject: String, at now: ContinuousClock.Instant) -> Bool {
        setbacks[subject].map { $0.due <= now } ?? true
    }

    /// - Returns: whether it is the first time in a row.
    mutating func failed(_ subject: String, at now: ContinuousClock.Instant) -> Bool {
        if setbacks.count >= Self.countMax, setbacks[subject] == nil,
            let next = setbacks.min(by: { $0.value.due < $1.value.due })
        {
            setbacks[next.key] = nil
        }
        let attempts = (setbacks[subject]?.attempts ?? 0) + 1
        let delay = min(delayMax, firstDelay * Double(1 << min(attempts - 1, 16)))
        setbacks[subject] = Setback(attempts: attempts, due: now + .seconds(delay))
        return attempts == 1
    }

    /// - Returns: whether it had failed before.
    mutating func succeeded(_ subject: String) -> Bool { setbacks.removeValue(forKey: subject) != nil }
}

/// Carries out what may fail for one thing without failing for the others: told once, tried again later.
final class Attempts: Sendable {
    enum Outcome: Sendable { case done, failed, postponed }
    private let setbacks: Mutex<Setbacks>
    private let log: @Sendable (String) -> Void

    init(firstDelay: Double, delayMax: Double, log: @escaping @Sendable (String) -> Void) {
        setbacks = Mutex(Setbacks(firstDelay: firstDelay, delayMax: delayMax))
        self.log = log
    }

    /// - Parameter work: as a verb with its object: `remove c-1`.
    /// - Throws: what `isAnothers` says is not the fault of this one thing.
    func attempt(
        _ work: String, unless isAnothers: (Failure) -> Bool = \.isOfTheWholeStore,
        _ body: () async throws(Failure) -> Void
    ) async throws(Failure) -> Outcome {
        guard setbacks.withLock({ $0.isDue(work, at: .now) }) else { return .postponed }
        do throws(Failure) {
            try await body()
            if setbacks.withLock({ $0.succeeded(work) }) { log("housekeeping: could \(work) after all") }
            return .done
        } catch {
            if isAnothers(error) || Task.isCancelled { throw error }
            if setbacks.withLock({ $0.failed(work, at: .now) }) {
                log("housekeeping: could not \(work), which is tried again later: \(error)")
            }
            return .failed
        }
    }
}

extension Failure {
    /// The next object would meet the same.
    var isOfTheWholeStore: Bool {
        [.backendUnreachable, .busy, .clockSkewed, .cancelled, .databaseError, .diskFull].contains(code)
    }
}
