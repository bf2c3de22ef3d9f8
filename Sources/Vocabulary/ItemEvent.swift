/// What an event says of an item: `data` of the event stream. A hint to look at the item, never a fact to act on.
public struct ItemEvent: Codable, Sendable, Hashable {
    public var itemID: ItemID
    public var shoot: String
    public var generation: Int
    public var state: BackendItemState
    public var reason: Reason?
    public init(itemID: ItemID, shoot: String, generation: Int, state: BackendItemState, reason: Reason? = nil) {
        self.itemID = itemID
        self.shoot = shoot
        self.generation = generation
        self.state = state
        self.reason = reason
    }
    enum CodingKeys: String, CodingKey {
        case shoot, generation, state, reason
        case itemID = "item_id"
    }

    /// The name of such an event on the wire.
    public static let name = "item"
    /// Seconds between two signs of life on a stream on which nothing happens.
    public static let heartbeatInterval = 15.0
    /// Told instead of events that are no longer in the log: everything has to be looked at.
    public static let resetName = "reset"
}
