import Files
public import Vocabulary

/// The ingest box: takes picks, and brings them to the backend.
public actor Box {
    private let settings: IngestSettings
    private let catalog: Catalog
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
        return Box(settings: settings, catalog: try await Catalog.open(home: home), staging: staging)
    }

    /// Writes down what is to be taken. Copies nothing yet; `run` does.
    public func enrol(_ request: PickRequest) async throws(Failure) -> EnrolReport {
        let enrolment = Enrolment(
            catalog: catalog, staging: staging, clock: settings.clock, random: settings.random)
        return try await enrolment.enrol(request)
    }

    /// When `run` returns.
    public enum RunEnd: Sendable {
        /// Nothing is left to do.
        case idle
        /// These items are at their ends.
        case itemsFinal([ItemID])
        /// Never by itself.
        case stopped
    }

    /// Works all unfinished items of the home. Where another process does that already, looks on until these items are finished, and takes
    /// over when the other one goes.
    /// - Throws: `cancelled` when the surrounding Swift task is; what is everybody's fault once patience is over. Nothing is lost then: the
    ///   next run goes on.
    public func run(
        until end: RunEnd, events: @escaping @Sendable (BoxEvent) -> Void
    ) async throws(Failure) {
        let watch = RunWatch(catalog: catalog, clock: settings.clock, end: end, events: events)
        guard let lock = try await watch.lock(home: settings.home) else { return }
        try await work(until: end, events: events)
        withExtendedLifetime(lock) {}
    }

    private func work(until end: RunEnd, events: @escaping @Sendable (BoxEvent) -> Void) async throws(Failure) {
        let retries = RetryPolicy()
        let weather = Weather(
            clock: settings.clock, patience: settings.patience, policy: retries, random: settings.random
        ) { events(.waiting($0)) }
        let pipeline = ItemPipeline(
            catalog: catalog, staging: staging, media: settings.media,
            client: BackendClient(address: settings.server, token: settings.token, transport: settings.transport),
            weather: weather, board: TransferBoard(clock: settings.clock, events: events), settings: settings,
            retries: retries)
        let runner = Runner(pipeline: pipeline, bounds: settings.bounds, clock: settings.clock)
        try await runner.run { unfinished in
            switch end {
            case .idle: unfinished.isEmpty
            case .itemsFinal(let items): !unfinished.contains { items.contains($0) }
            case .stopped: false
            }
        }
    }

    // MARK: Looking

    /// - Parameter ids: nil for all, in the order in which they were picked.
    public func items(_ ids: [ItemID]? = nil) async throws(Failure) -> [ItemStatus] {
        var statuses: [ItemStatus] = []
        if let ids {
            for id in ids {
                guard let item = try await catalog.item(id) else { continue }
                statuses.append(try await catalog.status(item))
            }
        } else {
            for item in try await catalog.items() { statuses.append(try await catalog.status(item)) }
        }
        return statuses
    }

    /// - Throws: `not-found`.
    public func show(_ id: ItemID) async throws(Failure) -> ItemDetail {
        guard let item = try await catalog.item(id) else {
            throw Failure(.notFound, "There is no item “\(id)”: `rushes status` lists them.")
        }
        let uploads = try await catalog.uploads(of: id)
        let files = try await catalog.files(of: id).map { file in
            let upload = uploads.first { $0.role == file.role && $0.name == file.name }
            return ItemDetail.File(
                role: file.role, name: file.name, bytes: file.bytes, sha256: file.sha256,
                stagedPath: file.state == .staged ? staging.path(of: file) : nil, uploadState: upload?.state,
                confirmedSHA256: upload?.confirmedSHA256)
        }
        return ItemDetail(
            status: try await catalog.status(item), source: item.source.description, attempts: item.attempts,
            probe: item.probe, document: item.document, files: files)
    }
}
