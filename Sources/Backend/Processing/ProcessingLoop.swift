import Synchronization
import Vocabulary

/// Claims jobs and carries them out, several at once, until it is stopped.
actor ProcessingLoop {
    struct Settings: Sendable {
        /// Jobs at once.
        var laneCount = 2
        /// Seconds for which a claim holds without a heartbeat.
        var lease = 60.0
        /// Seconds between looks at the ledger when nothing says that there is work.
        var idle = 1.0
        var policy = RetryPolicy()
        var keepsLocation = false
        var thumbnailSizes = ThumbSettings.standardSizes
    }

    private let ledger: any Ledger
    private let store: any BlobStore
    private let workFolder: String
    private let media: MediaWork
    private let progress: ProgressBoard
    private let running: RunningJobs
    private let disk: DiskQueue
    private let settings: Settings
    private let clock: @Sendable () -> Timestamp
    private let log: @Sendable (String) -> Void
    private let bell: Bell
    /// Something has happened to an item of this owner.
    private let tell: @Sendable (Owner) -> Void
    private var lanes: [Task<Void, Never>] = []

    init(
        ledger: any Ledger, store: any BlobStore, workFolder: String, media: MediaWork, progress: ProgressBoard,
        running: RunningJobs, disk: DiskQueue, settings: Settings, clock: @escaping @Sendable () -> Timestamp,
        bell: Bell,
        tell: @escaping @Sendable (Owner) -> Void, log: @escaping @Sendable (String) -> Void
    ) {
        self.ledger = ledger
        self.store = store
        self.workFolder = workFolder
        self.media = media
        self.progress = progress
        self.running = running
        self.disk = disk
        self.settings = settings
        self.clock = clock
        self.bell = bell
        self.tell = tell
        self.log = log
    }

    func start() {
        guard lanes.isEmpty else { return }
        for _ in 0..<settings.laneCount {
            let rings = bell.listen()
            lanes.append(Task { await self.runLane(rings) })
        }
    }

    /// Running jobs are given back; their attempts do not count.
    func stop() async {
        for lane in lanes { lane.cancel() }
        for lane in lanes { await lane.value }
        lanes = []
    }

    private nonisolated func runLane(_ rings: AsyncStream<Void>) async {
        var rings = rings.makeAsyncIterator()
        while !Task.isCancelled {
            do throws(Failure) {
                while !Task.isCancelled {
                    let now = clock()
                    guard let job = try await ledger.claim(now: now, leaseUntil: now.adding(seconds: settings.lease))
                    else { break }
                    // The next one may be runnable too.
                    bell.ring()
                    try await carryOut(job)
                }
            } catch { log("processing: \(error)") }
            guard await rings.next() != nil else { return }
        }
    }

    private nonisolated func carryOut(_ job: ClaimedJob) async throws(Failure) {
        let execution = JobExecution(
            job: job, ledger: ledger, store: store, workFolder: workFolder, media: media.of(job.item.owner),
            progress: progress, disk: disk, keepsLocation: settings.keepsLocation,
            thumbnailSizes: settings.thumbnailSizes,
            clock: clock)
        let work = Task<Result<JobExecution.Ending, Failure>, Never> {
            do throws(Failure) { return .success(try await execution.run()) } catch { return .failure(error) }
        }
        let cancel: @Sendable () -> Void = { work.cancel() }
        running.begin(job.item.id, epoch: job.epoch, cancel)
        let heartbeat = Task { await keepLease(of: job, while: work) }
        let result = await withTaskCancellationHandler {
            await work.value
        } onCancel: {
            work.cancel()
        }
        heartbeat.cancel()
        await heartbeat.value
        running.end(job.item.id, epoch: job.epoch)
        defer {
            progress.clear(job.item.id)
            tell(job.item.owner)
        }
        try await finish(job, result)
    }

    /// A worker that has lost its lease stops: another one may be at it.
    private nonisolated func keepLease(
        of job: ClaimedJob, while work: Task<Result<JobExecution.Ending, Failure>, Never>
    ) async {
        while true {
            do { try await Task.sleep(for: .seconds(settings.lease / 3)) } catch { return }
            let until = clock().adding(seconds: settings.lease)
            // A ledger that does not answer may do so before the lease runs out.
            guard let isHeld = try? await ledger.heartbeat(job.item.id, epoch: job.epoch, leaseUntil: until), !isHeld
            else { continue }
            work.cancel()
            return
        }
    }

    private nonisolated func finish(_ job: ClaimedJob, _ result: Result<JobExecution.Ending, Failure>)
        async throws(Failure)
    {
        let (id, epoch, now) = (job.item.id, job.epoch, clock())
        switch result {
        case .success(.publish(let manifest)):
            try await settle(manifest, try await ledger.publish(manifest, item: id, epoch: epoch, now: now))
        case .success(.reject(let reason, let manifest)):
            try await settle(
                manifest, try await ledger.reject(reason, manifest: manifest, item: id, epoch: epoch, now: now))
        case .success(.damaged(let upload)):
            let key = upload.blob.map { "\($0)" } ?? "its object"
            log(
                upload.verifiedAt == nil
                    ? "processing: upload \(upload.id) of item \(id) arrived damaged; it has to come again"
                    : "processing: upload \(upload.id) of item \(id) was verified, but the store does not have \(key) as it was; it has to come again, and until then nothing of it is removed"
            )
            // Replaced meanwhile: the new bytes are looked at at once.
            if try await !ledger.recordDamaged(upload.id, key: upload.blob, item: id, epoch: epoch, now: now) {
                _ = try await ledger.giveBack(id, epoch: epoch, runnableAt: now)
            }
        case .success(.leaseLost): break
        case .failure(let failure): try await follow(failure, job, now)
        }
    }

    private nonisolated func follow(_ failure: Failure, _ job: ClaimedJob, _ now: Timestamp) async throws(Failure) {
        let (id, epoch) = (job.item.id, job.epoch)
        if Task.isCancelled {
            _ = try await ledger.giveBack(id, epoch: epoch, runnableAt: now)
            return
        }
        // Stopped because the item is gone, or another worker has it: there is nothing to say.
        if failure.code == .cancelled,
            try await !ledger.heartbeat(id, epoch: epoch, leaseUntil: now.adding(seconds: settings.lease))
        {
            return
        }
        log("processing: item \(id), attempt \(job.attempt): \(failure)")
        switch settings.policy.step(after: failure, failureCount: job.failureCount + 1, attempt: job.attempt) {
        case .retry(let seconds):
            _ = try await ledger.retry(id, epoch: epoch, failure: failure, runnableAt: now.adding(seconds: seconds))
        case .wait(let seconds):
            _ = try await ledger.giveBack(id, epoch: epoch, runnableAt: now.adding(seconds: seconds))
        case .reject(let reason):
            _ = try await ledger.reject(reason, manifest: .empty, item: id, epoch: epoch, now: now)
        }
    }

    /// What was made under a lease that is lost has no row: its keys are this epoch's own, so the bytes may go.
    private nonisolated func settle(_ manifest: Manifest, _ isInstalled: Bool) async throws(Failure) {
        guard !isInstalled else { return }
        for blob in manifest.blobs { try await store.remove(blob.key) }
    }
}

/// Tells all who listen that there may be something to do. Rings that nobody has heard yet count as one.
final class Bell: Sendable {
    private let listeners = Mutex<[AsyncStream<Void>.Continuation]>([])

    func listen() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        listeners.withLock { $0.append(continuation) }
        return stream
    }
    func ring() { for listener in listeners.withLock({ $0 }) { listener.yield() } }
}
