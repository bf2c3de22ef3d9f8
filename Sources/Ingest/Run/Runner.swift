import Files
import Vocabulary

/// Works all unfinished items of a home, each stage with its own bound, until there is nothing left to do. The order is that of picking; an
/// item that fails or waits holds up no other.
struct Runner: Sendable {
    let pipeline: ItemPipeline
    let bounds: IngestBounds
    let clock: BoxClock
    let feed: EventFeed

    /// Seconds between two looks at what other processes have enrolled.
    static let refreshInterval = 0.5
    /// Seconds that the loop sleeps at most while something may become due.
    static let tickMax = 0.25

    private enum Wake: Sendable {
        case tick
        case advanced(ItemID, ItemPipeline.Outcome)
    }

    /// - Parameter isDone: given the unfinished items; asked whenever something has changed.
    func run(isDone: @escaping @Sendable ([(id: ItemID, state: ItemState)]) -> Bool) async throws(Failure) {
        try await recover()
        var queue = WorkQueue(bounds: bounds)
        queue.refresh(try await pipeline.catalog.runnable(), now: clock.seconds)
        var version = try await pipeline.catalog.version()
        var refreshedAt = clock.seconds
        var failure: Failure?
        await withTaskGroup(of: Wake.self) { group in
            var isTicking = false
            while true {
                if failure == nil { failure = await pipeline.weather.verdict }
                if failure == nil, Task.isCancelled { failure = Failure(.cancelled, "Stopped.") }
                if failure != nil { break }
                if isDone(queue.unfinished) { break }
                queue.heard(feed.take(isWanted: queue.awaitsBackend), now: clock.seconds)
                for id in queue.takeDue(now: clock.seconds) {
                    let polls = queue.pollCount(id)
                    group.addTask { .advanced(id, await pipeline.advance(id, pollCount: polls)) }
                }
                if let stuck = queue.stuckFailure {
                    try? await pipeline.catalog.waiting(stuck.message)
                    failure = stuck
                    break
                }
                if !isTicking {
                    isTicking = true
                    let clock = clock
                    group.addTask {
                        await clock.sleep(Self.tickMax)
                        return .tick
                    }
                }
                do throws(Failure) {
                    switch await group.next() {
                    case .tick?:
                        isTicking = false
                        if clock.seconds - refreshedAt >= Self.refreshInterval {
                            refreshedAt = clock.seconds
                            let present = try await pipeline.catalog.version()
                            if present != version {
                                version = present
                                queue.refresh(try await pipeline.catalog.runnable(), now: clock.seconds)
                            }
                        }
                    case .advanced(let id, let outcome)?:
                        let state = try await pipeline.catalog.item(id)?.state
                        queue.advanced(id, outcome, state: state, now: clock.seconds)
                    case nil: break
                    }
                } catch { failure = error }
            }
            group.cancelAll()
        }
        if let failure { throw failure }
    }

    // MARK: Recovery

    /// Makes good of what a killed process left: half-written files go, whole ones stay, moves and releases are finished.
    private func recover() async throws(Failure) {
        let catalog = pipeline.catalog
        let staging = pipeline.staging
        try await catalog.waiting(nil)
        let names = try await FileWork.run { _ throws(Failure) in try Files.names(in: staging.root) }
        for name in names {
            // A folder whose item the catalog does not know is left alone: `check` tells of it.
            guard let id = ItemID(rawValue: name), let item = try await catalog.item(id) else { continue }
            let hasUploads = try await !catalog.uploads(of: item.id).isEmpty
            try await FileWork.run { _ throws(Failure) in
                try staging.removeUnfinished(of: item.id, keepsDerived: hasUploads)
            }
            if item.isMoved {
                for file in try await catalog.files(of: item.id) where file.state == .staged && file.role.isGiven {
                    try await pipeline.finishMove(file)
                }
            }
            if item.state.isFinal { try await pipeline.release(item.id) }
        }
    }
}

/// Which item may do its next stage now. Pure.
struct WorkQueue: Sendable {
    private enum Stage: Hashable { case staging, preparing, uploading, polling }
    private struct Entry {
        var state: ItemState
        /// Seconds on the clock before which nothing is to be done.
        var notBefore = 0.0
        var pollCount = 0
        var isRunning = false
        /// An event came while it was being looked at.
        var isHinted = false
        var lookedAt = -Double.infinity
    }
    /// Seconds between two looks at an item while events would tell of it: they are hints, and one may get lost.
    static let watchInterval = 15.0
    /// Seconds between two looks at an item, whatever events say.
    static let hintSpacing = 0.2

    private let bounds: IngestBounds
    private var order: [ItemID] = []
    private var entries: [ItemID: Entry] = [:]
    /// Set while the disk has no room for the next item.
    private var noRoom: Failure?
    /// Events come.
    private var isLive = false

    init(bounds: IngestBounds) { self.bounds = bounds }

    var unfinished: [(id: ItemID, state: ItemState)] {
        order.compactMap { id in entries[id].map { (id, $0.state) } }
    }
    /// Whether the backend is, or soon will be, at work on an item.
    var awaitsBackend: Bool { entries.values.contains { $0.state == .uploading || $0.state == .processing } }
    func pollCount(_ id: ItemID) -> Int { entries[id]?.pollCount ?? 0 }

    /// The disk is full and nothing is on its way that could free room.
    var stuckFailure: Failure? {
        guard let noRoom, !entries.values.contains(where: { $0.isRunning || $0.state != .picked }) else { return nil }
        return noRoom
    }

    /// Takes up what is new in the catalog, and drops what is finished.
    mutating func refresh(_ items: [(id: ItemID, state: ItemState)], now: Double) {
        let states = Dictionary(items.map { ($0.id, $0.state) }, uniquingKeysWith: { first, _ in first })
        for id in order where states[id] == nil && entries[id]?.isRunning == false { entries[id] = nil }
        for (id, state) in items {
            if entries[id] == nil {
                entries[id] = Entry(state: state, notBefore: now)
            } else if entries[id]?.isRunning == false, entries[id]?.state != state {
                entries[id] = Entry(state: state, notBefore: now)
            }
        }
        order = items.map(\.id) + order.filter { states[$0] == nil && entries[$0] != nil }
    }

    /// An event only makes that an item is looked at sooner; what is so, the backend says when it is asked.
    mutating func heard(_ news: EventFeed.News, now: Double) {
        let hasGoneQuiet = isLive && !news.isLive
        isLive = news.isLive
        for id in news.everything ? order : order.filter(news.items.contains) {
            guard var entry = entries[id], entry.state == .processing else { continue }
            entry.isHinted = entry.isRunning
            entry.notBefore = min(entry.notBefore, max(now, entry.lookedAt + Self.hintSpacing))
            entries[id] = entry
        }
        guard hasGoneQuiet else { return }
        for id in order where entries[id]?.state == .processing {
            guard let planned = entries[id]?.notBefore else { continue }
            entries[id]?.notBefore = min(planned, now + PollPolicy().delayMax)
        }
    }

    /// - Returns: items to start now; they count as running until `advanced`.
    mutating func takeDue(now: Double) -> [ItemID] {
        var running: [Stage: Int] = [:]
        for entry in entries.values where entry.isRunning { running[Self.stage(entry.state), default: 0] += 1 }
        var due: [ItemID] = []
        for id in order {
            guard var entry = entries[id], !entry.isRunning, entry.notBefore <= now else { continue }
            let stage = Self.stage(entry.state)
            if stage == .staging, noRoom != nil { continue }
            guard running[stage, default: 0] < limit(stage) else { continue }
            running[stage, default: 0] += 1
            entry.isRunning = true
            entries[id] = entry
            due.append(id)
        }
        return due
    }

    mutating func advanced(_ id: ItemID, _ outcome: ItemPipeline.Outcome, state: ItemState?, now: Double) {
        guard var entry = entries[id] else { return }
        entry.isRunning = false
        if let state, state != entry.state {
            entry.state = state
            entry.pollCount = 0
        }
        entry.notBefore = now
        switch outcome {
        case .later(let delay):
            entry.notBefore = now + delay
            if entry.state == .processing { entry.pollCount += 1 }
        case .watched(let delay):
            entry.notBefore = now + (isLive ? max(delay, Self.watchInterval) : delay)
            entry.lookedAt = now
            if entry.isHinted { entry.notBefore = now + Self.hintSpacing }
            entry.pollCount += 1
        case .noRoom(let failure): noRoom = failure
        case .moved, .finished, .stopped: break
        }
        entry.isHinted = false
        // Whatever ends may have freed room.
        if case .finished = outcome { noRoom = nil }
        guard let state, !state.isFinal else {
            entries[id] = nil
            order.removeAll { $0 == id }
            return
        }
        entries[id] = entry
    }

    private func limit(_ stage: Stage) -> Int {
        switch stage {
        case .staging: bounds.stagingMax
        case .preparing: bounds.preparingMax
        case .uploading: bounds.uploadingMax
        case .polling: bounds.pollingMax
        }
    }

    private static func stage(_ state: ItemState) -> Stage {
        switch state {
        case .picked: .staging
        case .staged, .preparing: .preparing
        case .uploading: .uploading
        case .processing, .ready, .rejected, .failed, .cancelled, .missing: .polling
        }
    }
}
