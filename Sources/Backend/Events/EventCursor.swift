import Vocabulary

/// Where a stream stands in an owner's log, and what is to be sent next. Pure.
struct EventCursor: Sendable, Hashable {
    /// Of the last event that was sent or passed over.
    private(set) var position: Int
    /// The client's place is not in this log (any more).
    private(set) var needsReset = false

    /// - Parameters:
    ///   - last: what the client says that it saw last, in its own words; nil for one that comes for the first time and only wants what is new.
    init(last: String?, log: EventSpan) {
        guard let last, !last.isEmpty else {
            position = log.last
            return
        }
        if let number = Int(last), (log.trimmedTo...log.last).contains(number) {
            position = number
        } else {
            position = log.last
            needsReset = true
        }
    }

    /// - Parameter events: of the owner, after `position`, in order.
    /// - Returns: those that are to be sent. Where some were trimmed meanwhile, only a reset is.
    mutating func take(_ events: [EventRow], shoot: String?) -> [EventRow] {
        guard let first = events.first, let last = events.last else { return [] }
        let isTorn = first.number != position + 1
        position = last.number
        if isTorn {
            needsReset = true
            return []
        }
        return events.filter { shoot == nil || $0.shoot == shoot }
    }

    mutating func resetWasSent() { needsReset = false }
}
