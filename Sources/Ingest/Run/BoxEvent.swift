public import Vocabulary

/// What happens while the box works: enough for a progress bar an item, and for plain lines.
public enum BoxEvent: Sendable {
    case item(ItemProgress)
    /// Why nothing moves at all; nil when it does again.
    case waiting(String?)
    /// Another process works this home; this one looks on until its items are finished.
    case following(process: Int?)
    /// The other process has gone; this one works now.
    case tookOver
    /// Something worth a line.
    case note(String)
}

/// How far an item is.
public struct ItemProgress: Sendable, Equatable {
    public var id: ItemID
    public var name: String
    public var state: ItemState
    /// 0 to 1 of the present state; nil where nothing is known. Never back within a state.
    public var fraction: Double?
    /// Bytes that are sent, and how many of them the store has acknowledged.
    public var bytes: Int
    public var confirmedBytes: Int
    /// Bytes a second, smoothed.
    public var rate: Double?
    /// Only once it is stable.
    public var secondsLeft: Double?
    public var waiting: String?
    public var reason: Reason?

    public init(id: ItemID, name: String, state: ItemState) {
        self.id = id
        self.name = name
        self.state = state
        bytes = 0
        confirmedBytes = 0
    }
}
