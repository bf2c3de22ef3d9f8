import Foundation
import Synchronization

/// `rushes serve` as a process that can be killed.
final class ServeProcess: Sendable {
    private let process: Mutex<Process>
    private let ended: AsyncStream<Void>

    init(data: String, socket: String, crashAt step: Int?) throws {
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
        let started = Process()
        started.executableURL = URL(fileURLWithPath: folder + "/rushes")
        started.arguments = ["serve", "--data", data, "--listen", "unix:" + socket]
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("RUSHES_") }
        environment["SWIFT_BACKTRACE"] = "enable=no"
        environment["RUSHES_CRASH_AT_STEP"] = step.map(String.init)
        environment["RUSHES_STEP_TRACE"] = data + ".steps"
        started.environment = environment
        started.standardError = FileHandle.nullDevice
        started.standardInput = FileHandle.nullDevice
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        started.terminationHandler = { @Sendable _ in continuation.finish() }
        ended = stream
        try started.run()
        process = Mutex(started)
    }

    /// A test that fails leaves none behind.
    deinit { process.withLock { if $0.isRunning { $0.terminate() } } }

    var isRunning: Bool { process.withLock { $0.isRunning } }

    /// - Returns: whether the process was still there to be stopped.
    @discardableResult
    func stop() async -> Bool {
        let wasRunning = isRunning
        if wasRunning { process.withLock { $0.terminate() } }
        for await _ in ended {}
        return wasRunning
    }
}
