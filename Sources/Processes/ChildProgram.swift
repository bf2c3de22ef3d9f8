/// What to start and how: a value.
public struct ChildProgram: Sendable {
    public var path: String
    public var arguments: [String]
    /// The whole environment: nothing is inherited.
    public var environment: [String: String]

    /// The number under which the child finds its end of the channel.
    public static let channelDescriptor: Int32 = 3

    public init(path: String, arguments: [String] = [], environment: [String: String] = [:]) {
        self.path = path
        self.arguments = arguments
        self.environment = environment
    }
}

/// How a child ended.
public struct ChildExit: Sendable, Equatable {
    public enum How: Sendable, Equatable {
        case exited(Int32)
        case signalled(Int32)
    }
    public var how: How
    /// Milliseconds of processor time.
    public var cpuMilliseconds: Int
    /// Bytes of memory at its peak.
    public var peakBytes: Int

    public init(how: How, cpuMilliseconds: Int = 0, peakBytes: Int = 0) {
        self.how = how
        self.cpuMilliseconds = cpuMilliseconds
        self.peakBytes = peakBytes
    }
}
