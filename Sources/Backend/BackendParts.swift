import HTTPServer
import Vocabulary

/// What a backend consists of, each part built on those before it.
struct BackendParts: Sendable {
    /// There may be a job to do.
    let bell = Bell()
    /// There may be something to tidy up.
    let chores = Bell()
    /// Something may have happened in the store.
    let hint = Hint()
    let ledger: any Ledger
    let processing: ProcessingLoop.Settings
    let events: EventStreams
    let tus: TusDoor
    let sweeper: Sweeper
    let loop: ProcessingLoop
    let api: API

    init(
        _ settings: BackendSettings, media: MediaWork, processing: ProcessingLoop.Settings,
        streams: EventStreams.Settings, eventLog: EventLogBounds, ledger: any Ledger, store: any BlobStore
    ) throws(Failure) {
        var processing = processing
        processing.laneCount = settings.jobCount
        processing.keepsLocation = settings.keepsLocation
        processing.thumbnailSizes = settings.thumbnailSizes
        self.processing = processing
        self.ledger = ledger

        let (bell, chores, hint, log, clock) = (bell, chores, hint, settings.log, settings.clock)
        let workFolder = settings.dataFolder + "/" + Backend.workName
        let (progress, running, disk) = (ProgressBoard(), RunningJobs(), DiskQueue(width: API.diskWidth))
        let sealing = Sealing(ledger: ledger, store: store, clock: clock)
        let events = EventStreams(ledger: ledger, settings: streams, log: log)
        let tus = TusDoor(
            ledger: ledger, store: store, sealing: sealing, workFolder: workFolder, disk: disk, clock: clock,
            lifetime: settings.lifetimes.session,
            wake: { owner in
                bell.ring()
                events.ring(owner)
            }, removeDoomed: { chores.ring() }, log: log)
        sweeper = Sweeper(
            ledger: ledger, store: store, sealing: sealing, policy: processing.policy, clock: clock, events: eventLog,
            log: log, wake: { bell.ring() }, finishReceived: { () throws(Failure) in try await tus.finishAll() })
        loop = ProcessingLoop(
            ledger: ledger, store: store, workFolder: workFolder, media: media, progress: progress, running: running,
            disk: disk, settings: processing, clock: clock, bell: bell, tell: { events.ring($0) }, log: log)
        api = API(
            ledger: ledger, store: store, door: store as? DirectoryBlobStore, dataFolder: settings.dataFolder,
            signer: try URLSigner.open(settings.dataFolder + "/" + Backend.keyName), sealing: sealing,
            progress: progress, events: events, disk: disk, clock: clock, lifetimes: settings.lifetimes, log: log,
            wake: { bell.ring() },
            lookAtStore: {
                hint.give()
                chores.ring()
            }, removeDoomed: { chores.ring() }, running: running, tus: tus)
        (self.events, self.tus) = (events, tus)
    }
}
