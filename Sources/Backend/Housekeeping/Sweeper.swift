import Vocabulary

/// Keeps house: what has run out, what lost its row, what was left by a process that died. Never touches what a row names. What cannot be removed
/// keeps nobody from the rest: each object and session is handled on its own.
struct Sweeper: Sendable {
    let ledger: any Ledger
    let store: any BlobStore
    let sealing: Sealing
    let policy: RetryPolicy
    let clock: @Sendable () -> Timestamp
    var events = EventLogBounds()
    let log: @Sendable (String) -> Void
    var wake: @Sendable () -> Void = {}
    /// Uploads that have come in whole and are not finished become items.
    var finishReceived: @Sendable () async throws(Failure) -> Void = {}
    /// Of one object or session.
    private let attempts: Attempts
    /// Of a whole step, while the store is away.
    private let steps: Attempts
    private let doubt: LedgerDoubt
    private var strays: Strays { Strays(ledger: ledger) }

    init(
        ledger: any Ledger, store: any BlobStore, sealing: Sealing, policy: RetryPolicy,
        clock: @escaping @Sendable () -> Timestamp, events: EventLogBounds = EventLogBounds(),
        log: @escaping @Sendable (String) -> Void = { _ in }, wake: @escaping @Sendable () -> Void = {},
        finishReceived: @escaping @Sendable () async throws(Failure) -> Void = {}
    ) {
        (self.ledger, self.store, self.sealing, self.policy) = (ledger, store, sealing, policy)
        (self.clock, self.events, self.log, self.wake) = (clock, events, log, wake)
        self.finishReceived = finishReceived
        attempts = Attempts(firstDelay: 60, delayMax: 3600, log: log)
        steps = Attempts(firstDelay: 1, delayMax: 60, log: log)
        doubt = LedgerDoubt(log: log)
    }

    /// Rows looked at in one transaction.
    private static let pageSize = 1000
    /// Things that may fail in one go; the rest waits for the next.
    private static let failedMax = 20

    /// Before anything else runs. Whatever the store does not let be removed stays.
    func start() async throws(Failure) {
        try await store.removeLeftovers()
        try await ledger.sweep(now: clock(), isRestart: true, policy: policy)
        await step("look for what was missing") { () throws(Failure) in try await restoreFound() }
        let leftOver = await leftOver()
        await lookAtSessions()
        await step("remove what nobody names") { () throws(Failure) in try await removeAll(leftOver) }
        await removeDoomed()
        await finish()
    }

    func sweep() async throws(Failure) {
        try await ledger.sweep(now: clock(), isRestart: false, policy: policy)
        try await ledger.trimEvents(events, now: clock())
        // What is left over is told from what is just coming at the start only.
        if !doubt.hasLooked { _ = await leftOver() }
        await removeDoomed()
        await lookAtSessions()
        await finish()
    }

    private func step(_ work: String, _ body: () async throws(Failure) -> Void) async {
        _ = try? await steps.attempt(work, unless: { _ in false }, body)
    }

    private func finish() async {
        await step("finish what has come whole") { () throws(Failure) in try await finishReceived() }
    }

    // MARK: Decided

    /// The rows went first, so a removal that is cut short is made good by the next one.
    func removeDoomed() async {
        guard doubt.mayRemove else { return }
        await step("remove what was given up") { () throws(Failure) in
            try await endDoomedSessions()
            try await removeDoomedBlobs()
        }
    }

    private func endDoomedSessions() async throws(Failure) {
        var (last, failed): (UploadID?, Int) = (nil, 0)
        while failed < Self.failedMax {
            let page = try await ledger.doomedSessions(after: last, limit: Self.pageSize)
            for session in page where failed < Self.failedMax {
                switch try await end(session) {
                case .done: try await ledger.forgetDoomed(session)
                case .failed: failed += 1
                case .postponed: break
                }
            }
            guard let end = page.last, page.count == Self.pageSize else { return }
            last = end.upload
        }
    }

    private func removeDoomedBlobs() async throws(Failure) {
        var (last, failed): (BlobKey?, Int) = (nil, 0)
        while failed < Self.failedMax {
            let page = try await ledger.doomedBlobs(after: last, limit: Self.pageSize)
            var removed: [BlobKey] = []
            for key in page where failed < Self.failedMax {
                let outcome: Attempts.Outcome
                do throws(Failure) { outcome = try await remove(key) } catch {
                    try await forget(removed)
                    throw error
                }
                if outcome == .done { removed.append(key) }
                if outcome == .failed { failed += 1 }
            }
            try await forget(removed)
            guard let end = page.last, page.count == Self.pageSize else { return }
            last = end
        }
    }

    private func forget(_ keys: [BlobKey]) async throws(Failure) {
        if !keys.isEmpty { try await ledger.forgetDoomed(keys) }
    }

    private func remove(_ key: BlobKey) async throws(Failure) -> Attempts.Outcome {
        try await attempts.attempt("remove \(key)") { () throws(Failure) in try await store.remove(key) }
    }

    private func end(_ session: StoreSession) async throws(Failure) -> Attempts.Outcome {
        try await attempts.attempt("end the session \(session.folderName) \(session.storeName ?? "")") {
            () throws(Failure) in try await store.end(session, hasObject: try await ledger.hasObject(of: session))
        }
    }

    // MARK: Under way

    /// Finishes what the store has finished without our row, and ends what it holds without one.
    func lookAtSessions() async {
        await step("look at the sessions of the store") { () throws(Failure) in
            let underway = try await store.underway()
            // A session's row comes before it, so one without an open row is left over, or another ledger's.
            var leftOver: [StoreSession] = []
            for session in underway.sessions where try await !ledger.isOpen(session) {
                if try await strays.standing(of: session) == .unknown {
                    doubt.raise("A session of \(session.folderName)")
                }
                leftOver.append(session)
            }
            for write in underway.writes {
                guard let key = write.key, try await strays.standing(of: key) == .unknown else { continue }
                doubt.raise("The unfinished \(key)")
            }
            if doubt.mayRemove { try await end(leftOver, underway.writes) }
            if try await sealing.finishLost(present: Set(underway.sessions), attempts) > 0 { wake() }
        }
    }

    private func end(_ sessions: [StoreSession], _ writes: [StoreWrite]) async throws(Failure) {
        for session in sessions { _ = try await end(session) }
        for write in writes {
            if let key = write.key {
                // One that is still wanted: who makes it deals with what an earlier try has left. One with a row may be made of just this.
                let isWanted = try await strays.standing(of: key) == .needed
                let hasRow = try await ledger.blob(key) != nil
                if isWanted || hasRow { continue }
            }
            _ = try await attempts.attempt("end the unfinished \(write.name) \(write.storeName)") {
                () throws(Failure) in try await store.end(write)
            }
        }
    }

    // MARK: Only at the start

    /// What was not found once may be there after all: another store had answered, or it was brought back.
    private func restoreFound() async throws(Failure) {
        for suspect in try await ledger.suspects(limit: Self.pageSize) {
            _ = try await attempts.attempt("look for \(suspect.key)") { () throws(Failure) in
                guard try await store.size(suspect.key) == suspect.size,
                    try await ledger.restore(suspect, now: clock())
                else { return }
                log("upload \(suspect.upload) is there again, as \(suspect.key): it is read once more")
            }
        }
    }

    /// An object comes before its row, so only while no request and no job is under way can it be told that one has none.
    /// - Returns: what is left over; a part of it where there is very much, or the store does not list all.
    private func leftOver() async -> [BlobKey] {
        var leftOver: [BlobKey] = []
        await step("look for what nobody names") { () throws(Failure) in
            try await store.eachObject { key throws(Failure) in
                guard try await ledger.blob(key) == nil else { return }
                switch try await strays.standing(of: key) {
                case .needed, .foreign: return
                case .unknown: doubt.raise("\(key)")
                case .leftOver: if leftOver.count < Self.leftOverMax { leftOver.append(key) }
                }
            }
            doubt.looked()
        }
        return leftOver
    }
    private static let leftOverMax = 10_000

    private func removeAll(_ keys: [BlobKey]) async throws(Failure) {
        var failed = 0
        for key in keys where failed < Self.failedMax && doubt.mayRemove {
            if try await remove(key) == .failed { failed += 1 }
        }
    }
}
