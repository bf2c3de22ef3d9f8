import Files
import Foundation
import Glibc
import Testing
import Vocabulary

/// What a person named and did not get is told, with an exit code that says so. The real program.
@Suite(.timeLimit(.minutes(3))) struct HonestEndsTests {
    let scratch: ScratchFolder
    let home: [String: String]

    init() throws {
        scratch = try ScratchFolder()
        home = ["RUSHES_HOME": scratch.path + "/home"]
    }

    private func copy(_ fixture: String, to name: String) throws {
        let path = scratch.path + "/" + name
        try Files.makeFolder(Files.folder(of: path))
        try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + fixture, toPath: path)
    }

    private func run(_ words: String...) async throws -> Programs.Ended {
        let home = home
        return try await onThread { try Programs.run(words, home) }
    }

    @Test func whatWasNamedAndIsNoItemEndsWith3() async throws {
        try copy("portrait-rotated-90.xmp", to: "side/a.xmp")
        let deep = scratch.path + "/deep" + String(repeating: "/d", count: 70)
        try FileManager.default.createDirectory(atPath: deep, withIntermediateDirectories: true)
        #expect(mkfifo(scratch.path + "/pipe.mp4", 0o600) == 0)
        for (name, words) in [
            ("side", "sidecar without"), ("side/a.xmp", "sidecar without"), ("deep", "too many folders"),
            ("pipe.mp4", "neither a file"),
        ] {
            let ended = try await run("ingest", scratch.path + "/" + name, "--shoot", "s")
            #expect(ended.status == 3 && ended.errors.contains(words), "\(name): \(ended.errors)")
        }
    }

    @Test func aMoveOfTheFolderThatHoldsTheHomeLeavesTheHomeAlone() async throws {
        try copy("picture.png", to: "a.png")
        try copy("exif-orientation-6.jpg", to: "elsewhere/b.jpg")
        try FileManager.default.createDirectory(atPath: scratch.path + "/card", withIntermediateDirectories: true)
        let ended = try await run("ingest", scratch.path, "--shoot", "s", "--move")
        #expect(ended.status == 0 && ended.errors.contains("in which Rushes itself works"), "\(ended.errors)")
        #expect(try Files.facts(scratch.path + "/a.png") == nil)
        #expect(try await run("check").status == 0)
        #expect(try await run("ingest", scratch.path + "/home", "--shoot", "s").status == 2)
    }

    @Test func aMoveFollowsNoLinkOutOfItsFolder() async throws {
        try copy("picture.png", to: "card/a.png")
        try copy("exif-orientation-6.jpg", to: "elsewhere/b.jpg")
        for (name, target) in [("b.jpg", "../elsewhere/b.jpg"), ("folder", "../elsewhere")] {
            try FileManager.default.createSymbolicLink(
                atPath: scratch.path + "/card/" + name, withDestinationPath: target)
        }
        let ended = try await run("ingest", scratch.path + "/card", "--shoot", "s", "--move")
        #expect(ended.status == 3 && ended.errors.contains("link out"), "\(ended.errors)")
        #expect(try Files.names(in: scratch.path + "/card") == ["b.jpg", "folder"])
        #expect(try Files.facts(scratch.path + "/elsewhere/b.jpg") != nil)
    }

    @Test func aNameWithTerminalCommandsIsShownAndNotSent() async throws {
        try copy("not-media.mp4", to: "card/\u{1B}[2Jred\u{9B}31m.mp4")
        #expect(try await run("ingest", scratch.path + "/card", "--shoot", "\u{1B}]0;s", "--move").status == 3)
        let status = try await run("status")
        #expect(status.output.contains("in staging"))
        let id = try #require(try StatusLine.read(try await run("status", "--json").output).first?.item)
        for text in [status.output, try await run("show", id).output, try await run("verify", scratch.path).output] {
            #expect(!text.unicodeScalars.contains { $0.value == 0x1B || $0.value == 0x9B }, "\(text.debugDescription)")
        }
    }

    @Test func aNameThatIsNotUTF8CanBeNamedAndIsFoundInItsFolder() async throws {
        try copy("picture.png", to: "card/plain.png")
        let script =
            #"f="$1/card/bad$(printf '\377').png"; mv "$1/card/plain.png" "$f"; "$0" probe "$f" && "$0" probe "$1/card" && "$0" ingest "$f" --shoot s"#
        let (path, environment) = (scratch.path, ProcessInfo.processInfo.environment.merging(home) { $1 })
        let (status, said) = try await onThread {
            let shell = Process()
            shell.executableURL = URL(fileURLWithPath: "/bin/sh")
            shell.arguments = ["-c", script, Programs.rushes, path]
            shell.environment = environment
            shell.standardOutput = FileHandle.nullDevice
            let errors = Pipe()
            shell.standardError = errors
            try shell.run()
            let said = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            shell.waitUntilExit()
            return (shell.terminationStatus, said)
        }
        #expect(status == 0, "\(said)")
    }

    @Test func aSlipOfThePenMakesNoHome() async throws {
        let ended = try await run("ingest", scratch.path + "/nothing")
        #expect(ended.status == 1 && ended.errors.contains("look for a slip"), "\(ended.errors)")
        #expect(try Files.facts(scratch.path + "/home") == nil)
    }

    @Test func aNameOfAnotherFormatThanWhatIsMadeIsRefused() async throws {
        let thumb = try await run("thumb", Programs.fixtures + "/picture.png", scratch.path + "/e.png")
        let video = try await run("transcode", Programs.fixtures + "/conforming.mp4", scratch.path + "/q.avi")
        #expect(thumb.status == 2 && video.status == 2)
        #expect(try Files.names(in: scratch.path) == [])
    }
}
