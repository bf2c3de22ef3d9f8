import Curl
import Files
public import HTTPServer
import MediaJobs
import Synchronization
public import Vocabulary

/// The server: API, processing and housekeeping over one data folder. `rushes serve` runs it, and `rushes ingest` does so in its own process
/// when no other server is named.
public actor Backend {
    public nonisolated let address: ListenAddress

    private var lock: FileLock?
    private let server: HTTPServer
    private let loop: ProcessingLoop
    private let events: EventStreams
    nonisolated let tus: TusDoor
    private let sweeper: Sweeper
    private var beating: Task<Void, Never>?
    private var housekeeping: Task<Void, Never>?

    private static let sweepSeconds = 60.0
    /// Seconds for which the end waits at most for a store to remove what nobody names any more; the next start goes on with it.
    private static let lastRemovalMax = 5.0
    static let ledgerName = "ledger.sqlite"
    static let keyName = "signing-key"
    static let lockName = "lock"
    static let workName = "work"

    private init(
        lock: FileLock, server: HTTPServer, loop: ProcessingLoop, events: EventStreams, tus: TusDoor,
        sweeper: Sweeper
    ) {
        self.lock = lock
        self.server = server
        self.loop = loop
        self.events = events
        self.tus = tus
        self.sweeper = sweeper
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
        let early =
            settings.store == nil
            ? nil : try HTTPServer.start(settings.listen, bounds: settings.bounds, handler: entrance)
        do throws(Failure) {
            return try await furnish(
                settings, media, processing, streams, eventLog, lock, ledger, entrance, early)
        } catch {
            await early?.stop()
            throw error
        }
    }

    private static func furnish(
        _ settings: BackendSettings, _ media: MediaWork, _ processing: ProcessingLoop.Settings,
        _ streams: EventStreams.Settings, _ eventLog: EventLogBounds, _ lock: FileLock, _ ledger: SQLiteLedger,
        _ entrance: Entrance, _ early: HTTPServer?
    ) async throws(Failure) -> Backend {
        let folder = settings.dataFolder
        var door: DirectoryBlobStore?
        let store: any BlobStore
        if let bucket = settings.store {
            store = try await openStore(bucket, ledger, settings)
        } else {
            let folderStore = try DirectoryBlobStore.open(folder)
            (door, store) = (folderStore, folderStore)
        }
        let bell = Bell()
        let chores = Bell()
        let progress = ProgressBoard()
        let running = RunningJobs()
        var processing = processing
        processing.laneCount = settings.jobCount
        processing.keepsLocation = settings.keepsLocation
        processing.thumbnailSizes = settings.thumbnailSizes
        let sealing = Sealing(ledger: ledger, store: store, clock: settings.clock)
        let disk = DiskQueue(width: API.diskWidth)
        let events = EventStreams(ledger: ledger, settings: streams, log: settings.log)
        let tus = TusDoor(
            ledger: ledger, store: store, sealing: sealing, workFolder: folder + "/" + workName, disk: disk,
            clock: settings.clock, lifetime: settings.lifetimes.session,
            wake: { owner in
                bell.ring()
                events.ring(owner)
            }, log: settings.log)
        let sweeper = Sweeper(
            ledger: ledger, store: store, sealing: sealing, policy: processing.policy, clock: settings.clock,
            log: eventLog, wake: { bell.ring() },
            finishReceived: { () throws(Failure) in try await tus.finishAll() })
        try await sweeper.start()
        let hint = Hint()
        // Before the first request, so that none of its rings is missed.
        let rings = chores.listen()
        let api = API(
            ledger: ledger, store: store, door: door, dataFolder: folder,
            signer: try URLSigner.open(folder + "/" + keyName), sealing: sealing,
            progress: progress, events: events, disk: disk, clock: settings.clock,
            lifetimes: settings.lifetimes,
            log: settings.log, wake: { bell.ring() },
            lookAtStore: {
                hint.give()
                chores.ring()
            }, removeDoomed: { chores.ring() }, running: running, tus: tus)
        let loop = ProcessingLoop(
            ledger: ledger, store: store, workFolder: folder + "/" + workName, media: media, progress: progress,
            running: running, settings: processing, clock: settings.clock,
            bell: bell,
            tell: { events.ring($0) },
            log: settings.log)
        entrance.open(api)
        let server: HTTPServer
        if let early {
            server = early
        } else {
            server = try HTTPServer.start(settings.listen, bounds: settings.bounds, handler: entrance)
        }
        let backend = Backend(lock: lock, server: server, loop: loop, events: events, tus: tus, sweeper: sweeper)
        await loop.start()
        await backend.keepHouse(
            Chores(bell: chores, rings: rings, hint: hint), bell, processing, clock: settings.clock, log: settings.log)
        return backend
    }

    private static func openStore(_ settings: S3Settings, _ ledger: any Ledger, _ backend: BackendSettings)
        async throws(Failure) -> S3BlobStore
    {
        var random = SystemRandomNumberGenerator()
        let proposal = String(UInt64.random(in: .min ... .max, using: &random), radix: 36)
        guard let prefix = try await ledger.storePrefix(orMake: proposal) else { throw LedgerFault.vanished }
        return try await S3BlobStore.openPatiently(
            S3Client(settings: settings, http: HTTPClient(), clock: backend.clock), prefix: prefix,
            workFolder: backend.dataFolder + "/" + workName, patience: backend.storePatience, log: backend.log)
    }

    /// Lets requests under way end, gives running jobs back, and lets go of the folder. May be called more than once.
    public func stop() async {
        housekeeping?.cancel()
        beating?.cancel()
        events.stop()
        await server.stop()
        // What a connection that is cut had brought is being kept.
        await tus.locks.stop()
        await loop.stop()
        await housekeeping?.value
        await beating?.value
        (housekeeping, beating) = (nil, nil)
        if lock != nil { await removeTheLast() }
        lock = nil
    }

    /// What lost its row since the last look: nobody may come to look again for long.
    private func removeTheLast() async {
        let removal = Task { [sweeper] in try? await sweeper.removeDoomed() }
        let limit = Task {
            try? await Task.sleep(for: .seconds(Self.lastRemovalMax))
            removal.cancel()
        }
        await removal.value
        limit.cancel()
    }

    /// Event streams that are open.
    nonisolated var streamCount: Int { events.count }

    private func keepHouse(
        _ chores: Chores, _ bell: Bell, _ processing: ProcessingLoop.Settings,
        clock: @escaping @Sendable () -> Timestamp, log: @escaping @Sendable (String) -> Void
    ) {
        let (events, sweeper) = (events, sweeper)
        beating = Task { await events.keepBeating() }
        housekeeping = Task {
            let ticking = Task {
                while true {
                    bell.ring()
                    do { try await Task.sleep(for: .seconds(processing.idle)) } catch { return }
                    chores.bell.ring()
                }
            }
            defer { ticking.cancel() }
            // This clock stands while the machine sleeps: waking up counts as a jump, and costs no lease either.
            let start = SuspendingClock.now
            var lastSweep = start
            var watch = ClockWatch(wall: clock(), steady: 0)
            for await _ in chores.rings {
                do throws(Failure) {
                    let now = clock()
                    if let step = watch.look(wall: now, steady: (SuspendingClock.now - start) / .seconds(1)) {
                        log("the clock was set by \(step) s")
                        try await sweeper.ledger.followClock(
                            by: step, leaseUntil: now.adding(seconds: processing.lease))
                    }
                    try await sweeper.removeDoomed()
                    if chores.hint.take() { try await sweeper.lookAtSessions() }
                    if SuspendingClock.now - lastSweep >= .seconds(Self.sweepSeconds) {
                        lastSweep = .now
                        try await sweeper.sweep()
                        events.ring(nil)
                    }
                } catch { log("housekeeping: \(error)") }
            }
        }
    }
}

/// When housekeeping looks: at each ring, of the clock or of somebody who knows that there is something to do.
private struct Chores {
    let bell: Bell
    let rings: AsyncStream<Void>
    let hint: Hint
}

/// Somebody says that something has happened in the store; looking at it once answers any number of them.
private final class Hint: Sendable {
    private let isGiven = Atomic<Bool>(false)
    func give() { isGiven.store(true, ordering: .relaxed) }
    func take() -> Bool { isGiven.exchange(false, ordering: .relaxed) }
}
