import Foundation
import Testing
import Vocabulary

/// What a person can get wrong, and what a machine can be short of: one sentence, the right exit status, nothing lost, and the same command
/// works once it is mended.
@Suite struct BadInputTests {
    let scratch: ScratchFolder
    let photo = Programs.fixtures + "/picture.png"
    init() throws { scratch = try ScratchFolder() }

    private var home: String { scratch.path + "/home" }

    private func ingest(
        _ paths: [String], home: String? = nil, more: [String] = []
    ) async throws -> Programs.Ended {
        let arguments = ["ingest"] + paths + ["--shoot", "bad"] + more
        let environment = ["RUSHES_HOME": home ?? self.home]
        return try await onThread { try Programs.run(arguments, environment) }
    }

    /// One sentence on standard error that names the matter, and no trace of a program's insides.
    private func expectSentence(
        _ ended: Programs.Ended, status: Int32, naming words: String, location: SourceLocation = #_sourceLocation
    ) {
        #expect(ended.status == status, "\(ended.errors)", sourceLocation: location)
        let last = ended.errors.split(separator: "\n").last.map(String.init) ?? ""
        #expect(last.contains(words), "\(ended.errors)", sourceLocation: location)
        for trace in ["Fatal error", "Failure(", ".swift", "errno"] {
            #expect(!ended.errors.contains(trace), "\(ended.errors)", sourceLocation: location)
        }
    }

    @Test func aMissingPathTakesNothing() async throws {
        let ended = try await ingest([photo, scratch.path + "/none.mov"])
        expectSentence(ended, status: 1, naming: "“none.mov” does not exist")
        let status = try Programs.run(["status", "--json"], ["RUSHES_HOME": home])
        #expect(status.status == 0 && status.output.isEmpty)
    }

    @Test func noPathIsWrongUsage() async throws {
        expectSentence(try await ingest([]), status: 2, naming: "rushes ingest needs PATH")
        expectSentence(try await ingest([photo], more: ["--prepare", "4k"]), status: 2, naming: "--prepare takes")
        expectSentence(try await ingest([photo], more: ["--server", "ftp://x"]), status: 2, naming: "--server takes")
    }

    @Test func anUnreadableFileIsItsOwnFailureAndStopsNoOther() async throws {
        // No permission keeps root from a file; a folder's loop of links keeps everybody.
        let loop = scratch.path + "/loop.mov"
        try FileManager.default.createSymbolicLink(atPath: loop, withDestinationPath: loop)
        let folder = scratch.path + "/card"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: photo, toPath: folder + "/good.png")
        try FileManager.default.createSymbolicLink(atPath: folder + "/bad.mov", withDestinationPath: loop)
        let ended = try await ingest([folder], more: ["--json"])
        #expect(try StatusLine.read(ended.output).map(\.state) == ["ready"], "\(ended.errors)")
        #expect(ended.errors.contains("bad.mov: not taken"), "\(ended.errors)")
    }

    @Test func aHomeThatCannotBeWrittenIsNamed() async throws {
        expectSentence(try await ingest([photo], home: "/proc/rushes"), status: 1, naming: "RUSHES_HOME")
        let file = scratch.path + "/file"
        try Data([1]).write(to: URL(fileURLWithPath: file))
        expectSentence(try await ingest([photo], home: file + "/home"), status: 1, naming: "RUSHES_HOME")
    }

    @Test func aSocketPathTooLongIsNamed() async throws {
        let long = scratch.path + "/" + String(repeating: "x", count: 100)
        expectSentence(try await ingest([photo], home: long), status: 1, naming: "RUSHES_HOME")
        expectSentence(
            try await ingest([photo], more: ["--server", "unix:" + long]), status: 1, naming: "use a shorter one")
    }

    @Test(.timeLimit(.minutes(5))) func aFullDiskLosesNothingAndTheSameCommandGoesOn() async throws {
        let disk = scratch.path + "/disk"
        try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
        guard Self.succeeds("/bin/mount", ["-t", "tmpfs", "-o", "size=2m", "none", disk]) else {
            print("FULL DISK SKIPPED: this user may not mount a small file system")
            return
        }
        defer { _ = Self.succeeds("/bin/umount", [disk]) }
        expectSentence(try await ingest([photo], home: disk + "/home"), status: 1, naming: "free some space")
        #expect(FileManager.default.fileExists(atPath: photo))
        #expect(Self.succeeds("/bin/mount", ["-o", "remount,size=512m", disk]))
        let again = try await ingest([photo], home: disk + "/home", more: ["--json"])
        #expect(again.status == 0, "\(again.errors)")
        #expect(try StatusLine.read(again.output).map(\.state) == ["ready"])
        let check = try Programs.run(["check"], ["RUSHES_HOME": disk + "/home"])
        #expect(check.status == 0, "\(check.output)")
    }

    private static func succeeds(_ program: String, _ arguments: [String]) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = arguments
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }
}
