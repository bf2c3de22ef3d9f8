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
        expectSentence(ended, status: 1, naming: "“\(scratch.path)/none.mov” does not exist")
        let status = try Programs.run(["status", "--json"], ["RUSHES_HOME": home])
        #expect(status.status == 0 && status.output.isEmpty)
    }

    @Test func noPathIsWrongUsage() async throws {
        expectSentence(try await ingest([]), status: 2, naming: "rushes ingest needs PATH")
        expectSentence(try await ingest([photo], more: ["--prepare", "4k"]), status: 2, naming: "--prepare takes")
        expectSentence(try await ingest([photo], more: ["--server", "ftp://x"]), status: 2, naming: "--server takes")
        expectSentence(
            try await ingest([photo], more: ["--server", "http://a:b@localhost"]), status: 2, naming: "no password")
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

    @Test func aHomeThatIsAFileIsNamedWhateverIsAsked() async throws {
        let file = scratch.path + "/file"
        try Data([1]).write(to: URL(fileURLWithPath: file))
        for words in [["status"], ["check"], ["show", "x"], ["pause", "--all"], ["verify", photo]] {
            let ended = try Programs.run(words, ["RUSHES_HOME": file])
            expectSentence(ended, status: 1, naming: "“\(file)” is not a folder")
        }
        let check = try Programs.run(["check", "--data", file], ["RUSHES_HOME": home])
        expectSentence(check, status: 1, naming: "“\(file)” is not a folder")
    }

    @Test func anUnknownItemIsTheSameMistakeForEveryVerb() async throws {
        let environment = ["RUSHES_HOME": home]
        for isEmpty in [true, false] {
            if !isEmpty { #expect(try await ingest([photo]).status == 0) }
            for verb in ["show", "pause", "resume", "cancel", "retry", "discard"] {
                #expect(try Programs.run([verb, "nothing-like-this"], environment).status == 1, "\(verb)")
            }
            for verb in ["pause", "resume", "cancel", "retry"] {
                #expect(try Programs.run([verb, "--all"], environment).status == 0, "\(verb)")
            }
        }
    }

    @Test func aLostCatalogIsNoNewHome() async throws {
        let note = scratch.path + "/note.txt"
        try Data("No picture.".utf8).write(to: URL(fileURLWithPath: note))
        #expect(try await ingest([note], more: ["--move"]).status == 3)
        let catalog = home + "/catalog.db"
        let kept = try Data(contentsOf: URL(fileURLWithPath: catalog))
        let damages: [(String) throws -> Void] = [
            { try FileManager.default.removeItem(atPath: $0) }, { try Data().write(to: URL(fileURLWithPath: $0)) },
        ]
        for damage in damages {
            try damage(catalog)
            for words in [["ingest", photo], ["status"], ["check"], ["run"], ["discard", "--all", "--yes"]] {
                let ended = try Programs.run(words, ["RUSHES_HOME": home])
                expectSentence(ended, status: 1, naming: "bring catalog.db back")
            }
        }
        try kept.write(to: URL(fileURLWithPath: catalog))
        let status = try Programs.run(["status"], ["RUSHES_HOME": home])
        #expect(
            status.status == 0 && status.output.contains("in staging: note.txt"), "\(status.output)\(status.errors)")
        #expect(try Programs.run(["check"], ["RUSHES_HOME": home]).status == 0)
    }

    @Test func whatAMoveLeavesBehindIsNamed() async throws {
        let card = scratch.path + "/card"
        try FileManager.default.createDirectory(atPath: card, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: photo, toPath: card + "/a.png")
        #expect(try await ingest([card]).status == 0)
        let moved = try await ingest([card], more: ["--move"])
        #expect(moved.status == 0)
        #expect(moved.errors.contains("/card/a.png: stays where it is, the backend has the same bytes already"))
        #expect(moved.errors.hasSuffix("1 ready; 1 not moved, as said above\n"), "\(moved.errors)")
        #expect(FileManager.default.fileExists(atPath: card + "/a.png"))
    }

    @Test func whatWentToAnotherBackendIsNotCancelledHere() async throws {
        try await onThread {
            let socket = "unix:" + scratch.path + "/s"
            let server = try Programs.Started(
                ["serve", "--listen", socket, "--data", scratch.path + "/backend"], ["RUSHES_HOME": home])
            for _ in 0..<800 where !FileManager.default.fileExists(atPath: scratch.path + "/s") { usleep(25_000) }
            // Killed after more and more of its steps, until something of it is at the backend.
            for step in 5...25 {
                _ = try Programs.run(
                    ["ingest", photo, "--shoot", "bad", "--server", socket],
                    ["RUSHES_HOME": home, "RUSHES_CRASH_AT_STEP": "\(step)"])
                let status = try Programs.run(["status", "--json"], ["RUSHES_HOME": home])
                if try ["uploading", "processing"].contains(StatusLine.read(status.output).first?.state) { break }
            }
            let wrong = try Programs.run(["cancel", "--all"], ["RUSHES_HOME": home])
            #expect(
                wrong.status == 3 && wrong.output.contains("it went to \(socket)"), "\(wrong.output)\(wrong.errors)")
            let right = try Programs.run(["cancel", "--all", "--server", socket], ["RUSHES_HOME": home])
            #expect(right.status == 0 && right.output.hasSuffix(": cancelled\n"), "\(right.output)\(right.errors)")
            #expect(server.stop().status == 0)
        }
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
