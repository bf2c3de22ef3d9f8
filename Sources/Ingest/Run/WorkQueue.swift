import Vocabulary

/// Which item may do its next stage now. Pure.
struct WorkQueue: Sendable {
    /// An item that is not over.
    struct Item: Sendable, Equatable {
        var id: ItemID
        var state: ItemState
        var intent = Intent.run
    }
    private enum Stage: Hashable { case staging, preparing, uploading, polling, cancelling }
    private struct Entry {
        var state: ItemState
        var intent: Intent
        /// Seconds on the clock before which nothing is to be done.
        var notBefore = 0.0
        var pollCount = 0
        /// What is being done for it.
        var running: Stage?
        /// An event came while it was being looked at.
        var isHinted = false
        var lookedAt = -Double.infinity
    }
    /// Seconds between two looks at an item while events would tell of its end: they are hints, one may get lost, and none tells how far it is.
    static let watchIntervals = 2.0...15.0
    /// Looks a second at all of them together, as far as the intervals allow.
    static let looksPerSecond = 2.0
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

    /// What will go on by itself: all but what a person has paused.
    var unfinished: [Item] {
        order.compactMap { id in
            guard let entry = entries[id], entry.intent != .paused || entry.running != nil else { return nil }
            return Item(id: id, state: entry.state, intent: entry.intent)
        }
    }
    /// Whether the backend is, or soon will be, at work on an item.
    var awaitsBackend: Bool { entries.values.contains { $0.state == .uploading || $0.state == .processing } }
    func pollCount(_ id: ItemID) -> Int { entries[id]?.pollCount ?? 0 }

    /// Items that are worked on although somebody has paused or cancelled them.
    var unwanted: [ItemID] {
        order.filter { id in
            guard let entry = entries[id], let running = entry.running else { return false }
            return entry.intent == .paused || entry.intent == .cancelled && running != .cancelling
        }
    }

    /// The disk is full and nothing is on its way that could free room.
    var stuckFailure: Failure? {
        guard let noRoom, !entries.values.contains(where: canFreeRoom) else { return nil }
        return noRoom
    }

    private func canFreeRoom(_ entry: Entry) -> Bool {
        entry.running != nil || entry.intent == .cancelled || entry.intent == .run && entry.state != .picked
    }

    /// Takes up what is new in the catalog, and drops what is over.
    mutating func refresh(_ items: [Item], now: Double) {
        let known = Set(items.map(\.id))
        for id in order where !known.contains(id) && entries[id]?.running == nil { entries[id] = nil }
        for item in items {
            guard let entry = entries[item.id] else {
                entries[item.id] = Entry(state: item.state, intent: item.intent, notBefore: now)
                continue
            }
            if entry.running != nil {
                entries[item.id]?.intent = item.intent
            } else if entry.state != item.state || entry.intent != item.intent {
                entries[item.id] = Entry(state: item.state, intent: item.intent, notBefore: now)
            }
        }
        order = items.map(\.id) + order.filter { !known.contains($0) && entries[$0] != nil }
    }

    /// An event only makes that an item is looked at sooner; what is so, the backend says when it is asked.
    mutating func heard(_ news: EventFeed.News, now: Double) {
        let hasGoneQuiet = isLive && !news.isLive
        isLive = news.isLive
        for id in news.everything ? order : order.filter(news.items.contains) {
            guard var entry = entries[id], entry.state == .processing else { continue }
            entry.isHinted = entry.running != nil
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
        for entry in entries.values { if let stage = entry.running { running[stage, default: 0] += 1 } }
        var due: [ItemID] = []
        for id in order {
            guard var entry = entries[id], entry.running == nil, entry.intent != .paused, entry.notBefore <= now else {
                continue
            }
            let stage = Self.stage(entry)
            if stage == .staging, noRoom != nil { continue }
            guard running[stage, default: 0] < limit(stage) else { continue }
            running[stage, default: 0] += 1
            entry.running = stage
            entries[id] = entry
            due.append(id)
        }
        return due
    }

    /// - Parameter item: as the catalog has it now; nil when it is over.
    mutating func advanced(_ id: ItemID, _ outcome: ItemPipeline.Outcome, item: Item?, now: Double) {
        guard var entry = entries[id] else { return }
        entry.running = nil
        if let item, item.state != entry.state || item.intent != entry.intent {
            entry.state = item.state
            entry.intent = item.intent
            entry.pollCount = 0
        }
        entry.notBefore = now
        switch outcome {
        case .later(let delay):
            entry.notBefore = now + delay
            if entry.state == .processing { entry.pollCount += 1 }
        case .watched(let delay):
            entry.notBefore = now + (isLive ? max(delay, watchInterval) : delay)
            entry.lookedAt = now
            if entry.isHinted { entry.notBefore = now + Self.hintSpacing }
            entry.pollCount += 1
        case .noRoom(let failure): noRoom = failure
        case .moved, .finished, .stopped: break
        }
        entry.isHinted = false
        // Whatever ends may have freed room.
        if case .finished = outcome { noRoom = nil }
        guard item != nil else {
            entries[id] = nil
            order.removeAll { $0 == id }
            return
        }
        entries[id] = entry
    }

    private var watchInterval: Double {
        let watched = Double(entries.values.count { $0.state == .processing })
        return min(max(watched / Self.looksPerSecond, Self.watchIntervals.lowerBound), Self.watchIntervals.upperBound)
    }

    private func limit(_ stage: Stage) -> Int {
        switch stage {
        case .staging: bounds.stagingMax
        case .preparing: bounds.preparingMax
        case .uploading: bounds.uploadingMax
        case .polling: bounds.pollingMax
        case .cancelling: bounds.cancellingMax
        }
    }

    private static func stage(_ entry: Entry) -> Stage {
        if entry.intent == .cancelled { return .cancelling }
        return switch entry.state {
        case .picked: .staging
        case .staged, .preparing: .preparing
        case .uploading: .uploading
        case .processing, .ready, .rejected, .failed, .cancelled, .missing: .polling
        }
    }
}

extension WorkQueue.Item {
    init(_ item: ItemRow) {
        self.init(id: item.id, state: item.state, intent: item.intent)
    }
}
