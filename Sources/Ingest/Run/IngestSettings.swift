public import Curl
import Dispatch
import Foundation
import Synchronization
public import Vocabulary

/// How the box works.
public struct IngestSettings: Sendable {
    /// The home: catalog, staging, locks.
    public var home: String
    public var server: ServerAddress
    /// How the catalog remembers that server.
    public var serverName: String
    /// Asked for each request: a renewed token counts at once.
    public var token: @Sendable () throws(Failure) -> String?
    /// It may become another one during a run: that a token is refused is then something to wait for, and not the run's end.
    public var isTokenRenewed = false
    public var media: MediaWork
    /// How requests travel; tests put a lossy one here.
    public var transport: any UploadTransport
    /// When files are sent.
    public var conditions = ConditionPolicy()
    /// Asked again and again.
    public var surroundings: @Sendable () async -> Surroundings = { Surroundings() }
    /// How fast parts are sent; nil: as fast as they go.
    public var throttle: SendThrottle?
    public var bounds = IngestBounds()
    /// Which item comes first.
    public var order = QueueOrder.chosen
    /// Seconds for which nothing at all may get through before `run` gives up and says why; nil waits for ever.
    public var patience: Double? = 120
    /// Folders that a run until `stopped` watches.
    public var inboxes = InboxSettings.none
    public var clock = BoxClock.system
    public var random = BoxRandom.system

    public init(
        home: String, server: ServerAddress, media: MediaWork, transport: any UploadTransport = HTTPClient(),
        token: @escaping @Sendable () throws(Failure) -> String? = { () throws(Failure) -> String? in nil }
    ) {
        self.home = home
        self.server = server
        serverName =
            switch server {
            case .socket(let path): "unix:" + path
            case .remote(let url): url.hasSuffix("/") ? String(url.dropLast()) : url
            }
        self.media = media
        self.transport = transport
        self.token = token
    }

    /// The token as it is now; nil where it stays the same.
    var renewedToken: (@Sendable () -> String?)? {
        guard isTokenRenewed else { return nil }
        let token = token
        return { try? token() }
    }

    /// The name of the backend that a box has in its own home, wherever that lies.
    public static let ownServerName = "own"
}

/// How much at once.
public struct IngestBounds: Sendable, Hashable {
    /// Items being copied. A card is read fastest by one reader.
    public var stagingMax = 1
    public var preparingMax = 2
    /// Items of several parts being uploaded; each has up to `UploadStateMachine.inFlightMax` parts on their way.
    public var uploadingMax = 3
    /// Items of one part being uploaded. Each asks the backend three things before and after its part: so many that the line is full
    /// meanwhile, also where an answer takes ten times as long as a part.
    public var uploadingSmallMax = 24
    /// Parts of all items on their way at once: one more than a single file takes, so that something small never waits for a whole film.
    public var partsInFlightMax = UploadStateMachine.inFlightMax + 1
    /// Items being asked about at the backend at one moment.
    public var pollingMax = 4
    /// Items being cancelled.
    public var cancellingMax = 4
    /// Bytes of the disk that staging leaves free.
    public var spaceMarginBytes = 64 << 20
    public init() {}

    /// - Parameter bytes: of an item's original: whether that is one part.
    static func isSmall(_ bytes: Int) -> Bool { bytes <= PartLimits.bytesDefault }
}

/// Time as the box sees it.
public struct BoxClock: Sendable {
    /// Milliseconds since 1970.
    public var now: @Sendable () -> Int64
    /// Seconds on a clock that nobody sets: for how long something takes.
    public var steady: @Sendable () -> Double
    /// Seconds; returns early when the surrounding Swift task is cancelled.
    public var sleep: @Sendable (Double) async -> Void

    public init(
        now: @escaping @Sendable () -> Int64, steady: @escaping @Sendable () -> Double = systemSteady,
        sleep: @escaping @Sendable (Double) async -> Void
    ) {
        self.now = now
        self.steady = steady
        self.sleep = sleep
    }

    var seconds: Double { steady() }

    private static let origin = ContinuousClock.now
    public static let systemSteady: @Sendable () -> Double = { (ContinuousClock.now - origin) / .seconds(1) }

    public static let system = BoxClock(
        now: { Int64(Date().timeIntervalSince1970 * 1000) },
        sleep: { seconds in try? await Task.sleep(for: .seconds(seconds)) })
}

/// Chance as the box sees it: the same seed gives the same ids and delays.
public struct BoxRandom: RandomNumberGenerator, Sendable {
    private let draw: @Sendable () -> UInt64

    public init(_ draw: @escaping @Sendable () -> UInt64) { self.draw = draw }
    public mutating func next() -> UInt64 { draw() }

    public static let system = BoxRandom {
        var generator = SystemRandomNumberGenerator()
        return generator.next()
    }

    /// SplitMix64 (Steele, Lea and Flood 2014).
    public static func seeded(_ seed: UInt64) -> BoxRandom {
        let state = SeededState(seed)
        return BoxRandom { state.next() }
    }
}

private final class SeededState: Sendable {
    private let state: Mutex<UInt64>
    init(_ seed: UInt64) { state = Mutex(seed) }
    func next() -> UInt64 {
        state.withLock { state in
            state &+= 0x9E37_79B9_7F4A_7C15
            var z = state
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return z ^ (z >> 31)
        }
    }
}
