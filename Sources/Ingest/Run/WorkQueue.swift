import Vocabulary

/// Which item may do its next stage now. Pure.
struct WorkQueue: Sendable {
    /// An item that is not over.
    struct Item: Sendable, Equatable {
        var id: ItemID
        var state: ItemState
        var intent = Intent.run
        /// Of the original, as it was picked.
        var bytes = 0
        /// When the original was last changed, in nanoseconds since 1970.
        var modified: Int64 = 0
        /// A person has asked for it; what an inbox has found comes after that.
        var isAsked = false
    }
    private enum Stage: Int, CaseIterable {
        case staging, preparing, uploading, uploadingSmall, polling, cancelling
    }
    private struct Entry {
        let id: ItemID
        let isSmall: Bool
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
        /// The disk has no room for it at present.
        var lacksRoom = false
    }
    /// Seconds between two looks at an item while events would tell of its end: they are hints, one may get lost, and none tells how far it is.
    static let watchIntervals = 2.0...15.0
    /// Looks a second at all of them together, as far as the intervals allow.
    static let looksPerSecond = 2.0
    /// Seconds between two looks at an item, whatever events say.
    static let hintSpacing = 0.2

    private let bounds: IngestBounds
    private let order: QueueOrder
    /// In the order in which they are worked on. Gone through whole whenever something has happened, so they stand side by side.
    private var entries: [Entry] = []
    /// Why items lack room; nil where none does.
    private var noRoom: Failure?
    /// Events come.
    private var isLive = false

    init(bounds: IngestBounds, order: QueueOrder = .chosen) {
        self.bounds = bounds
        self.order = order
    }

    /// What will go on by itself: all but what a person has paused. Lazy, since whoever asks at each wake is content with the first.
    var unfinished: some Collection<Item> {
        entries.lazy.filter { $0.intent != .paused || $0.running != nil }
            .map { Item(id: $0.id, state: $0.state, intent: $0.intent) }
    }
    /// Whether the backend is, or soon will be, at work on an item.
    var awaitsBackend: Bool { entries.contains { $0.state == .uploading || $0.state == .processing } }
    func pollCount(_ id: ItemID) -> Int { entries.first { $0.id == id }?.pollCount ?? 0 }

    /// Items that are worked on although somebody has paused or cancelled them.
    var unwanted: [ItemID] {
        entries.filter { entry in
            guard let running = entry.running else { return false }
            return entry.intent == .paused || entry.intent == .cancelled && running != .cancelling
        }.map(\.id)
    }

    /// There is no room for an item, and nothing else is left to do that could free some.
    var stuckFailure: Failure? {
        guard let noRoom, entries.contains(where: \.lacksRoom), !entries.contains(where: canGoOn) else { return nil }
        return noRoom
    }

    private func canGoOn(_ entry: Entry) -> Bool {
        entry.running != nil || entry.intent == .cancelled || entry.intent == .run && !entry.lacksRoom
    }

    /// Takes up what is new in the catalog, and drops what is over.
    /// - Parameter items: in the order of picking.
    mutating func refresh(_ items: [Item], now: Double) {
        var known = Dictionary(entries.map { ($0.id, $0) }, uniquingKeysWith: { first, _ in first })
        let present = order.sorted(items).map { item in
            let fresh = Entry(
                id: item.id, isSmall: IngestBounds.isSmall(item.bytes), state: item.state, intent: item.intent,
                notBefore: now)
            guard var entry = known.removeValue(forKey: item.id) else { return fresh }
            if entry.running != nil {
                entry.intent = item.intent
                return entry
            }
            return entry.state == item.state && entry.intent == item.intent ? entry : fresh
        }
        // What is over, but is still being worked on, has its end to tell.
        entries = present + entries.filter { known[$0.id] != nil && $0.running != nil }
    }

    /// An event only makes that an item is looked at sooner; what is so, the backend says when it is asked.
    mutating func heard(_ news: EventFeed.News, now: Double) {
        let hasGoneQuiet = isLive && !news.isLive
        isLive = news.isLive
        guard hasGoneQuiet || news.everything || !news.items.isEmpty else { return }
        for index in entries.indices {
            let isNamed = news.everything || news.items.contains(entries[index].id)
            // The backend may be done with an item before its last answer has been written down here.
            if isNamed, entries[index].state == .uploading, entries[index].running != nil {
                entries[index].isHinted = true
            }
            guard entries[index].state == .processing else { continue }
            if isNamed {
                entries[index].isHinted = entries[index].running != nil
                entries[index].notBefore = min(
                    entries[index].notBefore, max(now, entries[index].lookedAt + Self.hintSpacing))
            }
            if hasGoneQuiet { entries[index].notBefore = min(entries[index].notBefore, now + PollPolicy().delayMax) }
        }
    }

    /// - Returns: items to start now; they count as running until `advanced`.
    mutating func takeDue(now: Double) -> [ItemID] {
        var running = Stage.allCases.map { _ in 0 }
        // By their places: this is done at each wake, and to copy an entry costs more than to look at it.
        for index in entries.indices {
            if let stage = entries[index].running { running[stage.rawValue] += 1 }
        }
        var due: [ItemID] = []
        for index in entries.indices {
            guard entries[index].running == nil, entries[index].intent != .paused, entries[index].notBefore <= now
            else { continue }
            let stage = Self.stage(
                entries[index].state, entries[index].intent, isSmall: entries[index].isSmall)
            if stage == .staging, entries[index].lacksRoom { continue }
            guard running[stage.rawValue] < limit(stage) else { continue }
            running[stage.rawValue] += 1
            entries[index].running = stage
            due.append(entries[index].id)
        }
        return due
    }

    /// - Parameter item: as the catalog has it now; nil when it is over.
    mutating func advanced(_ id: ItemID, _ outcome: ItemPipeline.Outcome, item: Item?, now: Double) {
        guard let index = entries.firstIndex(where: { $0.id == id }) else { return }
        var entry = entries[index]
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
        case .noRoom(let failure):
            entry.lacksRoom = true
            noRoom = failure
        case .moved, .finished, .stopped: break
        }
        entry.isHinted = false
        if item != nil { entries[index] = entry } else { entries.remove(at: index) }
        // Whatever ends may have freed room.
        if case .finished = outcome, noRoom != nil {
            noRoom = nil
            for index in entries.indices { entries[index].lacksRoom = false }
        }
    }

    private var watchInterval: Double {
        let watched = Double(entries.count { $0.state == .processing })
        return min(max(watched / Self.looksPerSecond, Self.watchIntervals.lowerBound), Self.watchIntervals.upperBound)
    }

    private func limit(_ stage: Stage) -> Int {
        switch stage {
        case .staging: bounds.stagingMax
        case .preparing: bounds.preparingMax
        case .uploading: bounds.uploadingMax
        case .uploadingSmall: bounds.uploadingSmallMax
        case .polling: bounds.pollingMax
        case .cancelling: bounds.cancellingMax
        }
    }

    private static func stage(_ state: ItemState, _ intent: Intent, isSmall: Bool) -> Stage {
        if intent == .cancelled { return .cancelling }
        return switch state {
        case .picked: .staging
        case .staged, .preparing: .preparing
        case .uploading: isSmall ? .uploadingSmall : .uploading
        case .processing, .ready, .rejected, .failed, .cancelled, .missing: .polling
        }
    }
}

extension WorkQueue.Item {
    init(_ item: ItemRow) {
        self.init(id: item.id, state: item.state, intent: item.intent)
    }
}
