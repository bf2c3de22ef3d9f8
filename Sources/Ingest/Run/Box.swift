import Files
public import Vocabulary

/// The ingest box: takes picks, and brings them to the backend.
public actor Box {
    private let settings: IngestSettings
    let catalog: Catalog
    private let staging: Staging

    private init(settings: IngestSettings, catalog: Catalog, staging: Staging) {
        self.settings = settings
        self.catalog = catalog
        self.staging = staging
    }

    /// Opens the home, and makes it where there is none.
    public static func open(_ settings: IngestSettings) async throws(Failure) -> Box {
        let home = settings.home
        let staging = try await FileWork.run { _ throws(Failure) in
            try Files.makeFolder(home)
            return try Staging.open(home: home)
        }
        return Box(
            settings: settings, catalog: try await Catalog.open(home: home, now: settings.clock.now), staging: staging)
    }

    /// Opens a home in which something was taken, to look at it only: nothing of it has to be writable.
    public static func looking(_ settings: IngestSettings) async throws(Failure) -> Box {
        let catalog = try await Catalog.open(home: settings.home, isLooking: true)
        return Box(settings: settings, catalog: catalog, staging: Staging(root: settings.home + "/staging"))
    }

    /// Writes down what is to be taken. Copies nothing yet; `run` does.
    public func enrol(_ request: PickRequest) async throws(Failure) -> EnrolReport {
        try await RunWatch.requireSameBackend(home: settings.home, settings.serverName, settings.clock)
        return try await enrolment(catalog).enrol(request)
    }

    private func enrolment(_ catalog: Catalog) -> Enrolment {
        Enrolment(
            catalog: catalog, staging: staging, backend: client, server: settings.serverName, clock: settings.clock,
            random: settings.random)
    }

    /// When `run` returns.
    public enum RunEnd: Sendable {
        /// Nothing is left to do.
        case idle
        /// These items are at their ends.
        case itemsFinal([ItemID])
        /// All bytes of these items are at the backend, which goes on alone.
        case itemsHandedOver([ItemID])
        /// Never by itself.
        case stopped

        /// Asked at each wake of the queue.
        var isReached: @Sendable (WorkQueue) -> Bool {
            switch self {
            case .idle: return { $0.unfinished.isEmpty }
            case .itemsFinal(let items):
                let items = Set(items)
                return { !$0.unfinished.contains { items.contains($0.id) } }
            case .itemsHandedOver(let items):
                let items = Set(items)
                return { !$0.unfinished.contains { items.contains($0.id) && $0.state != .processing } }
            case .stopped: return { _ in false }
            }
        }
    }

    /// Works all unfinished items of the home. Where another process does that already, looks on until these items are finished, and takes
    /// over when the other one goes.
    /// - Throws: `cancelled` when the surrounding Swift task is; what is everybody's fault once patience is over. Nothing is lost then: the
    ///   next run goes on.
    public func run(
        until end: RunEnd, events: @escaping @Sendable (BoxEvent) -> Void
    ) async throws(Failure) {
        let watch = RunWatch(
            catalog: catalog, server: settings.serverName, clock: settings.clock, end: end, events: events)
        guard let lock = try await watch.lock(home: settings.home) else { return }
        try await work(until: end, events: events)
        withExtendedLifetime(lock) {}
    }

    private func work(until end: RunEnd, events: @escaping @Sendable (BoxEvent) -> Void) async throws(Failure) {
        let presence = InboxPresence(settings.inboxes.folders)
        let pipeline = pipeline(presence, events)
        let feed = EventFeed(client: client, clock: settings.clock, random: settings.random)
        let runner = Runner(
            pipeline: pipeline, bounds: settings.bounds, order: settings.order, clock: settings.clock, feed: feed)
        let inboxes = try await watchInboxes(presence, events)
        let listening = Task { await feed.run() }
        defer { listening.cancel() }
        do throws(Failure) {
            try await runner.run(until: end.isReached)
            await stop(inboxes)
        } catch {
            await stop(inboxes)
            throw error
        }
    }

    private func watchInboxes(
        _ presence: InboxPresence, _ events: @escaping @Sendable (BoxEvent) -> Void
    ) async throws(Failure) -> Task<Void, Never>? {
        guard !settings.inboxes.folders.isEmpty else { return nil }
        let catalog = try await Catalog.open(home: settings.home, now: settings.clock.now)
        let watch = InboxWatch(
            enrolment: enrolment(catalog), settings: settings.inboxes, presence: presence, clock: settings.clock,
            events: events)
        return Task { await watch.run() }
    }

    private func stop(_ inboxes: Task<Void, Never>?) async {
        inboxes?.cancel()
        await inboxes?.value
    }

    var home: String { settings.home }
    nonisolated var client: BackendClient {
        let transport = settings.throttle.map { ThrottledTransport(wrapped: settings.transport, throttle: $0) }
        return BackendClient(
            address: settings.server, token: settings.token, transport: transport ?? settings.transport)
    }

    func pipeline(_ presence: InboxPresence, _ events: @escaping @Sendable (BoxEvent) -> Void) -> ItemPipeline {
        let retries = RetryPolicy()
        let client = client
        let weather = Weather(
            clock: settings.clock, patience: settings.patience, policy: retries, random: settings.random,
            renewedToken: settings.renewedToken,
            isBackendWell: { await client.isReady() }
        ) { [catalog] reason in
            events(.waiting(reason))
            try? await catalog.waiting(reason)
        }
        return ItemPipeline(
            catalog: catalog, staging: staging, media: settings.media, client: client, weather: weather,
            board: TransferBoard(clock: settings.clock, events: events), presence: presence,
            gate: PartGate(inFlightMax: settings.bounds.partsInFlightMax), settings: settings,
            retries: retries)
    }

    // MARK: Looking

    private nonisolated var view: BoxView { BoxView(catalog: catalog, staging: staging) }

    /// - Parameter ids: nil for all, in the order in which they were picked.
    public func items(_ ids: [ItemID]? = nil) async throws(Failure) -> [ItemStatus] { try await view.items(ids) }
    /// Names of the sidecars without which these items went on, since they could not be read.
    public func leftOut(_ ids: [ItemID]) async throws(Failure) -> [String] {
        var names: [String] = []
        for id in ids {
            guard let item = try catalog.item(id) else { continue }
            names += try catalog.files(of: id).filter { $0.isLeftOut(of: item) }.map(\.name)
        }
        return names
    }
    /// - Throws: `not-found`.
    public func show(_ id: ItemID) async throws(Failure) -> ItemDetail { try await view.show(id) }
}
