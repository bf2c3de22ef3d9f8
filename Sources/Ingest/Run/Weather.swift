import Synchronization
import Vocabulary

/// What is everybody's fault: no network, no room, no token. All operations of a run wait here with one reason, and nobody's attempts are
/// used up.
actor Weather {
    private let clock: BoxClock
    private let patience: Double?
    private let policy: RetryPolicy
    private let random: BoxRandom
    /// The token as it is now; nil where it stays the same for the whole run.
    private let renewedToken: (@Sendable () -> String?)?
    private let isBackendWell: @Sendable () async -> Bool
    private let say: @Sendable (String?) async -> Void

    /// Where an operation goes: to the backend with the token, or to the store by a signed URL. The two are reached and fail apart from each other.
    enum Way: Sendable { case backend, store }

    private var successCounts: [Way: Int] = [:]
    /// When something got through last, by the clock that only goes forward.
    private var lastSuccess: [Way: Double] = [:]
    private var reason: Failure?
    /// Where it was met: only what gets through there is its end.
    private var reasonWay = Way.backend
    /// The reason has been said.
    private var isSaid = false
    /// Why the run has to end.
    private(set) var verdict: Failure?

    /// Refusals that only a person can end are asked for so often, in case a token is being renewed.
    static let personFaultMax = 3

    /// Seconds for which a backend may be away before that is worth a word: one process hands over to the next in less.
    static let blink = 1.5

    /// Seconds between two looks at a token that was refused, whether it is another one by now.
    static let tokenInterval = 1.0

    /// How often one operation begins again at once because its token was renewed meanwhile.
    static let renewalMax = 3

    /// Seconds that a server may ask to wait at most.
    static let retryAfterMax = 60.0

    init(
        clock: BoxClock, patience: Double?, policy: RetryPolicy, random: BoxRandom,
        renewedToken: (@Sendable () -> String?)? = nil,
        isBackendWell: @escaping @Sendable () async -> Bool, say: @escaping @Sendable (String?) async -> Void
    ) {
        self.clock = clock
        self.patience = patience
        self.policy = policy
        self.random = random
        self.renewedToken = renewedToken
        self.isBackendWell = isBackendWell
        self.say = say
    }

    func succeeded(_ way: Way = .backend) async {
        successCounts[way, default: 0] += 1
        lastSuccess[way] = clock.seconds
        guard reason != nil, way == reasonWay else { return }
        reason = nil
        guard isSaid else { return }
        isSaid = false
        await say(nil)
    }

    /// Carries an operation out, again and again while its failure is everybody's.
    nonisolated func persist<Value: Sendable>(
        _ way: Way = .backend, _ operation: @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let before = await successCount(way)
        var faults = 0
        var since: Double?
        while true {
            let attempted = clock.seconds
            let token = renewedToken?()
            do throws(Failure) {
                if let verdict = await verdict { throw verdict }
                let value = try await operation()
                await succeeded(way)
                return value
            } catch {
                faults += 1
                if await verdict != nil || Task.isCancelled { throw error }
                // Renewed while the old one was on its way: nothing to be told, or to be waited for.
                if error.code == .unauthorized, let renewedToken, renewedToken() != token, faults <= Self.renewalMax {
                    continue
                }
                let othersSucceeded = await othersSucceed(way, since: before, error, faults: faults)
                guard policy.blame(error, faults: faults, othersSucceeded: othersSucceeded) == .everybody else {
                    throw error
                }
                let start = since ?? clock.seconds
                since = start
                let isBlink = clock.seconds - min(start, attempted) < Self.blink
                let delay = try await endured(error, way, faults: faults, since: start, isBlink: isBlink)
                await rest(delay, after: error, token: token)
                if Task.isCancelled { throw Failure(.cancelled, "Stopped.") }
            }
        }
    }

    /// Where nothing else is under way to compare with, the backend itself is asked how it is.
    private nonisolated func othersSucceed(_ way: Way, since count: Int, _ failure: Failure, faults: Int) async -> Bool
    {
        if await successCount(way) > count { return true }
        guard way == .backend, failure.code == .backendError || failure.code == .internalError,
            faults >= policy.lonelyFaultMax
        else { return false }
        return await isBackendWell()
    }

    private func successCount(_ way: Way) -> Int { successCounts[way, default: 0] }

    /// Waits, but not for longer than a token that was refused is the same.
    private nonisolated func rest(_ seconds: Double, after failure: Failure, token: String?) async {
        guard failure.code == .unauthorized, let renewedToken else { return await clock.sleep(seconds) }
        var left = seconds
        while left > 0, renewedToken() == token, !Task.isCancelled {
            await clock.sleep(min(left, Self.tokenInterval))
            left -= Self.tokenInterval
        }
    }

    /// - Returns: seconds to wait.
    private func endured(
        _ failure: Failure, _ way: Way, faults: Int, since: Double, isBlink: Bool
    ) async throws(Failure) -> Double {
        // One reason at a time: of two that are met by turns the first one stands until it is over.
        if reason == nil || way == reasonWay && reason?.code != failure.code {
            (reason, reasonWay) = (failure, way)
            isSaid = false
        }
        let isReason = way == reasonWay && reason?.code == failure.code
        if isReason, !isSaid, failure.code != .backendUnreachable || !isBlink {
            isSaid = true
            await say(failure.message)
        }
        // Whoever renews the token may need a while: that is waited for as a backend that is away is.
        let mayMend = failure.remedy == .retryLater || failure.code == .unauthorized && renewedToken != nil
        let isForAPerson = !mayMend && faults >= Self.personFaultMax
        // While others get through, the run has no reason to end.
        let idle = clock.seconds - max(since, lastSuccess[way] ?? since)
        let isOverdue = patience.map { idle >= $0 } ?? false
        if isForAPerson || isOverdue {
            verdict = failure
            throw failure
        }
        var random = random
        // Who refuses may know better when to come back.
        return max(
            policy.backoff.delay(faults: faults, using: &random), min(failure.retryAfter ?? 0, Self.retryAfterMax))
    }

    /// The run ends with this.
    func giveUp(_ failure: Failure) { if verdict == nil { verdict = failure } }
}
