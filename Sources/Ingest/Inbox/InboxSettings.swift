public import Files

/// The folders that `rushes run` watches; what is put there is moved away.
public struct InboxSettings: Sendable {
    public var folders: [RawPath]
    /// Seconds for which a file has to stay the same before it counts as finished.
    public var quietSeconds: Int
    /// The batch that files found at this moment belong to.
    public var shoot: @Sendable () -> String

    public static let quietSecondsDefault = 5
    public static let none = InboxSettings(folders: []) { "" }

    public init(folders: [RawPath], quietSeconds: Int = quietSecondsDefault, shoot: @escaping @Sendable () -> String) {
        self.shoot = shoot
        self.folders = folders
        self.quietSeconds = quietSeconds
    }
}
