import Glibc
import Processes
import Vocabulary

/// Why a job ended without an answer.
enum Breakdown: Error, Equatable {
    /// The channel closed.
    case died
    case noStart
    /// It neither gave a sign nor used the processor.
    case silent
    /// It used the processor on and on without a sign.
    case endless(Duration)
    case overdue(Duration)
    case tookMemory(bytes: Int)
    case brokeProtocol(String)

    /// What a crash of a library that could not get memory says on standard error: C++, Swift, glib, libheif, x264.
    private static let outOfMemoryWords = [
        "bad_alloc", "annot allocate memory", "ut of memory", "emory exhausted", "malloc of size",
    ]

    /// - Parameters:
    ///   - exit: how the worker ended: without us where the breakdown is `died`.
    ///   - lastWords: the end of its standard error.
    ///   - machineRanOut: the kernel killed something for want of memory meanwhile.
    func failure(file: String, exit: ChildExit, lastWords: String?, machineRanOut: Bool) -> Failure {
        let detail = [what, exit.words, lastWords.map { "stderr: \($0)" }].compactMap { $0 }.joined(separator: "; ")
        let file = "“\(file)”"
        switch self {
        case .tookMemory:
            return Self.overBudget(file, detail)
        case .silent, .endless, .overdue:
            return Failure(
                .mediaTimeout, "Work on \(file) made no progress in time and was stopped; it can be tried again.",
                detail: detail)
        case .brokeProtocol:
            return Failure(
                .mediaProtocol,
                "The media process gave an answer that makes no sense for \(file); it can be tried again.",
                detail: detail)
        case .noStart:
            return Failure(
                .mediaCrashed,
                "The media process does not start: install rushes-media of the same version, with its libraries.",
                remedy: .askUser, detail: detail)
        case .died:
            if let killed = Self.killed(file, exit, detail, machineRanOut) { return killed }
            switch exit.how {
            case .signalled(SIGXCPU):
                return Failure(
                    .mediaTimeout, "Work on \(file) used up its processor time and was stopped.", remedy: .giveUp,
                    detail: detail)
            case .signalled(SIGXFSZ):
                return Failure(
                    .outputInvalid, "What was made of \(file) grew over its bound.", remedy: .giveUp, detail: detail)
            case .signalled, .exited:
                if let lastWords, Self.outOfMemoryWords.contains(where: { lastWords.contains($0) }) {
                    return Self.overBudget(file, detail)
                }
                return Failure(
                    .mediaCrashed, "The media process died while it worked on \(file); it can be tried again.",
                    detail: detail)
            }
        }
    }

    /// Not our kill, and not the file's doing as far as can be known: a decoder can send such a signal to itself, but hardly by accident. Where it
    /// was for memory, beginning again at once would do the same to the machine.
    private static func killed(_ file: String, _ exit: ChildExit, _ detail: String, _ machineRanOut: Bool) -> Failure? {
        guard exit.wasKilled else { return nil }
        guard machineRanOut, exit.how == .signalled(SIGKILL) else {
            return Failure(
                .mediaKilled, "Somebody killed the media process that worked on \(file); it can be tried again.",
                detail: detail)
        }
        return Failure(
            .mediaKilled,
            "The machine ran out of memory while it worked on \(file): close other programs, or allow less with --memory.",
            remedy: .askUser, detail: detail)
    }

    private static func overBudget(_ file: String, _ detail: String) -> Failure {
        Failure(.overBudget, "\(file) needs more memory than is allowed: raise --memory.", detail: detail)
    }

    private var what: String? {
        switch self {
        case .died: nil
        case .noStart: "no hello"
        case .silent: "silent and idle for too long"
        case .endless(let time): "no sign in \(time) of processor time"
        case .overdue(let bound): "not done after \(bound)"
        case .tookMemory(let bytes): "took \(bytes >> 20) MiB"
        case .brokeProtocol(let how): "protocol: \(how)"
        }
    }
}

extension ChildExit {
    /// By a signal with which people and programs end others; a crash never comes as one of these.
    var wasKilled: Bool { [SIGKILL, SIGTERM, SIGINT, SIGHUP].contains { how == .signalled($0) } }

    var words: String {
        switch how {
        case .exited(let status): "exit \(status), peak \(peakBytes >> 20) MiB"
        case .signalled(let signal): "signal \(signal), peak \(peakBytes >> 20) MiB"
        }
    }
}
