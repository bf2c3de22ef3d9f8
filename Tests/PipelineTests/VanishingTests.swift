import Files
import Foundation
import TestStores
import Testing
import Vocabulary

/// File systems that go away, turn read-only or fill while something is copied from or to them. The program is stopped for the moment in which
/// that happens, so that it happens in the middle.
@Suite(.serialized, .timeLimit(.minutes(5)), .enabled(if: TestStore.waits)) struct VanishingTests {
    /// Enough that a copy takes a while.
    private static let bigBytes = 64 << 20

    @Test func aCardThatIsPulledOutInMidCopyIsMissedAndTakenOnceItIsBack() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 80) else { return }
            let card = disk.scratch.path + "/card"
            try disk.show(at: card)
            try Self.fill(card)
            let ingest = try disk.start(["ingest", card, "--shoot", "pulled", "--json"])
            try disk.inMidCopy(of: ingest) { try disk.hide(at: card) }
            let ended = ingest.wait()
            #expect(ended.status == 3, "\(ended.errors)")
            #expect(Set(try StatusLine.read(ended.output).map(\.state)) == ["missing"])
            try disk.check()
            try disk.show(at: card)
            let again = try disk.start(["ingest", card, "--shoot", "pulled", "--json"]).wait()
            #expect(again.status == 0, "\(again.errors)")
            #expect(try StatusLine.read(again.output).map(\.state) == ["ready", "ready"])
            try disk.check()
            try disk.hide(at: card)
        }
    }

    @Test func anInboxThatIsPulledOutInMidCopyIsWaitedForAndGoesOn() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 80) else { return }
            let inbox = disk.scratch.path + "/inbox"
            try disk.show(at: inbox)
            try Self.fill(inbox)
            let run = try disk.start(["run"])
            try disk.inMidCopy(of: run) { try disk.hide(at: inbox) }
            try disk.wait("it says what it waits for") { run.said.contains("waits:") }
            #expect(try disk.states().filter { $0 != "picked" } == [])
            try disk.show(at: inbox)
            try disk.wait("all is ready") { try disk.states() == ["ready", "ready"] }
            #expect(try Files.names(in: inbox) == [])
            #expect(run.stop().status == 0)
            try disk.check()
            try disk.hide(at: inbox)
        }
    }

    @Test func anInboxThatTurnsReadOnlyInMidCopyKeepsItsFilesAndTheyAreSafe() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 80) else { return }
            let inbox = disk.scratch.path + "/inbox"
            try disk.show(at: inbox)
            try Self.fill(inbox)
            let run = try disk.start(["run"])
            try disk.inMidCopy(of: run) { #expect(Disk.run("mount", "-o", "remount,bind,ro", inbox)) }
            try disk.wait("all is ready") { try disk.states() == ["ready", "ready"] }
            #expect(try Files.names(in: inbox) == ["a-big.mp4", "picture.png"])
            #expect(run.stop().status == 0)
            let verify = try disk.start(["verify", inbox]).wait()
            #expect(verify.status == 0, "\(verify.output)\(verify.errors)")
            try disk.check()
            try disk.hide(at: inbox)
        }
    }

    @Test func anInboxThatIsFullIsTakenAndEmptied() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 2) else { return }
            let inbox = disk.scratch.path + "/inbox"
            try disk.show(at: inbox)
            try FileManager.default.copyItem(
                atPath: Programs.fixtures + "/picture.png", toPath: inbox + "/picture.png")
            // What was being copied there when the disk was full is cut off.
            let cut = inbox + "/cut.mov"
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/truncated-recording.mov", toPath: cut)
            _ = Disk.run("dd", "if=/dev/zero", "of=\(cut)", "oflag=append", "conv=notrunc", "bs=64k", "status=none")
            let run = try disk.start(["run"])
            try disk.wait("both are at their ends") { try disk.states().sorted() == ["ready", "rejected"] }
            #expect(try Files.names(in: inbox) == [])
            #expect(run.stop().status == 0)
            try disk.check()
            try disk.hide(at: inbox)
        }
    }

    @Test func aStagingDiskThatFillsInMidCopyStopsTheRunAndTheSameCommandGoesOn() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 320) else { return }
            let home = disk.scratch.path + "/homes"
            try disk.show(at: home)
            let card = disk.scratch.path + "/card"
            try Files.makeFolder(card)
            try Self.fill(card)
            let command = ["ingest", card, "--shoot", "filled", "--json"]
            let ingest = try disk.start(command, home: home + "/h")
            let filler = home + "/filler"
            try disk.inMidCopy(of: ingest, home: home + "/h") {
                _ = Disk.run("dd", "if=/dev/zero", "of=\(filler)", "bs=64k", "status=none")
            }
            let ended = ingest.wait()
            #expect(ended.status == 1, "\(ended.errors)")
            #expect(ended.errors.contains("free some space"), "\(ended.errors)")
            #expect(try Files.names(in: card) == ["a-big.mp4", "picture.png"])
            try Files.remove(filler)
            let again = try disk.start(command, home: home + "/h").wait()
            #expect(again.status == 0, "\(again.errors)")
            try disk.check(home: home + "/h")
            try disk.hide(at: home)
        }
    }

    /// A video that takes a while to copy, before a photo.
    private static func fill(_ folder: String) throws {
        let big = folder + "/a-big.mp4"
        try FileManager.default.copyItem(atPath: Programs.fixtures + "/no-audio.mp4", toPath: big)
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: big))
        let end = try file.seekToEnd()
        // A box of free space up to the end.
        let size = UInt32(bigBytes - Int(end)).bigEndian
        try file.write(contentsOf: withUnsafeBytes(of: size) { Array($0) } + Array("free".utf8))
        try file.truncate(atOffset: UInt64(bigBytes))
        try file.close()
        try FileManager.default.copyItem(atPath: Programs.fixtures + "/picture.png", toPath: folder + "/picture.png")
    }
}

/// A small file system of its own that can be shown at places and hidden again, and keeps what is on it meanwhile.
final class Disk: Sendable {
    let scratch: ScratchFolder
    private let root: String

    /// - Returns: nil, loudly, where this user may not mount.
    init?(megabytes: Int) throws {
        scratch = try ScratchFolder()
        root = scratch.path + "/disk"
        try Files.makeFolder(root)
        guard Self.run("mount", "-t", "tmpfs", "-o", "size=\(megabytes)m", "none", root) else {
            print("VANISHING DISKS SKIPPED: this user may not mount a small file system")
            return nil
        }
    }

    deinit { _ = Self.run("umount", "-l", root) }

    func show(at path: String) throws {
        try Files.makeFolder(path)
        try #require(Self.run("mount", "--bind", root, path))
    }
    func hide(at path: String) throws { try #require(Self.run("umount", "-l", path)) }

    static func run(_ words: String...) -> Bool {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = words
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }

    private var home: String { scratch.path + "/home" }
    private func environment(_ home: String?) -> [String: String] {
        [
            "RUSHES_HOME": home ?? self.home, "RUSHES_INBOX": scratch.path + "/inbox", "RUSHES_INBOX_QUIET": "1",
        ]
    }

    func start(_ arguments: [String], home: String? = nil) throws -> Programs.Started {
        try Programs.Started(arguments, environment(home))
    }

    /// Stops the program while a file is half written in staging, and lets it go on after `body`.
    func inMidCopy(of program: Programs.Started, home: String? = nil, _ body: () throws -> Void) throws {
        let staging = (home ?? self.home) + "/staging"
        for _ in 0..<200_000 {
            let items = (try? FileManager.default.contentsOfDirectory(atPath: staging)) ?? []
            let isHalf = items.contains { item in
                let names = (try? FileManager.default.contentsOfDirectory(atPath: staging + "/" + item)) ?? []
                return names.contains { $0.hasPrefix(Files.temporaryPrefix) }
            }
            if isHalf {
                program.freeze()
                try body()
                program.thaw()
                return
            }
            usleep(200)
        }
        throw Failure(.internalError, "It never copied anything: \(program.said)")
    }

    func wait(_ what: String, _ condition: () throws -> Bool) throws {
        for _ in 0..<1200 {
            if try condition() { return }
            usleep(50_000)
        }
        throw Failure(.internalError, "It never came to this: \(what).")
    }

    func states() throws -> [String] {
        try StatusLine.read(try Programs.run(["status", "--json"], environment(nil)).output).map(\.state)
    }

    func check(home: String? = nil) throws {
        let check = try start(["check"], home: home).wait()
        #expect(check.status == 0, "\(check.output)\(check.errors)")
        let home = home ?? self.home
        let all = FileManager.default.enumerator(atPath: home)?.compactMap { $0 as? String } ?? []
        #expect(all.filter { $0.contains(Files.temporaryPrefix) } == [])
    }
}
