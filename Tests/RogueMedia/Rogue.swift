import Files
import Foundation
import Glibc
import Processes
import Vocabulary

struct Rogue {
    let channel: MessageChannel

    init(_ channel: MessageChannel) { self.channel = channel }

    func serve() {
        send(.hello(version: MediaProtocol.version))
        while let (order, file) = nextOrder() {
            guard case .job(let job) = order, let file else { abort() }
            carryOut(job, input: file)
        }
    }

    private func carryOut(_ job: MediaJob, input: OpenFile) {
        switch job.file {
        // Well-behaved, so that the others are known to fail for their own reason.
        case "honest": honest(job)
        case "reads": reads(job, input)
        case "counts descriptors": countsDescriptors(job)
        case "environment": environment(job)
        case "number": answer(job, with: ["\(getpid())"])
        case "grows":
            // Not malloc: an optimizer takes away a block that nobody reads.
            let memory = mmap(nil, 256 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            if let memory, Int(bitPattern: memory) != -1 { memset(memory, 1, 256 << 20) }
            answer(job, with: ["\(getpid())"])
        case "rejects after sealing":
            makeOne(job)
            send(.result(job: job.id, .thumb(ThumbReport(outcome: .reject, reason: Reason(.corrupt, "Damaged.")))))
        case "fails": send(.failure(job: job.id, Failure(.outputInvalid, "No.")))
        case "reports progress":
            for frames in 1...3 {
                send(.progress(job: job.id, MediaProgress(fraction: Double(frames) / 4, frames: frames)))
            }
            send(.result(job: job.id, .transcode(TranscodeReport(outcome: .encoded))))

        case "dies": die(job)
        case "leaves": exit(0)
        case "runs out of memory":
            say("terminate called after throwing an instance of 'std::bad_alloc'\n")
            abort()
        case "talks and dies":
            for _ in 0..<2000 { say(String(repeating: "noise ", count: 100) + "\n") }
            say("the last words\n")
            abort()
        case "takes memory": takeMemory {}
        case "takes memory while it talks":
            var frames = 0
            takeMemory {
                frames += 1
                send(.progress(job: job.id, MediaProgress(fraction: 0, frames: frames)))
            }
        case "writes without end": writeWithoutEnd(job)
        case "burns":
            while true {}
        case "computes for a while":
            let end = clock() + 2 * CLOCKS_PER_SEC
            while clock() < end {}
            honest(job)
        case "is killed": beKilled(job)
        case "is killed three times":
            // The input's length remembers, since this process does not.
            if let size = try? input.facts().size, size < Self.untouchedInputBytes + 3 {
                let again = open("/proc/self/fd/\(input.descriptor)", O_WRONLY | O_APPEND)
                write(again, "x", 1)
                beKilled(job)
            }
            honest(job)
        case "hangs up":
            close(ChildProgram.channelDescriptor)
            hang()
        case "hangs": hang()
        case "gets on and hangs":
            writeAll("half a video", to: need(job, .rendition1080))
            send(.progress(job: job.id, MediaProgress(fraction: 0.5, frames: 50)))
            hang()
        case "repeats itself":
            while true { send(.progress(job: job.id, MediaProgress(fraction: 0.5, frames: 1))) }
        default: lie(job)
        }
    }

    // MARK: Honest work

    private func honest(_ job: MediaJob) {
        makeOne(job)
        send(.result(job: job.id, .thumb(ThumbReport(outcome: .made, width: 4, height: 3))))
    }

    func makeOne(_ job: MediaJob, text: String = "a picture") {
        // The descriptor is closed before the output is sealed.
        writeAll(text, to: need(job))
        seal(job, bytes: text.utf8.count, of: text)
    }

    private func reads(_ job: MediaJob, _ input: OpenFile) {
        let bytes = (try? input.read(count: 4096, at: 0)) ?? []
        answer(job, with: [String(decoding: bytes, as: UTF8.self)])
    }

    private func countsDescriptors(_ job: MediaJob) {
        let names = (try? Files.names(in: "/proc/self/fd")) ?? []
        // Without the one that looks.
        answer(job, with: ["\(names.count - 1)"])
    }

    private func environment(_ job: MediaJob) {
        answer(job, with: ProcessInfo.processInfo.environment.keys.sorted())
    }

    func answer(_ job: MediaJob, with words: [String]) {
        let report = ProbeReport(file: job.file, facts: nil, warnings: words.map { MediaWarning("seen", $0) })
        send(.result(job: job.id, .probe(report)))
    }

    // MARK: Bad ends

    private func die(_ job: MediaJob) {
        let file = need(job)
        writeAll("half a pict", to: file)
        say("something is wrong\n")
        abort()
    }

    /// As if by somebody else: the parent cannot tell.
    private func beKilled(_ job: MediaJob) -> Never {
        writeAll("half a pict", to: need(job))
        kill(getpid(), SIGKILL)
        hang()
    }

    /// Of the tests' input.
    private static let untouchedInputBytes = 17

    private func takeMemory(_ talk: () -> Void) -> Never {
        let chunk = 16 << 20
        for _ in 0..<64 {
            let memory = mmap(nil, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            if let memory, Int(bitPattern: memory) != -1 { memset(memory, 1, chunk) }
            talk()
        }
        while true {
            talk()
            usleep(1000)
        }
    }

    private func writeWithoutEnd(_ job: MediaJob) {
        let file = need(job)
        while true { writeAll(String(repeating: "x", count: 4096), to: file) }
    }

    private func hang() -> Never {
        while true { pause() }
    }
}
