import Files
import Vocabulary

/// One process works a home at a time; the others look on.
struct RunWatch: Sendable {
    let catalog: Catalog
    /// The backend that this process would work with.
    let server: String
    let clock: BoxClock
    let end: Box.RunEnd
    let events: @Sendable (BoxEvent) -> Void

    /// Seconds between two looks.
    static let interval = 0.3

    /// - Returns: the runner's lock, as soon as nobody else holds it; nil when everything is finished before.
    /// - Throws: also what `requireSameBackend` does.
    func lock(home: String) async throws(Failure) -> FileLock? {
        let path = Self.lockPath(home)
        var said: [ItemID: ItemState] = [:]
        var isFollowing = false
        while true {
            if let lock = try FileLock.acquire(path, saying: server) {
                if isFollowing { events(.tookOver) }
                return lock
            }
            if !isFollowing {
                try await Self.requireSameBackend(home: home, server, clock)
                isFollowing = true
                events(.following(process: FileLock.holder(path)))
            }
            if try await look(&said) { return nil }
            await clock.sleep(Self.interval)
            if Task.isCancelled { throw Failure(.cancelled, "Stopped.") }
        }
    }

    static func lockPath(_ home: String) -> String { home + "/runner.lock" }

    /// Whoever works the home brings all of its items to one backend: another one that was asked for would be passed over in silence.
    /// - Throws: `already-running`.
    static func requireSameBackend(home: String, _ server: String, _ clock: BoxClock) async throws(Failure) {
        let path = lockPath(home)
        // Twice: whoever has just begun may not have come to say so.
        for look in 0..<2 {
            guard let other = FileLock.words(path), other != server, try FileLock.isHeld(path) else { return }
            if look == 0 { await clock.sleep(interval) }
        }
        let name = FileLock.words(path).map { $0 == IngestSettings.ownServerName ? "the backend in the home" : $0 }
        throw Failure(
            .alreadyRunning,
            "Another rushes\(FileLock.holder(path).map { " (process \($0))" } ?? "") works on this home with \(name ?? "another backend"): name the same one, or wait until it has ended.",
            detail: "\(server) was asked for")
    }

    private var endsAtHandover: Bool { if case .itemsHandedOver = end { true } else { false } }

    /// - Returns: whether nothing is left to wait for.
    private func look(_ said: inout [ItemID: ItemState]) async throws(Failure) -> Bool {
        var unfinished = 0
        let ids: [ItemID]
        switch end {
        case .idle, .stopped:
            ids =
                try catalog.open().map(\.id).filter { said[$0] == nil }
                + said.keys.filter { said[$0]?.isFinal == false }
        case .itemsFinal(let items), .itemsHandedOver(let items): ids = items
        }
        for id in ids where said[id]?.isFinal != true {
            guard let item = try catalog.item(id) else { continue }
            if !item.isOver, item.intent != .paused, !(endsAtHandover && item.state == .processing) {
                unfinished += 1
            }
            guard said[id] != item.state || !item.state.isFinal else { continue }
            said[id] = item.state
            let (total, confirmed) = try catalog.transferred(id)
            var progress = ItemProgress(id: id, name: item.name, state: item.state)
            progress.bytes = total
            progress.confirmedBytes = confirmed
            if item.state == .uploading, total > 0 { progress.fraction = Double(confirmed) / Double(total) }
            progress.waiting = item.waiting
            progress.reason = item.reason
            events(.item(progress))
        }
        if case .stopped = end { return false }
        return unfinished == 0
    }
}
