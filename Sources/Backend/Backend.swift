import Files
public import HTTPServer
import MediaJobs
public import Vocabulary

/// The server: API, processing and housekeeping over one data folder. `rushes serve` runs it, and `rushes ingest` does so in its own process
/// when no other server is named.
public actor Backend {
    public nonisolated let address: ListenAddress

    private var lock: FileLock?
    private let server: HTTPServer
    private let parts: BackendParts
    private var beating: Task<Void, Never>?
    private var housekeeping: Task<Void, Never>?

    /// Seconds for which the end waits at most for a store to remove what nobody names any more; the next start goes on with it.
    private static let lastRemovalMax = 5.0
    static let ledgerName = "ledger.sqlite"
    static let keyName = "signing-key"
    static let lockName = "lock"
    static let workName = "work"

    private init(lock: FileLock, server: HTTPServer, parts: BackendParts) {
        self.lock = lock
        self.server = server
        self.parts = parts
        address = server.address
    }

    /// - Throws: `already-running` when another process serves this folder.
    public static func start(_ settings: BackendSettings) async throws(Failure) -> Backend {
        try await start(settings, media: .running(settings.media))
    }

    static func start(
        _ settings: BackendSettings, media: MediaWork, processing: ProcessingLoop.Settings = ProcessingLoop.Settings(),
        streams: EventStreams.Settings = EventStreams.Settings(), eventLog: EventLogBounds = EventLogBounds()
    ) async throws(Failure) -> Backend {
        let folder = settings.dataFolder
        try Files.makeFolder(folder)
        guard let lock = try FileLock.acquire(folder + "/" + lockName) else {
            throw Failure(
                .alreadyRunning, "Another Rushes is serving this folder already: use it, or stop it first.",
                detail: "process \(FileLock.holder(folder + "/" + lockName).map(String.init) ?? "unknown")")
        }
        let ledger = try await SQLiteLedger.open(folder + "/" + ledgerName)
        let entrance = Entrance()
        // A store may be away for long: whoever comes meanwhile is told so.
        let early = settings.store == nil ? nil : try listen(settings, entrance)
        do throws(Failure) {
            let parts = try BackendParts(
                settings, media: media, processing: processing, streams: streams, eventLog: eventLog, ledger: ledger,
                store: try await openStore(settings, ledger))
            try await parts.sweeper.start()
            // Before the first request, so that none of its rings is missed.
            let rings = parts.chores.listen()
            entrance.open(parts.api)
            let server: HTTPServer
            if let early { server = early } else { server = try listen(settings, entrance) }
            let backend = Backend(lock: lock, server: server, parts: parts)
            await backend.run(Housekeeping(parts, clock: settings.clock, log: settings.log), rings)
            return backend
        } catch {
            await early?.stop()
            throw error
        }
    }

    private static func listen(_ settings: BackendSettings, _ entrance: Entrance) throws(Failure) -> HTTPServer {
        try HTTPServer.start(settings.listen, bounds: settings.bounds, handler: entrance)
    }

    private func run(_ house: Housekeeping, _ rings: AsyncStream<Void>) async {
        await parts.loop.start()
        beating = Task { [events = parts.events] in await events.keepBeating() }
        housekeeping = Task { await house.run(rings) }
    }

    /// Lets requests under way end, gives running jobs back, and lets go of the folder. May be called more than once.
    public func stop() async {
        housekeeping?.cancel()
        beating?.cancel()
        parts.events.stop()
        await server.stop()
        // What a connection that is cut had brought is being kept.
        await parts.tus.locks.stop()
        await parts.loop.stop()
        await housekeeping?.value
        await beating?.value
        (housekeeping, beating) = (nil, nil)
        if lock != nil { await removeTheLast() }
        lock = nil
    }

    /// What lost its row since the last look: nobody may come to look again for long.
    private func removeTheLast() async {
        let removal = Task { [sweeper = parts.sweeper] in await sweeper.removeDoomed() }
        let limit = Task {
            try? await Task.sleep(for: .seconds(Self.lastRemovalMax))
            removal.cancel()
        }
        await removal.value
        limit.cancel()
    }

    nonisolated var tus: TusDoor { parts.tus }
    /// Event streams that are open.
    nonisolated var streamCount: Int { parts.events.count }
}
