import Files
public import Vocabulary

/// Pausing, resuming, cancelling, retrying and discarding from any process: the intent is written down, and whoever works the home follows
/// it at once.
public struct BoxSteering: Sendable {
    private let catalog: Catalog
    private let staging: Staging
    private let home: String

    /// What became of one item.
    public struct Outcome: Sendable, Equatable {
        public var item: ItemID
        public var name: String
        /// In a few words that follow the name.
        public var words: String
        public var standing: Standing
        /// Whether the item is as it was asked to be.
        public var isDone: Bool { standing == .done }

        public enum Standing: Sendable { case done, underway, refused }
    }

    /// - Returns: nil where nothing has been taken yet.
    public static func open(home: String) async throws(Failure) -> BoxSteering? {
        guard try Home.isInUse(home) else { return nil }
        return BoxSteering(
            catalog: try await Catalog.open(home: home), staging: try Staging.open(home: home), home: home)
    }

    /// Writes the intent of the items.
    /// - Parameter ids: nil for all items for which the verb does something.
    /// - Returns: an outcome an item; a cancellation is only under way by then.
    public func steer(_ verb: SteeringVerb, _ ids: [ItemID]?) async throws(Failure) -> [Outcome] {
        var outcomes: [Outcome] = []
        for steered in try await catalog.steer(verb, ids) {
            let item = steered.item
            switch steered.decision {
            case .go:
                if verb == .discard { try await removeDiscarded(item.id) }
                let standing = verb == .cancel ? Outcome.Standing.underway : .done
                outcomes.append(
                    Outcome(item: item.id, name: item.name, words: Self.words(verb), standing: standing))
            case .already(let words):
                outcomes.append(Outcome(item: item.id, name: item.name, words: words, standing: .done))
            case .refuse(let words):
                outcomes.append(Outcome(item: item.id, name: item.name, words: words, standing: .refused))
            }
        }
        return outcomes
    }

    private static func words(_ verb: SteeringVerb) -> String {
        switch verb {
        case .pause: "paused"
        case .resume: "goes on"
        case .cancel: "cancelling"
        case .retry: "starts again"
        case .discard: "discarded"
        }
    }

    private func removeDiscarded(_ id: ItemID) async throws(Failure) {
        let staging = staging
        let files = try catalog.files(of: id).filter { $0.state == .discarded }
        try await FileWork.run { _ throws(Failure) in try staging.remove(files, of: id, withFolder: true) }
    }

    /// What `discard` would throw away of these items: files and their bytes.
    public func discardable(_ ids: [ItemID]?) async throws(Failure) -> (files: Int, bytes: Int) {
        var (count, bytes) = (0, 0)
        for item in try catalog.items() where ids?.contains(item.id) ?? true {
            guard item.isOver, item.state == .cancelled || item.state == .rejected else { continue }
            for file in try catalog.files(of: item.id) where file.state == .staged && file.role.isGiven {
                count += 1
                bytes += file.bytes ?? 0
            }
        }
        return (count, bytes)
    }

    // MARK: Waiting for cancellations

    /// Seconds between two looks.
    private static let interval = 0.1

    /// Looks on while the process that works the home cancels the items.
    /// - Returns: the items that are still to be cancelled when nobody works the home (any more) or the time is up.
    public func watchCancelling(_ ids: [ItemID], seconds: Double, clock: BoxClock = .system) async throws(Failure)
        -> [ItemID]
    {
        let end = clock.seconds + seconds
        while true {
            var left: [ItemID] = []
            for id in ids {
                if let item = try catalog.item(id), item.intent == .cancelled, !item.isOver { left.append(id) }
            }
            if left.isEmpty || clock.seconds >= end { return left }
            if try !FileLock.isHeld(RunWatch.lockPath(home)) { return left }
            await clock.sleep(Self.interval)
            if Task.isCancelled { return left }
        }
    }

    /// Whether anything of these items may be at the backend.
    public func concernsBackend(_ ids: [ItemID]) async throws(Failure) -> Bool {
        for id in ids where try !catalog.uploads(of: id).isEmpty { return true }
        return false
    }

    /// How cancelled items stand now.
    public func cancelOutcomes(_ ids: [ItemID]) async throws(Failure) -> [Outcome] {
        var outcomes: [Outcome] = []
        for id in ids {
            guard let item = try catalog.item(id) else { continue }
            let standing = item.state == .cancelled ? Outcome.Standing.done : .underway
            var outcome = Outcome(item: id, name: item.name, words: "cancelled", standing: standing)
            if outcome.isDone {
                let staged = try catalog.files(of: id).filter { $0.state == .staged }
                if !staged.isEmpty { outcome.words = "cancelled; its bytes stay in staging until retry or discard" }
            } else {
                outcome.words = item.waiting ?? "is \(item.state.rawValue)"
                if item.intent == .cancelled { outcome.words += "; it is completed by the next run" }
            }
            outcomes.append(outcome)
        }
        return outcomes
    }
}

extension Box {
    /// Cancels what is to be cancelled of these items, unless another process works the home: that one does it then.
    /// - Throws: what is everybody's fault once patience is over; the intent stays.
    public func carryOutCancelling(_ ids: [ItemID]) async throws(Failure) {
        guard let lock = try FileLock.acquire(RunWatch.lockPath(home)) else { return }
        let pipeline = pipeline(InboxPresence([])) { _ in }
        for id in ids {
            _ = await pipeline.advance(id, pollCount: 0)
            if let verdict = await pipeline.weather.verdict { throw verdict }
        }
        withExtendedLifetime(lock) {}
    }
}
