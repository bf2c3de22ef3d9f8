public import HTTPServer
public import MediaJobs
public import Vocabulary

/// How a backend is run.
public struct BackendSettings: Sendable {
    /// Everything that the backend keeps: ledger, blobs, signing key. One process at a time.
    public var dataFolder: String
    public var listen: ListenAddress
    /// Where blobs lie; nil: in the data folder.
    public var store: S3Settings?
    /// Seconds for which a store that is away at the start is waited for; nil waits for ever.
    public var storePatience: Double?
    public var media: MediaJobs
    /// Jobs at once.
    public var jobCount: Int
    /// Originals that are their own rendition may be served with the place where they were taken.
    public var keepsLocation: Bool
    /// Long sides of the thumbnails that a photo gets; one that the client has sent is not made again.
    public var thumbnailSizes: [Int]
    public var lifetimes: Lifetimes
    public var bounds: HTTPBounds
    public var clock: @Sendable () -> Timestamp
    /// A line for operators.
    public var log: @Sendable (String) -> Void

    /// In seconds.
    public struct Lifetimes: Sendable {
        /// Of a signed URL.
        public var url: Double
        /// Of a session, and of a complete upload that no item has taken.
        public var session: Double
        public init(url: Double = 3600, session: Double = 7 * 24 * 3600) {
            self.url = url
            self.session = session
        }
    }

    public init(
        dataFolder: String, listen: ListenAddress, store: S3Settings? = nil, media: MediaJobs, jobCount: Int = 2,
        keepsLocation: Bool = false, thumbnailSizes: [Int] = ThumbSettings.standardSizes,
        lifetimes: Lifetimes = Lifetimes(), bounds: HTTPBounds = HTTPBounds(),
        clock: @escaping @Sendable () -> Timestamp = Timestamp.system,
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) {
        self.dataFolder = dataFolder
        self.listen = listen
        self.store = store
        self.media = media
        self.jobCount = jobCount
        self.keepsLocation = keepsLocation
        self.thumbnailSizes = thumbnailSizes
        self.lifetimes = lifetimes
        self.bounds = bounds
        self.clock = clock
        self.log = log
    }
}
