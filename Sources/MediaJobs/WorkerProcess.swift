import Files
import Foundation
import Processes
import Vocabulary

/// A running `rushes-media`, one job at a time. Used by one thread at a time, which may block.
final class WorkerProcess: Sendable {
    let child: ChildProcess
    private let settings: MediaSettings
    private let memoryKillsAtStart = Machine.memoryKillCount

    private init(child: ChildProcess, settings: MediaSettings) {
        self.child = child
        self.settings = settings
    }

    /// Starts the program and waits for its hello.
    /// - Parameter cancellation: of the job that it is started for; it ends the waiting too.
    static func start(
        _ settings: MediaSettings, file: String, cancellation: Cancellation
    ) throws(Failure) -> WorkerProcess {
        let child = try ChildProcess.start(
            ChildProgram(
                path: settings.workerPath, arguments: settings.isWalledIn ? [] : [Confinement.absentArgument],
                environment: environment(ProcessInfo.processInfo.environment)))
        cancellation.attach(child)
        let worker = WorkerProcess(child: child, settings: settings)
        var watch = Watch(residentMax: MediaSettings.programBytes)
        var refusal: Failure?
        do throws(Breakdown) {
            let first = try worker.answer(before: .now + settings.startMax, watch: &watch)
            switch first {
            case .hello(MediaProtocol.version): break
            case .hello(let version): throw .brokeProtocol("version \(version), expected \(MediaProtocol.version)")
            // It has read nothing yet that could have fooled it.
            case .failure(job: MediaProtocol.startNumber, let failure): refusal = failure
            default: throw .noStart
            }
        } catch {
            switch error {
            case .brokeProtocol, .died: throw worker.failure(error, file: file, hasStarted: false)
            default: throw worker.failure(.noStart, file: file)
            }
        }
        if let refusal {
            child.stop()
            throw refusal
        }
        return worker
    }

    /// Nothing of ours reaches a process that parses media: no tokens, no home, no locale.
    static func environment(_ own: [String: String]) -> [String: String] {
        var environment = [
            "LANG": "C.UTF-8",
            // Each arena may promise 64 MiB of address space; decoder threads are few.
            "MALLOC_ARENA_MAX": "2",
            // Planes of a photo stay on the heap from one to the next, whose pages would else be cleared anew each time; larger pictures are
            // mapped, and gone at once.
            "MALLOC_MMAP_THRESHOLD_": "4194304",
            "MALLOC_TRIM_THRESHOLD_": "16777216",
            // A crash is an answer here; the backtracer would start a program and keep the crash waiting.
            "SWIFT_BACKTRACE": "enable=no",
        ]
        // Where the Swift libraries are, in a development build.
        if let path = own["LD_LIBRARY_PATH"] { environment["LD_LIBRARY_PATH"] = path }
        return environment
    }

    /// Idle, alive, with nothing to say, and not grown.
    func isFit(below bytesMax: Int) -> Bool {
        guard child.wait(until: .now) == .timeout, let bytes = child.residentBytes else { return false }
        return bytes <= min(settings.idleBytesMax, bytesMax)
    }

    /// How a job ended.
    struct Ending: Sendable {
        var result: Result<MediaResult, Failure>
        /// The process waits for the next job. It is gone otherwise.
        var isReusable: Bool
    }

    /// Carries out one job.
    func run(
        _ job: MediaJob, input: OpenFile, outputs: JobOutputs, progress: (MediaProgress) -> Void
    ) -> Ending {
        do throws(JobStop) {
            return Ending(
                result: try converse(job, input: input, outputs: outputs, progress: progress), isReusable: true)
        } catch {
            switch error {
            case .broken(let breakdown):
                return Ending(result: .failure(failure(breakdown, file: job.file)), isReusable: false)
            case .abandoned(let failure):
                child.stop()
                return Ending(result: .failure(failure), isReusable: false)
            }
        }
    }

    /// Why a conversation stopped before the worker's last word.
    private enum JobStop: Error {
        case broken(Breakdown)
        /// A fault on our side: the disk is full, say.
        case abandoned(Failure)
    }

    private func converse(
        _ job: MediaJob, input: OpenFile, outputs: JobOutputs, progress: (MediaProgress) -> Void
    ) throws(JobStop) -> Result<MediaResult, Failure> {
        let end = ContinuousClock.now + settings.jobTimeMax
        var conversation = try ours { () throws(Failure) in
            try child.limit(
                dataBytes: job.limits.memoryBytes + MediaSettings.programAddressBytes,
                moreCPUSeconds: settings.cpuSecondsMax,
                fileBytes: job.limits.outputBytesMax)
            return JobConversation(job, expecting: try job.work.expectedOutputs())
        }
        try send(.job(job), input.descriptor)
        var watch = Watch(
            residentMax: job.limits.memoryBytes
                + (job.work.isShort ? MemoryPlan.processBytes : MediaSettings.programBytes),
            interval: job.work.isShort ? MediaSettings.shortWorkWatchInterval : MediaSettings.watchInterval)
        watch.silence = SilenceWatch(
            silenceMax: settings.silenceMax, cpuTimeMax: settings.silentCPUTimeMax, now: .now, cpu: child.cpuTime)
        while true {
            let answer: WorkerAnswer
            do throws(Breakdown) { answer = try self.answer(before: end, watch: &watch) } catch { throw .broken(error) }
            switch conversation.received(answer) {
            case .open(let name):
                let file = try ours { () throws(Failure) in try outputs.open(name) }
                try send(.file(job: job.id, name: name), file.descriptor)
            case .store(let output):
                switch try ours({ () throws(Failure) in try outputs.store(output) }) {
                case .stored: try send(.stored(job: job.id, name: output.name), nil)
                case .broken(let how): throw .broken(.brokeProtocol(how))
                }
            case .report(let furthest): progress(furthest)
            case .nothing: break
            case .finish(let result): return .success(result)
            case .fail(let failure): return .failure(failure)
            case .kill(let how): throw .broken(.brokeProtocol(how))
            }
            if conversation.hasAdvanced { watch.silence?.gaveSign(now: .now, cpu: child.cpuTime) }
        }
    }

    private func ours<Answer>(_ body: () throws(Failure) -> Answer) throws(JobStop) -> Answer {
        do throws(Failure) { return try body() } catch { throw .abandoned(error) }
    }

    private func send(_ order: WorkerOrder, _ descriptor: Int32?) throws(JobStop) {
        let isSent = try ours { () throws(Failure) in
            let bytes = [UInt8](try JSON.encode(order))
            guard bytes.count <= MediaProtocol.messageBytesMax else {
                throw Failure(
                    .badRequest, "The order for the media process is too long.", detail: "\(bytes.count) bytes")
            }
            // The worker only ever has one order to read; one that does not take it is broken.
            return try child.channel.send(bytes, descriptor: descriptor, waiting: false)
        }
        guard isSent else { throw .broken(.died) }
    }

    /// When to look at the worker's memory and processor time next: by the clock, so that a worker which talks all the time is looked at as well.
    private struct Watch {
        let residentMax: Int
        var interval = MediaSettings.watchInterval
        var silence: SilenceWatch?
        var next = ContinuousClock.now
    }

    /// The next answer.
    /// - Throws: `overdue` at the deadline.
    private func answer(
        before deadline: ContinuousClock.Instant, watch: inout Watch
    ) throws(Breakdown) -> WorkerAnswer {
        while true {
            let now = ContinuousClock.now
            guard now < deadline else { throw .overdue(settings.jobTimeMax) }
            if now >= watch.next {
                if let bytes = child.residentBytes, bytes > watch.residentMax { throw .tookMemory(bytes: bytes) }
                switch watch.silence?.look(now: now, cpu: child.cpuTime) {
                case .silent: throw .silent
                case .endless: throw .endless(settings.silentCPUTimeMax)
                case .alive, nil: break
                }
                watch.next = now + watch.interval
            }
            if child.wait(until: min(deadline, watch.next)) == .message { return try receive() }
        }
    }

    private func receive() throws(Breakdown) -> WorkerAnswer {
        let received: MessageChannel.Received
        do throws(Failure) {
            received = try child.channel.receive(
                bytesMax: MediaProtocol.messageBytesMax, allowsDescriptor: false, waiting: true)
        } catch { throw .brokeProtocol(error.detail ?? error.message) }
        switch received {
        case .message(let message):
            do throws(Failure) { return try JSON.decode(WorkerAnswer.self, from: Data(message.bytes)) } catch {
                throw .brokeProtocol(String((error.detail ?? error.message).prefix(400)))
            }
        case .oversize:
            throw .brokeProtocol("a message of over \(MediaProtocol.messageBytesMax) bytes, or with a descriptor")
        case .end, .nothing: throw .died
        }
    }

    /// Ends the process and says what happened.
    private func failure(_ breakdown: Breakdown, file: String, hasStarted: Bool = true) -> Failure {
        var breakdown = breakdown
        var exit: ChildExit?
        if breakdown == .died {
            // The channel closes a moment before the process has ended. One that only closed it has to be ended by us, and broke off.
            exit = child.end(withinMilliseconds: 2000)
            if exit == nil {
                breakdown = .brokeProtocol("hung up")
            } else if !hasStarted, exit?.wasKilled == false {
                breakdown = .noStart
            }
        }
        let ending = exit ?? child.stop()
        return breakdown.failure(
            file: file, exit: ending, lastWords: child.lastWords,
            machineRanOut: Machine.memoryKillCount != memoryKillsAtStart)
    }
}
