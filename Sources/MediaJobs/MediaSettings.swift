import Files
import Foundation
import Glibc
public import Vocabulary

/// How media work is run: where the worker program is, and every bound on it.
public struct MediaSettings: Sendable {
    /// The program `rushes-media`.
    public var workerPath: String
    /// Whether a process is walled in before it reads anything (`Confinement`); where the kernel cannot, nothing is read.
    public var isWalledIn: Bool
    /// Processes at once, idle ones included. By default half the cores, since decoder and encoder use several threads each, and at least
    /// two: a video that runs for an hour must not keep the photos waiting.
    public var processCountMax: Int
    /// Bounds inside one job; a caller may narrow them job by job.
    public var limits: MediaLimits
    /// The longest time without a sign of progress in which hardly any processor time was used either. It may take twice as long to be noticed.
    public var silenceMax: Duration
    /// Processor time without a sign of progress, over all threads. Probes and thumbnails give none in between, so it bounds them as a whole; a
    /// picture of a gigapixel takes minutes.
    public var silentCPUTimeMax = Duration.seconds(3600)
    /// How often a job begins again whose process was killed from outside, before that counts as the job's failure.
    public var restartMax = 20
    /// From the start of a process to its hello; loading the libraries takes 0.1 s on an idle machine.
    public var startMax: Duration
    /// The longest time for one job, however much progress it claims.
    public var jobTimeMax: Duration
    /// Processor seconds of one job, over all of its threads.
    public var cpuSecondsMax: Int
    /// A process whose resident memory has grown to more than this is not kept for another job.
    public var idleBytesMax = 512 << 20
    /// Jobs after which a process is replaced, so that a slow leak in a library stays small.
    public var jobsPerProcessMax = 256

    public init(
        workerPath: String, processCountMax: Int? = nil, limits: MediaLimits = MediaLimits(),
        silenceMax: Duration = .seconds(300),
        startMax: Duration = .seconds(60), jobTimeMax: Duration = .seconds(72 * 3600),
        cpuSecondsMax: Int = 20 * 24 * 3600, isWalledIn: Bool = true
    ) {
        self.workerPath = workerPath
        self.isWalledIn = isWalledIn
        self.processCountMax = max(1, processCountMax ?? max(2, sysconf(Int32(_SC_NPROCESSORS_ONLN)) / 2))
        self.limits = limits
        self.silenceMax = silenceMax
        self.startMax = startMax
        self.jobTimeMax = jobTimeMax
        self.cpuSecondsMax = cpuSecondsMax
    }

    /// The variable that names the worker program where it does not lie beside `rushes`.
    public static let workerVariable = "RUSHES_MEDIA_WORKER"

    /// The variable that allows media to be read without walls, with the value `off`. Only the parent reads it.
    public static let sandboxVariable = "RUSHES_SANDBOX"

    /// The variable that sets `silenceMax`, in seconds. Below the floor a disk that spins up would count as a hang.
    public static let silenceVariable = "RUSHES_MEDIA_SILENCE"
    static let silenceRange = 5...86_400

    /// Settings with the worker that `RUSHES_MEDIA_WORKER` names, else the one beside the running program.
    /// - Throws: `worker-missing`; `usage` for a value of `RUSHES_SANDBOX` or `RUSHES_MEDIA_SILENCE` that means nothing.
    public static func standard(
        limits: MediaLimits = MediaLimits(), environment: [String: String]? = nil
    ) throws(Failure) -> MediaSettings {
        let environment = environment ?? ProcessInfo.processInfo.environment
        let path = environment[workerVariable].flatMap { $0.isEmpty ? nil : $0 } ?? besideThisProgram("rushes-media")
        guard access(path, X_OK) == 0 else {
            throw Failure(
                .workerMissing,
                "The program rushes-media is missing: install it beside rushes, or name it in \(workerVariable).",
                detail: "\(path): \(String(cString: strerror(errno)))")
        }
        var settings = MediaSettings(
            workerPath: path, limits: limits, isWalledIn: try isWalledIn(environment[sandboxVariable]))
        if let silence = try silence(environment[silenceVariable]) { settings.silenceMax = silence }
        return settings
    }

    private static func silence(_ value: String?) throws(Failure) -> Duration? {
        guard let value, !value.isEmpty else { return nil }
        guard let seconds = Int(value), silenceRange.contains(seconds) else {
            throw Failure(
                .usage,
                "\(silenceVariable) takes seconds from \(silenceRange.lowerBound) to \(silenceRange.upperBound).",
                detail: value)
        }
        return .seconds(seconds)
    }

    private static func isWalledIn(_ value: String?) throws(Failure) -> Bool {
        switch value {
        case nil, "", "on": return true
        case "off": return false
        default:
            // A mistyped “off” must not go on with walls that are not wanted, nor a mistyped “on” without.
            throw Failure(
                .usage, "\(sandboxVariable) is neither on nor off: correct it or leave it out.", detail: value)
        }
    }

    private static func besideThisProgram(_ name: String) -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = max(0, readlink("/proc/self/exe", &path, path.count))
        let program = String(decoding: path[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return Files.folder(of: program) + "/" + name
    }
}

extension MediaSettings {
    /// Bytes that the program takes without any media: libraries, threads' stacks, arenas. Added to what decoding may take.
    static let programBytes = 512 << 20
    /// Of address space, more is promised than used: stacks of 8 MiB a thread, arenas of 64 MiB. Wide of what a job may have, since a library that
    /// is refused memory mostly calls the file damaged.
    static let programAddressBytes = 2 << 30
    /// How often the parent looks at the worker's memory and processor time.
    static let watchInterval = Duration.milliseconds(200)
    /// The same for probes and thumbnails, whose memory is a promise: in between a worker can touch little more than it may have.
    static let shortWorkWatchInterval = Duration.milliseconds(10)
    /// Outputs of one job.
    static let outputCountMax = 16
    /// Callers that may wait for a process.
    static let waiterCountMax = 4096
}
