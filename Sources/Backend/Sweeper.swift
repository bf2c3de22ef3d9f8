import Vocabulary

/// Keeps house: what has run out, what lost its row, what was left by a process that died. Never touches what a row names.
struct Sweeper: Sendable {
    let ledger: any Ledger
    let store: any BlobStore
    let sealing: Sealing
    let policy: RetryPolicy
    let clock: @Sendable () -> Timestamp
    var log = EventLogBounds()
    var wake: @Sendable () -> Void = {}
    /// Uploads that have come in whole and are not finished become items.
    var finishReceived: @Sendable () async throws(Failure) -> Void = {}

    /// Objects removed in one go; the rest waits for the next sweep.
    private static let removedMax = 1000

    /// Before anything else runs.
    func start() async throws(Failure) {
        try await store.removeLeftovers()
        try await ledger.sweep(now: clock(), isRestart: true, policy: policy)
        try await removeDoomed()
        try await lookAtSessions()
        try await removeLostObjects()
        try await finishReceived()
    }

    func sweep() async throws(Failure) {
        try await ledger.sweep(now: clock(), isRestart: false, policy: policy)
        try await ledger.trimEvents(log, now: clock())
        try await removeDoomed()
        try await lookAtSessions()
        try await finishReceived()
    }

    /// The rows went first, so a removal that is cut short is made good by the next sweep.
    func removeDoomed() async throws(Failure) {
        let keys = try await ledger.doomedBlobs(limit: Self.removedMax)
        guard !keys.isEmpty else { return }
        for key in keys { try await store.remove(key) }
        try await ledger.forgetDoomed(keys)
    }

    /// Finishes what the store has finished without our row, and ends what it holds without one.
    func lookAtSessions() async throws(Failure) {
        let sessions = try await store.sessions()
        // A session's row comes before it, so one without an open row is left over.
        for session in sessions where try await !ledger.isOpen(session) { try await store.end(session) }
        if try await sealing.finishLost(present: Set(sessions)) > 0 { wake() }
    }

    /// An object comes before its row, so only while no request and no job is under way does one without a row count as lost.
    private func removeLostObjects() async throws(Failure) {
        for key in try await store.keys() where try await ledger.blob(key) == nil {
            if let tail = key.asTail, try await ledger.signedParts(tail.session).contains(tail.part) { continue }
            try await store.remove(key)
        }
    }
}
