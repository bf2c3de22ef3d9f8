/// What the box finds around it.
public struct Surroundings: Sendable, Hashable {
    /// Whether each byte sent costs something.
    public var isMetered: Bool
    /// True too where there is no battery.
    public var isOnPower: Bool
    /// Minutes since midnight, by the clock on the wall.
    public var minute: Int

    public init(isMetered: Bool = false, isOnPower: Bool = true, minute: Int = 0) {
        self.isMetered = isMetered
        self.isOnPower = isOnPower
        self.minute = minute
    }
}

/// Whether a file may be sent now. Pure.
public struct ConditionPolicy: Sendable, Hashable {
    /// Bytes of a file that is sent on a metered network all the same.
    public var meteredBytesMax = 16 << 20
    public var needsPower = false
    /// Nil: at any time.
    public var hours: AllowedHours?

    public init() {}

    /// - Parameters:
    ///   - bytes: of the file.
    ///   - isUrgent: a person has said that it is not to wait.
    /// - Returns: why it waits, for people; nil when it may go.
    func waitingReason(_ around: Surroundings, bytes: Int, isUrgent: Bool) -> String? {
        if isUrgent { return nil }
        if let hours, !hours.contains(around.minute) { return "Waiting until \(hours.next(after: around.minute))" }
        if needsPower, !around.isOnPower { return "Waiting for mains power" }
        if around.isMetered, bytes > meteredBytesMax { return "Waiting for an unmetered network" }
        return nil
    }

    static let noRoom = "Waiting for free space"
}
