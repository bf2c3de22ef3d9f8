import Synchronization
import Vocabulary

/// How far every item is, for people: collects what many threads report and says so, not more often than a person can read.
final class TransferBoard: Sendable {
    private struct Entry {
        var progress: ItemProgress
        var meter: ProgressMeter?
        /// Bytes handed to the network by part.
        var inFlight: [PartKey: Int] = [:]
        var saidAt = -Double.infinity
    }
    struct PartKey: Hashable {
        let upload: UploadID
        let number: Int
    }

    private let entries = Mutex<[ItemID: Entry]>([:])
    private let clock: BoxClock
    private let events: @Sendable (BoxEvent) -> Void
    /// Seconds between two events of one item whose state has not changed.
    static let interval = 0.1

    init(clock: BoxClock, events: @escaping @Sendable (BoxEvent) -> Void) {
        self.clock = clock
        self.events = events
    }

    /// The item is in this state now. Said at once when it is another one than before.
    func state(_ item: ItemRow, _ state: ItemState, reason: Reason? = nil, waiting: String? = nil) {
        update(item, always: true) { entry in
            if entry.progress.state != state { entry.progress.fraction = nil }
            entry.progress.state = state
            entry.progress.reason = reason
            entry.progress.waiting = waiting
            if state.isFinal || state == .processing { entry.meter = nil }
        }
    }

    /// Share of the present state, where that is not counted in uploaded bytes.
    func fraction(_ item: ItemRow, _ fraction: Double) {
        update(item) { $0.progress.fraction = max($0.progress.fraction ?? 0, min(1, fraction)) }
    }

    /// An upload begins, or goes on after a restart.
    func uploading(_ item: ItemRow, total: Int, confirmed: Int) {
        update(item, always: true) { entry in
            entry.meter = ProgressMeter(total: total, confirmed: confirmed)
            entry.inFlight = [:]
        }
    }

    /// - Parameter sent: bytes of a part handed to the network; nil when it is over.
    func sending(_ item: ItemRow, _ part: PartKey, _ sent: Int?) {
        update(item) { $0.inFlight[part] = sent }
    }

    /// - Parameter bytes: acknowledged beyond what was before.
    func acknowledged(_ item: ItemRow, bytes: Int) {
        update(item) { entry in
            guard let meter = entry.meter else { return }
            entry.meter?.update(confirmed: meter.confirmed + bytes, inFlight: 0, at: clock.seconds)
        }
    }

    func forget(_ id: ItemID) { entries.withLock { $0[id] = nil } }

    private func update(_ item: ItemRow, always: Bool = false, _ change: (inout Entry) -> Void) {
        let now = clock.seconds
        let progress: ItemProgress? = entries.withLock { entries in
            var entry =
                entries[item.id] ?? Entry(progress: ItemProgress(id: item.id, name: item.name, state: item.state))
            let before = entry.progress.state
            change(&entry)
            if var meter = entry.meter {
                meter.update(confirmed: meter.confirmed, inFlight: entry.inFlight.values.reduce(0, +), at: now)
                entry.meter = meter
                entry.progress.bytes = meter.total
                entry.progress.confirmedBytes = meter.confirmed
                entry.progress.rate = meter.rate
                entry.progress.secondsLeft = meter.secondsLeft
                entry.progress.fraction = meter.fraction
            } else {
                entry.progress.rate = nil
                entry.progress.secondsLeft = nil
            }
            let isDue = always || entry.progress.state != before || now - entry.saidAt >= Self.interval
            if isDue { entry.saidAt = now }
            entries[item.id] = entry
            return isDue ? entry.progress : nil
        }
        if let progress { events(.item(progress)) }
    }
}
