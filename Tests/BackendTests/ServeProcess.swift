import Foundation
import Synchronization
import Testing

@testable import Backend

/// `rushes serve` as a process that can be killed.
final class ServeProcess: Sendable {
    private let process: Mutex<Process>
    private let served: AsyncStream<Void>
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
        let said = Pipe()
        started.standardError = said
        started.standardInput = FileHandle.nullDevice
        let (stream, continuation) = AsyncStream<Void>.makeStream()
        let (serving, tell) = AsyncStream<Void>.makeStream()
        started.terminationHandler = { @Sendable _ in
            tell.finish()
            continuation.finish()
        }
        (served, ended) = (serving, stream)
        try started.run()
        process = Mutex(started)
        let lines = said.fileHandleForReading
        Thread.detachNewThread { @Sendable in
            var text = Data()
            // To the end, so that it can go on speaking.
            while case let piece = lines.availableData, !piece.isEmpty {
                text += piece
                if text.range(of: Data("serving ".utf8)) != nil { tell.finish() }
            }
        }
    }

    /// A test that fails leaves none behind.
    deinit { process.withLock { if $0.isRunning { $0.terminate() } } }

    /// Returns when it serves, or has ended.
    func start() async { for await _ in served {} }

    func end() async { for await _ in ended {} }

    private var isRunning: Bool { process.withLock { $0.isRunning } }

    /// - Returns: whether the process was still there to be stopped.
    @discardableResult
    func stop() async -> Bool {
        let wasRunning = isRunning
        if wasRunning { process.withLock { $0.terminate() } }
        await end()
        return wasRunning
    }
}

extension ServeProcess {
    private static let stepCountMax = 200

    /// Kills it by SIGKILL right after its nth durable step and starts it again; n goes up until it survives.
    /// - Parameter work: what a client does, as often as the server goes away, which it tells by a `ConnectionFault`.
    /// - Returns: the n that it survived, and the durable steps up to there.
    static func killedAtEachStep(_ work: (TestClient) -> () async throws -> Void) async throws
        -> (survived: Int, steps: [String])
    {
        for step in 1...stepCountMax {
            let scratch = try ScratchFolder()
            let (data, socket) = (scratch.path + "/data", scratch.path + "/s")
            let run = work(TestClient(address: .unix(path: socket)))
            var server = try ServeProcess(data: data, socket: socket, crashAt: step)
            await server.start()
            var isDone = false
            var restartCount = 0
            while !isDone {
                do {
                    try await run()
                    isDone = true
                } catch is TestClient.ConnectionFault {
                    // It serves no longer: it is dying, or dead.
                    await server.end()
                    restartCount += 1
                    try #require(restartCount == 1, "it died without having been told to")
                    server = try ServeProcess(data: data, socket: socket, crashAt: nil)
                    await server.start()
                }
            }
            let wasRunning = await server.stop()
            #expect(try await BackendCheck.run(dataFolder: data).isEmpty, "killed at step \(step)")
            guard restartCount == 0, wasRunning else { continue }
            let trace = try String(contentsOfFile: data + ".steps", encoding: .utf8).split(separator: "\n")
            // Its end may have steps too.
            guard trace.count < step else { continue }
            return (step, trace.map { String($0.split(separator: " ")[1]) })
        }
        throw TestClient.NeverReached()
    }
}
