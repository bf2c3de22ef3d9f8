import Dispatch
public import Files
import Synchronization
public import Vocabulary

/// Runs media work in processes of its own, so that a file which crashes, hangs or fools a decoder costs one attempt and nothing else.
///
/// Probes and thumbnails of one owner share processes, one job at a time in each; a transcode has a process to itself that ends after it. A
/// process that misbehaved, has grown or has done its number of jobs is replaced. Cancelling the task that waits kills the worker and removes what it had made.
public final class MediaJobs: Sendable {
    private let settings: MediaSettings
    private let memory: MemoryPlan
    private let places: Admission
    private let transcodePlaces: Admission
    /// Of the memory, for short work.
    private let shares: Admission
    private let pool: Mutex<Pool>

    private struct Pool {
        var idle: [IdleWorker] = []
        /// Processes that carry a job out, or are being started for one.
        var busy = 0
        var nextJob = 0
        var isShutDown = false

        /// The process for a job, which counts as busy from here on.
        /// - Returns: nil when a new one has to be started.
        mutating func take(of owner: MediaOwner?) -> IdleWorker? {
            busy += 1
            guard let owner else { return nil }
            return idle.lastIndex { $0.owner == owner }.map { idle.remove(at: $0) }
        }

        /// The idle process that has waited longest, when there are more processes than so many.
        mutating func takeSurplus(over count: Int) -> IdleWorker? {
            idle.isEmpty || busy + idle.count <= count ? nil : idle.removeFirst()
        }
    }
    private struct IdleWorker {
        var worker: WorkerProcess
        /// Whose files it has read. A file that took it over sees no other owner's.
        var owner: MediaOwner
        var jobCount: Int
    }

    public init(_ settings: MediaSettings) {
        self.settings = settings
        memory = MemoryPlan(
            memoryBytes: settings.limits.memoryBytes, processCountMax: settings.processCountMax)
        places = Admission(count: memory.processCount, waiterCountMax: MediaSettings.waiterCountMax)
        transcodePlaces = Admission(
            count: max(1, memory.processCount - 1), waiterCountMax: MediaSettings.waiterCountMax)
        shares = Admission(count: memory.processCount, waiterCountMax: MediaSettings.waiterCountMax)
        pool = Mutex(Pool())
    }

    // MARK: The three kinds of work

    /// A file that is what is wrong with it gives a report with a reason; everything else that goes wrong is thrown.
    /// - Parameters:
    ///   - name: the name by which people know the file, for messages.
    ///   - owner: whose file it is; processes are never shared between owners.
    public func probe(_ path: RawPath, name: String, owner: MediaOwner = .box) async throws(Failure) -> ProbeReport {
        let (result, _) = try await run(.probe, on: path, name: name, owner: owner, to: [:]) { _ in }
        guard case .probe(let report) = result else {
            preconditionFailure("the conversation checks the kind of result")
        }
        return report
    }

    public func probe(_ path: String, name: String, owner: MediaOwner = .box) async throws(Failure) -> ProbeReport {
        try await probe(RawPath(path), name: name, owner: owner)
    }

    /// - Parameters:
    ///   - paths: where each output goes. An older file there is replaced when the whole job has succeeded; a rejection or a failure
    ///     makes none of them.
    ///   - progress: called on a thread of the job's own.
    public func transcode(
        _ path: RawPath, name: String, owner: MediaOwner = .box, settings: TranscodeSettings,
        to paths: [OutputName: String],
        progress: @escaping @Sendable (MediaProgress) -> Void
    ) async throws(Failure) -> (TranscodeReport, [SealedFile]) {
        try await transcodePlaces.enter()
        defer { transcodePlaces.leave() }
        let (result, files) = try await run(
            .transcode(settings), on: path, name: name, owner: owner, to: paths, progress: progress)
        guard case .transcode(let report) = result else {
            preconditionFailure("the conversation checks the kind of result")
        }
        return (report, files)
    }

    public func thumb(
        _ path: RawPath, name: String, owner: MediaOwner = .box, settings: ThumbSettings, to paths: [OutputName: String]
    ) async throws(Failure) -> (ThumbReport, [SealedFile]) {
        let (result, files) = try await run(.thumb(settings), on: path, name: name, owner: owner, to: paths) { _ in }
        guard case .thumb(let report) = result else {
            preconditionFailure("the conversation checks the kind of result")
        }
        return (report, files)
    }

    /// With the outputs in a folder, named for what they are: `1080p.mp4`, `poster.jpg`.
    public func transcode(
        _ path: String, name: String, owner: MediaOwner = .box, settings: TranscodeSettings, into folder: String,
        progress: @escaping @Sendable (MediaProgress) -> Void
    ) async throws(Failure) -> (TranscodeReport, [SealedFile]) {
        let paths = Self.paths(of: settings.outputs, in: folder, extension: \.videoFileExtension)
        return try await transcode(
            RawPath(path), name: name, owner: owner, settings: settings, to: paths, progress: progress)
    }

    /// With the outputs in a folder, named for their size and format: `512.jpg`.
    public func thumb(
        _ path: String, name: String, owner: MediaOwner = .box, settings: ThumbSettings, into folder: String
    ) async throws(Failure) -> (ThumbReport, [SealedFile]) {
        let paths = Self.paths(of: settings.sizes.map(ThumbSettings.name(of:)), in: folder) { _ in
            settings.format.fileExtension
        }
        return try await thumb(RawPath(path), name: name, owner: owner, settings: settings, to: paths)
    }

    private static func paths(
        of names: [OutputName], in folder: String, extension ending: (OutputName) -> String
    ) -> [OutputName: String] {
        Dictionary(names.map { ($0, "\(folder)/\($0).\(ending($0))") }, uniquingKeysWith: { first, _ in first })
    }

    /// Ends the idle processes and takes no more work; a running job ends when its task is cancelled.
    public func shutDown() async {
        await onThreadOfItsOwn { [self] in
            let idle = pool.withLock { pool in
                pool.isShutDown = true
                defer { pool.idle = [] }
                return pool.idle
            }
            for idle in idle { idle.worker.child.stop() }
        }
    }

    // MARK: One job

    /// First with a share of the memory; what needs more waits until it can have all of it.
    private func run(
        _ work: MediaJob.Work, on path: RawPath, name: String, owner: MediaOwner, to paths: [OutputName: String],
        progress: @escaping @Sendable (MediaProgress) -> Void
    ) async throws(Failure) -> (MediaResult, [SealedFile]) {
        func attempt(_ bytes: Int, shares count: Int, mayAskForMore: Bool) async throws(Failure) -> Attempt {
            // Work that runs for hours has no share, so none waits for it.
            if count > 0 { try await shares.enter(count) }
            defer { if count > 0 { shares.leave(count) } }
            var limits = settings.limits
            limits.memoryBytes = bytes
            limits.mayAskForMore = mayAskForMore
            return try await run(
                work, within: limits, isAlone: count == memory.processCount, on: path, name: name, owner: owner,
                to: paths, progress: progress)
        }
        guard work.isShort else {
            return try await attempt(settings.limits.memoryBytes, shares: 0, mayAskForMore: false).result.get()
        }
        let first = try await attempt(
            memory.sharedBytes, shares: 1, mayAskForMore: memory.aloneBytes > memory.sharedBytes)
        guard first.asksForMore else { return try first.result.get() }
        return try await attempt(memory.aloneBytes, shares: memory.processCount, mayAskForMore: false).result.get()
    }

    private struct Attempt: Sendable {
        var result: Result<(MediaResult, [SealedFile]), Failure>
        /// The memory it was given is too little: the worker said so before it decoded, or took more and was ended.
        var asksForMore = false
    }

    private func run(
        _ work: MediaJob.Work, within limits: MediaLimits, isAlone: Bool, on path: RawPath, name: String,
        owner: MediaOwner, to paths: [OutputName: String], progress: @escaping @Sendable (MediaProgress) -> Void
    ) async throws(Failure) -> Attempt {
        try await places.enter()
        defer { places.leave() }
        let number = try pool.withLock { pool throws(Failure) in
            guard !pool.isShutDown else { throw Failure(.cancelled, "Stopped.") }
            pool.nextJob += 1
            return pool.nextJob
        }
        let job = MediaJob(id: number, file: name, work: work, limits: limits)
        let cancellation = Cancellation()
        return await withTaskCancellationHandler {
            await onThreadOfItsOwn { [self] in
                carryOut(
                    job, isAlone: isAlone, owner: owner, path: path, paths: paths, cancellation: cancellation,
                    progress: progress)
            }
        } onCancel: {
            cancellation.cancel()
        }
    }

    /// Whoever kills a process from outside does not mean the file: the job begins again, so often that nobody kills faster, and not for ever.
    private func carryOut(
        _ job: MediaJob, isAlone: Bool, owner: MediaOwner, path: RawPath, paths: [OutputName: String],
        cancellation: Cancellation, progress: (MediaProgress) -> Void
    ) -> Attempt {
        var restarts = 0
        while true {
            let attempt = tryOnce(
                job, isAlone: isAlone, owner: owner, path: path, paths: paths, cancellation: cancellation,
                progress: progress)
            guard case .failure(let failure) = attempt.result, failure.code == .mediaKilled,
                failure.remedy == .retryLater, restarts < settings.restartMax
            else { return attempt }
            restarts += 1
        }
    }

    private func tryOnce(
        _ job: MediaJob, isAlone: Bool, owner: MediaOwner, path: RawPath, paths: [OutputName: String],
        cancellation: Cancellation, progress: (MediaProgress) -> Void
    ) -> Attempt {
        let outputs = JobOutputs(paths: paths)
        do throws(Failure) {
            let input = try openInput(path)
            if cancellation.isCancelled { throw Failure(.cancelled, "Stopped.") }
            let current = try takeWorker(for: job, of: owner, isAlone: isAlone, cancellation)
            cancellation.attach(current.worker.child)
            let ending = current.worker.run(job, input: input, outputs: outputs, progress: progress)
            // Before the process may get another job, which a late cancelling would hit.
            cancellation.detach()
            giveBack(current, after: job, isReusable: ending.isReusable && !cancellation.isCancelled)
            if job.limits.mayAskForMore, case .failure(let failure) = ending.result, failure.code == .overBudget {
                outputs.discard()
                return Attempt(result: ending.result.map { ($0, []) }, asksForMore: true)
            }
            let result = try ending.result.get()
            if result.isRejection { outputs.discard() }
            return Attempt(result: .success((result, try outputs.commit())))
        } catch {
            outputs.discard()
            return Attempt(
                result: .failure(
                    cancellation.isCancelled ? Failure(.cancelled, "Stopped.", detail: error.description) : error))
        }
    }

    private func openInput(_ path: RawPath) throws(Failure) -> OpenFile {
        // Looked at before it is opened: opening a pipe would wait for its writer.
        guard let facts = try Files.facts(path) else {
            throw Failure(.sourceMissing, "“\(path)” does not exist.", detail: path.description)
        }
        guard facts.kind == .regular else {
            throw Failure(
                .sourceUnreadable, "“\(path)” is not a file: give the files inside, or another one.",
                detail: path.description)
        }
        return try OpenFile.reading(path)
    }

    // MARK: The processes

    private func takeWorker(
        for job: MediaJob, of owner: MediaOwner, isAlone: Bool, _ cancellation: Cancellation
    ) throws(Failure) -> IdleWorker {
        var taken = pool.withLock { $0.take(of: job.work.needsOwnProcess ? nil : owner) }
        if let idle = taken, !idle.worker.isFit(below: memory.idleBytesMax) {
            idle.worker.child.stop()
            taken = nil
        }
        // Idle processes make room for the busy ones.
        while let surplus = pool.withLock({ $0.takeSurplus(over: isAlone ? 1 : memory.processCount) }) {
            surplus.worker.child.stop()
        }
        if let taken { return taken }
        do throws(Failure) {
            let worker = try WorkerProcess.start(settings, file: job.file, cancellation: cancellation)
            return IdleWorker(worker: worker, owner: owner, jobCount: 0)
        } catch {
            pool.withLock { $0.busy -= 1 }
            throw error
        }
    }

    private func giveBack(_ used: IdleWorker, after job: MediaJob, isReusable: Bool) {
        let next = IdleWorker(worker: used.worker, owner: used.owner, jobCount: used.jobCount + 1)
        let mayStay =
            isReusable && !job.work.needsOwnProcess && next.jobCount < settings.jobsPerProcessMax
            && next.worker.isFit(below: memory.idleBytesMax)
        let isKept = pool.withLock { pool in
            let isKept = mayStay && !pool.isShutDown
            if isKept {
                pool.busy -= 1
                pool.idle.append(next)
            }
            return isKept
        }
        guard !isKept else { return }
        // It counts until it is gone: none is started in its place before that.
        used.worker.child.stop()
        pool.withLock { $0.busy -= 1 }
    }
}

/// Whose files a process reads: a backend has one for each owner of items.
public struct MediaOwner: Hashable, Sendable {
    public let rawValue: String
    public init(_ rawValue: String) { self.rawValue = rawValue }
    /// The person at this machine; what a backend takes from them over its Unix socket has the same owner, and may share processes.
    public static let box = MediaOwner("local")
}

extension MediaJob.Work {
    /// A transcode leaves much memory behind and may run for hours: its process ends with it.
    var needsOwnProcess: Bool {
        switch self {
        case .transcode: true
        case .probe, .thumb: false
        }
    }

    /// Probes and thumbnails are admitted by what they need; a transcode has its own bound.
    var isShort: Bool { !needsOwnProcess }
}

/// Runs a blocking body off Swift's pool, on a thread that a private queue brings.
private func onThreadOfItsOwn<Answer: Sendable>(_ body: @escaping @Sendable () -> Answer) async -> Answer {
    await withCheckedContinuation { continuation in
        DispatchQueue(label: "rushes.media-job").async { @Sendable in continuation.resume(returning: body()) }
    }
}
