import Files
import Foundation
import Vocabulary

/// A package from PyPI in an environment of its own beside the build, made once.
struct PythonTool: Sendable {
    private let folder: String

    /// Nil, after a word to whoever runs the tests, where it cannot be had.
    /// - Parameter word: of the line that says so.
    init?(_ package: String, version: String, word: String) throws {
        let build = URL(fileURLWithPath: Programs.rushes).resolvingSymlinksInPath()
            .deletingLastPathComponent().deletingLastPathComponent().path
        folder = "\(build)/\(package)-\(version)"
        let mark = folder + "/is-whole"
        if try Files.facts(mark) != nil { return }
        try? FileManager.default.removeItem(atPath: folder)
        let steps = [
            ["python3", "-m", "venv", folder],
            [folder + "/bin/pip", "install", "-q", "--disable-pip-version-check", "\(package)==\(version)"],
        ]
        for step in steps {
            let ended = try Self.run(["timeout", "180"] + step)
            guard ended.status == 0 else {
                print("\(word) SKIPPED: \(package) cannot be had here: \(step[0]): \(ended.output.suffix(300))")
                return nil
            }
        }
        try Files.write([], to: mark)
    }

    /// - Parameter program: of the environment; `python` too.
    func run(_ program: String, _ words: [String]) throws -> (status: Int32, output: String) {
        try Self.run(["\(folder)/bin/\(program)"] + words)
    }

    private static func run(_ words: [String]) throws -> (status: Int32, output: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.environment = ProcessInfo.processInfo.environment.merging(["LC_ALL": "C.UTF-8"]) { $1 }
        let output = Pipe()
        process.standardOutput = output
        process.standardError = output
        process.standardInput = FileHandle.nullDevice
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return (process.terminationStatus, text)
    }
}
