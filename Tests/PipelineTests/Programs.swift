import Foundation
import Synchronization
import Testing
import Vocabulary

/// The built programs, run as a person would run them.
enum Programs {
    /// SwiftPM puts the test bundle and the programs into one folder.
    static let rushes: String = {
        let folder = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
        return folder + "/rushes"
    }()

    static let fixtures: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url.appendingPathComponent("fixtures/shoot").path
    }()

    struct Ended: Sendable {
        /// What it ended with; of one that a signal ended, that signal's number below zero.
        var status: Int32
        /// The signal that ended it.
        var signal: Int32?
        var output: String
        var errors: String
    }

    /// Runs `rushes` to its end.
    /// - Parameter environment: in addition to a clean one.
    static func run(_ arguments: [String], _ environment: [String: String]) throws -> Ended {
        let started = try Started(arguments, environment)
        return started.wait()
    }

    /// Looks again and again, for 40 s at most, at what only another process can show.
    static func wait(_ what: String, _ condition: () throws -> Bool) throws {
        for _ in 0..<1600 {
            if try condition() { return }
            usleep(25_000)
        }
        throw Failure(.internalError, "It never came to this: \(what).")
    }

    /// A running `rushes`.
    final class Started: @unchecked Sendable {
        // Unchecked: Foundation's Process and Pipe are used by one test at a time.
        let process = Process()
        private let output = Pipe()
        private let errors = FileManager.default.temporaryDirectory
            .appendingPathComponent("rushes-errors-\(UUID().uuidString)")

        init(_ arguments: [String], _ environment: [String: String]) throws {
            process.executableURL = URL(fileURLWithPath: Programs.rushes)
            process.arguments = arguments
            var clean = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("RUSHES_") }
            clean["SWIFT_BACKTRACE"] = "enable=no"
            process.environment = clean.merging(environment) { $1 }
            _ = FileManager.default.createFile(atPath: errors.path, contents: nil)
            process.standardOutput = output
            process.standardError = try FileHandle(forWritingTo: errors)
            process.standardInput = FileHandle.nullDevice
            try process.run()
        }

        func wait() -> Ended {
            let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            process.waitUntilExit()
            let said = (try? String(contentsOf: errors, encoding: .utf8)) ?? ""
            let wasKilled = process.terminationReason == .uncaughtSignal
            return Ended(
                status: wasKilled ? -process.terminationStatus : process.terminationStatus,
                signal: wasKilled ? process.terminationStatus : nil,
                output: text, errors: said)
        }

        /// What it has said to people so far.
        var said: String { (try? String(contentsOf: errors, encoding: .utf8)) ?? "" }

        func stop() -> Ended {
            process.terminate()
            return wait()
        }

        deinit { try? FileManager.default.removeItem(at: errors) }
    }
}

/// A folder that is gone when the test is.
final class ScratchFolder: Sendable {
    let path: String
    init() throws {
        // Short, since a Unix socket's path has room for 107 bytes.
        path = "/tmp/rushes-\(UInt32.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit {
        // Connections that end at the same moment may remove files of their own in it, on which one removal stops.
        for _ in 0..<10 where (try? FileManager.default.removeItem(atPath: path)) == nil {}
    }
}

/// A line of `rushes status --json`, as far as tests look at it.
struct StatusLine: Decodable, Equatable {
    var item: String
    var name: String
    var state: String
    var reason: Reason?
    var outputs: [Rendition]

    /// From the lines of `status --json` or `ingest --json`.
    static func read(_ output: String) throws -> [StatusLine] {
        try output.split(separator: "\n").map { try JSONDecoder().decode(StatusLine.self, from: Data($0.utf8)) }
    }
}
