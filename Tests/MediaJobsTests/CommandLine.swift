import Files
import Foundation
import Glibc
import Testing

/// The built `rushes`, run as a person would run it.
enum CommandLineRun {
    struct Ended {
        var status: Int32
        var isSignal: Bool
        var output: String
        var errors: String
        var lines: [Substring] { output.split(separator: "\n") }
        var object: [String: Any]? {
            try? JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any]
        }
        var reason: String? { (object?["reason"] as? [String: Any])?["code"] as? String }
    }

    static let fixtures: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url.appendingPathComponent("fixtures/shoot").path
    }()

    /// Runs to the end.
    static func run(_ arguments: String..., in folder: String = "/", worker: String? = nil) throws -> Ended {
        try Running(arguments, in: folder, worker: worker).wait()
    }

    /// Runs as on a kernel that does not have these system calls: a filter answers ENOSYS to them, for `rushes` and all that it starts.
    static func run(
        withoutCalls calls: String, environment: [String: String] = [:], _ arguments: String...
    ) throws -> Ended {
        // prctl is only missing where it would load a filter (PR_SET_SECCOMP, 22).
        let script = """
            import ctypes, os, sys
            lib = ctypes.CDLL("libseccomp.so.2")
            class Bound(ctypes.Structure):
                _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]
            lib.seccomp_init.restype = ctypes.c_void_p
            filter = ctypes.c_void_p(lib.seccomp_init(0x7fff0000))
            for name in sys.argv[1].split():
                number = lib.seccomp_syscall_resolve_name(name.encode())
                bounds = (Bound * 1)(Bound(0, 4, 22, 0))
                assert lib.seccomp_rule_add_array(filter, 0x50000 | 38, number, int(name == "prctl"), bounds) == 0
            assert lib.seccomp_load(filter) == 0
            os.execv(sys.argv[2], sys.argv[2:])
            """
        let running = try Running(
            ["-c", script, calls, Bench.program("rushes")] + arguments, in: "/", worker: nil,
            program: "/usr/bin/python3", environment: environment)
        return running.wait()
    }

    /// A running `rushes`.
    final class Running {
        private let process = Process()
        private let output = Pipe()
        private let errors = Pipe()
        private var said = Data()
        var pid: Int32 { process.processIdentifier }

        init(
            _ arguments: [String], in folder: String, worker: String?, program: String = Bench.program("rushes"),
            environment: [String: String] = [:]
        ) throws {
            process.executableURL = URL(fileURLWithPath: program)
            process.arguments = arguments
            process.currentDirectoryURL = URL(fileURLWithPath: folder)
            process.environment = worker.map { ["RUSHES_MEDIA_WORKER": Bench.program($0)] } ?? [:]
            process.environment?.merge(environment) { $1 }
            process.environment?["LD_LIBRARY_PATH"] = ProcessInfo.processInfo.environment["LD_LIBRARY_PATH"]
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = output
            process.standardError = errors
            try process.run()
        }

        /// Waits until something stands on standard error.
        func awaitWords() { said.append(errors.fileHandleForReading.availableData) }

        func send(_ signal: Int32) { kill(pid, signal) }

        /// Children of any of its threads.
        func children() throws -> [Int32] {
            try Files.names(in: "/proc/\(pid)/task").flatMap { thread in
                let text = try String(contentsOfFile: "/proc/\(pid)/task/\(thread)/children", encoding: .utf8)
                return text.split(separator: " ").compactMap { Int32($0) }
            }
        }

        func wait() -> Ended {
            // What is said is short: it fits into the pipe.
            let data = output.fileHandleForReading.readDataToEndOfFile()
            said.append(errors.fileHandleForReading.readDataToEndOfFile())
            process.waitUntilExit()
            return Ended(
                status: process.terminationStatus, isSignal: process.terminationReason == .uncaughtSignal,
                output: String(decoding: data, as: UTF8.self), errors: String(decoding: said, as: UTF8.self))
        }
    }
}
