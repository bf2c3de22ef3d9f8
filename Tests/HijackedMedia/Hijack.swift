import CAttempts
import Dispatch
import Glibc
import MediaWorker
import Vocabulary

/// What a file that took over the decoder makes it do. The file says so in its last bytes, so that it is an honest photo or video to all others.
enum Hijack: String {
    case crashes
    case hangs
    case spins
    case forks
    /// 20 GB, and uses them.
    case allocates
    /// Tries to open a file, and nothing else: harmless where it works.
    case opens
    /// Tries all that must be impossible, and tells the answers as warnings.
    case attempts
    /// The same in the middle of an honest transcode or thumbnail.
    case attemptsMeanwhile = "meanwhile"

    /// The last bytes of the file: this, and the name, filled with spaces.
    static let mark = "RUSHES-HIJACK "
    static let markLength = 32

    static func decode(_ job: MediaJob, input: Int32, sink: any OutputSink) throws(Failure) -> MediaResult {
        switch wanted(by: input) {
        case nil: return try Worker.decode(job, input: input, sink: sink)
        case .crashes: abort()
        case .hangs: hang()
        case .spins: while true {}
        case .forks: forkAway()
        case .allocates: allocate()
        case .opens:
            return .probe(ProbeReport(file: job.file, facts: nil, warnings: answers(countMax: 1)))
        case .attempts:
            return .probe(ProbeReport(file: job.file, facts: nil, warnings: answers()))
        case .attemptsMeanwhile:
            let watched = AttemptingSink(sink)
            var result = try Worker.decode(job, input: input, sink: watched)
            if case .transcode(var report) = result {
                report.warnings = watched.answers
                result = .transcode(report)
            }
            return result
        }
    }

    private static func wanted(by input: Int32) -> Hijack? {
        let end = lseek(input, 0, SEEK_END)
        var bytes = [UInt8](repeating: 0, count: markLength)
        guard end >= off_t(markLength), pread(input, &bytes, markLength, end - off_t(markLength)) == markLength else {
            return nil
        }
        let text = String(decoding: bytes, as: UTF8.self)
        guard text.hasPrefix(mark) else { return nil }
        return Hijack(rawValue: String(text.dropFirst(mark.count).prefix { $0 != " " }))
    }

    /// How many attempts one warning holds: a packet has room for few warnings.
    private static let attemptsPerWarning = 8

    /// Attempts by their errno, 0 where they worked: the errno as the code, the names as lines of the message.
    static func answers(countMax: Int32 = .max) -> [MediaWarning] {
        let parent = getppid()
        var names: [Int32: [String]] = [:]
        for index in 0..<countMax {
            var name: UnsafePointer<CChar>?
            let answer = attempt(index, parent, &name)
            guard answer >= 0, let name else { break }
            names[answer, default: []].append(String(cString: name))
        }
        return names.flatMap { answer, names in
            stride(from: 0, to: names.count, by: attemptsPerWarning).map { start in
                let some = names[start..<min(start + attemptsPerWarning, names.count)]
                return MediaWarning("\(answer)", some.joined(separator: "\n"))
            }
        }
    }

    /// On what is allowed inside the walls: pause(2) is not, and would spin.
    private static func hang() -> Never {
        while true { DispatchSemaphore(value: 0).wait() }
    }

    private static func forkAway() -> Never {
        var name: UnsafePointer<CChar>?
        var index: Int32 = 0
        while attempt(index, getppid(), &name) >= 0 { index += 1 }
        abort()
    }

    private static func allocate() -> Never {
        let chunk = 64 << 20
        for _ in 0..<320 {
            // Not malloc: an optimizer takes away a block that nobody reads.
            let memory = mmap(nil, chunk, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            guard let memory, Int(bitPattern: memory) != -1 else { fatalError("cannot allocate memory") }
            memset(memory, 1, chunk)
        }
        hang()
    }
}

/// Makes the attempts once, at the first sign of progress: the decoder's and encoder's threads run then.
private final class AttemptingSink: OutputSink {
    private let sink: any OutputSink
    private(set) var answers: [MediaWarning] = []

    init(_ sink: any OutputSink) { self.sink = sink }

    func open(_ name: OutputName) throws(Failure) -> Int32 { try sink.open(name) }
    func seal(
        _ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?
    ) throws(Failure) {
        try sink.seal(
            name, role: role, contentType: contentType, width: width, height: height, duration: duration)
    }
    func progress(_ progress: MediaProgress) throws(Failure) {
        if answers.isEmpty, progress.frames > 0 { answers = Hijack.answers() }
        try sink.progress(progress)
    }
}
