import Digests
import Files
import Foundation
import Testing
import Vocabulary

/// Steering from another terminal: the real programs, a real backend, media that takes its time.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SteeringTests {
    @Test func cancellingWhileItIsPreparedLeavesNothingButTheMovedOriginal() async throws {
        try await onThread {
            let shoot = try Shoot()
            let ingest = try shoot.ingest(["--move", "--prepare", "both"])
            try Programs.wait("the box's media process works") { try shoot.state() == "preparing" && ingest.hasMedia }
            try shoot.cancel()
            try shoot.expectNothingButTheOriginal(of: ingest)
            #expect(ingest.wait().status == 3)
            try shoot.end()
        }
    }

    @Test(arguments: [false, true]) func cancellingWhileItIsUploadedLeavesNothingButTheMovedOriginal(
        beforeTheFirstAnswer: Bool
    ) async throws {
        try await onThread {
            let shoot = try Shoot()
            if beforeTheFirstAnswer { shoot.server.freeze() }
            let ingest = try shoot.ingest(["--move", "--prepare", "original"])
            try Programs.wait("uploading") { try shoot.state() == "uploading" }
            shoot.server.freeze()
            let cancel = try shoot.start(["cancel", "--all"])
            try Programs.wait("the intent") { try shoot.line().intent == "cancelled" }
            // As long as the backend does not answer, the item says what it waits for.
            try Programs.wait("the reason") { try shoot.line().waiting?.contains("backend") == true }
            shoot.server.thaw()
            #expect(cancel.wait().status == 0)
            try shoot.expectNothingButTheOriginal(of: ingest)
            #expect(ingest.wait().status == 3)
            try shoot.end()
        }
    }

    @Test func cancellingWhileItIsProcessedLeavesNothingButTheMovedOriginalAndRetryBringsItBack() async throws {
        try await onThread {
            let shoot = try Shoot(seconds: 4)
            let ingest = try shoot.ingest(["--move", "--prepare", "original"])
            try Programs.wait("the backend's media process works") {
                try shoot.state() == "processing" && shoot.server.hasMedia
            }
            try shoot.cancel()
            try shoot.expectNothingButTheOriginal(of: ingest)
            #expect(ingest.wait().status == 3)

            #expect(try shoot.run(["retry", "--all"]).status == 0)
            let again = try shoot.ingest(["--move"]).wait()
            #expect(again.status == 0, "\(again.errors)")
            #expect(try shoot.state() == "ready")
            #expect(try shoot.line().generation == 2)
            try shoot.end()
        }
    }

    /// The backend in the home ends with the command: what the cancelling took from its ledger has to be gone from its store by then.
    @Test(arguments: [false, true]) func cancellingWithTheBackendInTheHomeLeavesNothingInItsStore(
        withoutARunner: Bool
    ) async throws {
        try await onThread {
            let shoot = try Shoot(seconds: 8)
            let home = shoot.scratch.path + "/own"
            let environment = ["RUSHES_HOME": home]
            let ingest = try Programs.Started(["ingest", shoot.clip, "--prepare", "original"], environment)
            try Programs.wait("processing") {
                let output = try Programs.run(["status", "--json"], environment).output
                return try StatusLine.read(output).first?.state == "processing"
            }
            if withoutARunner { ingest.kill() }
            let cancel = try Programs.run(["cancel", "--all"], environment)
            #expect(cancel.status == 0, "\(cancel.output)\(cancel.errors)")
            if !withoutARunner { #expect(ingest.wait().status == 3) }
            let left = try ["blobs", "incoming", "work"].flatMap { folder in
                try FileManager.default.subpathsOfDirectory(atPath: home + "/backend/" + folder)
            }
            #expect(left.filter { $0.contains("-") } == [])
            #expect(try Programs.run(["check"], environment).status == 0)
        }
    }

    @Test func cancellingWithoutARunnerLetsACopyGoAndSparesItsSource() async throws {
        try await onThread {
            let shoot = try Shoot(seconds: 1)
            let ingest = try shoot.ingest(["--prepare", "original"])
            try Programs.wait("uploading") { ["uploading", "processing"].contains(try shoot.state()) }
            ingest.kill()
            try shoot.cancel()
            #expect(try shoot.staged() == [])
            #expect(try Files.sha256(of: .reading(shoot.clip)) == shoot.sha256)
            #expect(try shoot.run(["cancel", "--all"]).status == 0)
            #expect(try shoot.run(["retry", "nothing-like-this"]).status == 1)
            try shoot.end()
        }
    }

    @Test func aPauseHoldsOverARestartAndOnlyResumeEndsIt() async throws {
        try await onThread {
            let shoot = try Shoot(seconds: 1)
            shoot.server.freeze()
            let ingest = try shoot.ingest(["--prepare", "original"])
            try Programs.wait("uploading") { try shoot.state() == "uploading" }
            #expect(try shoot.run(["pause", "--all"]).status == 0)
            #expect(ingest.wait().status == 3)
            shoot.server.thaw()
            #expect(try shoot.ingest([]).wait().status == 3)
            #expect(try shoot.line().intent == "paused" && shoot.state() == "uploading")
            let beginning = String(try shoot.line().item.prefix(13))
            #expect(try shoot.run(["resume", beginning]).status == 0)
            #expect(try shoot.ingest([]).wait().status == 0)
            #expect(try shoot.state() == "ready")
            #expect(try shoot.run(["cancel", beginning]).status == 3)
            try shoot.end()
        }
    }

    @Test func discardAsksBeforeTheOnlyBytesGo() async throws {
        try await onThread {
            let shoot = try Shoot(seconds: 1)
            shoot.server.freeze()
            let ingest = try shoot.ingest(["--move", "--prepare", "original"])
            try Programs.wait("uploading") { try shoot.state() == "uploading" }
            #expect(try shoot.run(["discard", "--all"]).output == "")
            #expect(try shoot.staged().count == 1)
            shoot.server.thaw()
            try shoot.cancel()
            #expect(ingest.wait().status == 3)
            #expect(try shoot.run(["discard", "--all"]).status == 2)
            #expect(try shoot.staged().count == 1)
            #expect(try shoot.run(["discard", "--all", "--yes"]).status == 0)
            #expect(try shoot.staged() == [])
            try shoot.end()
        }
    }
}

/// A card with one video that takes a while, a backend of its own, and a box.
final class Shoot: Sendable {
    let scratch: ScratchFolder
    let server: Programs.Started
    let clip: String
    let sha256: SHA256Digest
    private let environment: [String: String]

    /// - Parameter seconds: of 1080p video.
    init(seconds: Int = 20) throws {
        scratch = try ScratchFolder()
        clip = scratch.path + "/card/clip.mov"
        environment = ["RUSHES_HOME": scratch.path + "/box", "RUSHES_SERVER": "unix:\(scratch.path)/s"]
        try Files.makeFolder(scratch.path + "/card")
        try Self.makeVideo(clip, seconds: seconds)
        sha256 = try Files.sha256(of: .reading(clip))
        server = try Programs.Started(
            ["serve", "--listen", "unix:\(scratch.path)/s", "--data", scratch.path + "/backend"], environment)
        try Programs.wait("the backend answers") { FileManager.default.fileExists(atPath: scratch.path + "/s") }
    }

    deinit { server.kill() }

    private static func makeVideo(_ path: String, seconds: Int) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = [
            "ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=1920x1080:rate=30", "-t", "\(seconds)", "-c:v",
            "mpeg4", "-q:v", "2", path,
        ]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0, "ffmpeg could not make the video")
    }

    func start(_ arguments: [String]) throws -> Programs.Started { try Programs.Started(arguments, environment) }
    func run(_ arguments: [String]) throws -> Programs.Ended { try Programs.run(arguments, environment) }
    func ingest(_ options: [String]) throws -> Programs.Started {
        try start(["ingest", scratch.path + "/card", "--shoot", "steered"] + options)
    }

    struct Line: Decodable {
        var item: String
        var state: String
        var intent: String
        var waiting: String?
        var generation: Int
        var staged: [String]
    }
    func lines() throws -> [Line] {
        try run(["status", "--json"]).output.split(separator: "\n").map {
            try JSONDecoder().decode(Line.self, from: Data($0.utf8))
        }
    }
    func line() throws -> Line { try #require(try lines().first) }
    func state() throws -> String? { try lines().first?.state }

    func staged() throws -> [String] {
        try Files.names(in: scratch.path + "/box/staging").filter { $0 != "CACHEDIR.TAG" }
    }

    func cancel() throws {
        let cancel = try run(["cancel", "--all"])
        #expect(cancel.status == 0, "\(cancel.output)\(cancel.errors)")
        #expect(cancel.output.split(separator: "\n").count == 1)
        #expect(try state() == "cancelled")
    }

    /// Of the only item: at the backend, in its store, and on the box.
    func expectNothingButTheOriginal(of ingest: Programs.Started) throws {
        let line = try line()
        #expect(line.state == "cancelled")
        #expect(line.staged == ["clip.mov"])
        let folder = scratch.path + "/box/staging/" + line.item
        #expect(try Files.names(in: folder) == ["original"])
        #expect(try Files.sha256(of: .reading(folder + "/original")) == sha256)
        #expect(try Files.facts(clip) == nil)
        try Programs.wait("no media process is left") { !ingest.hasMedia && !server.hasMedia }
        try Programs.wait("the store is empty") { try storedFiles() == [] }
        #expect(try backendItems() == "{\"items\":[]}")
    }

    /// Files of the backend's store, without its ledger.
    private func storedFiles() throws -> [String] {
        let backend = scratch.path + "/backend"
        let all = FileManager.default.enumerator(atPath: backend)?.compactMap { $0 as? String } ?? []
        return all.filter { path in
            let isFile = (try? Files.facts(backend + "/" + path))??.kind == .regular
            return isFile && path.contains("/") && !path.hasSuffix("CACHEDIR.TAG")
        }
    }

    private func backendItems() throws -> String {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["curl", "-s", "--unix-socket", scratch.path + "/s", "http://localhost/v1/items"]
        process.standardOutput = output
        try process.run()
        let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return text
    }

    /// Both sides are whole.
    func end() throws {
        #expect(server.stop().status == 0)
        let check = try run(["check", "--data", scratch.path + "/backend"])
        #expect(check.status == 0, "\(check.output)\(check.errors)")
    }
}

extension Programs.Started {
    /// Whether a media process of this one has a file open: one that waits for work has none.
    var hasMedia: Bool {
        let pids = (try? FileManager.default.contentsOfDirectory(atPath: "/proc"))?.compactMap { Int32($0) } ?? []
        return pids.contains { pid in
            // pid (comm) state ppid …; a zombie is gone already.
            guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
                let close = text.lastIndex(of: ")"), text[..<close].hasSuffix("(rushes-media")
            else { return false }
            let fields = text[text.index(after: close)...].split(separator: " ")
            guard fields.count > 1, fields[0] != "Z", fields[1] == "\(process.processIdentifier)" else { return false }
            let folder = "/proc/\(pid)/fd"
            let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return descriptors.contains { name in
                let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(name)")) ?? ""
                return target.contains("/rushes-")
                    && (target.contains("/box/staging/") || target.contains("/backend/"))
            }
        }
    }

    func freeze() { Foundation.kill(process.processIdentifier, SIGSTOP) }
    func thaw() { Foundation.kill(process.processIdentifier, SIGCONT) }
    func kill() {
        guard process.isRunning else { return }
        Foundation.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}

/// `rushes cancel` dies right after its nth durable step; given once more it comes to the same end.
@Suite(.serialized, .timeLimit(.minutes(5))) struct CancelCrashTests {
    @Test(arguments: [true, false]) func aCancellationThatIsKilledAnywhereIsCompletedByTheNext(isMoved: Bool)
        async throws
    {
        try await onThread {
            let scratch = try ScratchFolder()
            let origin = scratch.path + "/origin"
            try begin(in: origin, isMoved: isMoved)
            var step = 1
            while try isKilled(at: step, origin: origin, round: "\(scratch.path)/\(step)", isMoved: isMoved) {
                step += 1
            }
            // The intent, what it waits for, the release of the copy and its removal, the end.
            #expect(step > 4, "only \(step) steps")
        }
    }

    /// An item in the middle of its upload, on both sides.
    private func begin(in folder: String, isMoved: Bool) throws {
        try Files.makeFolder(folder + "/card")
        for name in ["portrait-rotated-90.mov", "portrait-rotated-90.xmp"] {
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: "\(folder)/card/\(name)")
        }
        let trace = folder + "/steps"
        let server = try serve(folder)
        let whole = try Programs.run(
            ["ingest", folder + "/card", "--shoot", "c", "--prepare", "both", "--server", "unix:\(folder)/s"],
            ["RUSHES_HOME": folder + "/other", "RUSHES_STEP_TRACE": trace])
        #expect(whole.status == 0, "\(whole.errors)")
        #expect(server.stop().status == 0)
        for name in ["other", "backend"] { try FileManager.default.removeItem(atPath: folder + "/" + name) }
        let steps = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n")
        let completed = try #require(steps.firstIndex { $0.hasSuffix("catalog.completed") })
        let again = try serve(folder)
        let killed = try Programs.run(
            ["ingest", folder + "/card", "--shoot", "c", "--prepare", "both", "--server", "unix:\(folder)/s"]
                + (isMoved ? ["--move"] : []),
            ["RUSHES_HOME": folder + "/box", "RUSHES_CRASH_AT_STEP": "\(completed + 1)"])
        #expect(killed.signal == SIGKILL)
        #expect(again.stop().status == 0)
    }

    private func serve(_ folder: String) throws -> Programs.Started {
        try Programs.Started(
            ["serve", "--listen", "unix:\(folder)/s", "--data", folder + "/backend"], ["RUSHES_HOME": folder + "/box"])
    }

    private func isKilled(at step: Int, origin: String, round: String, isMoved: Bool) throws -> Bool {
        // The source keeps its path: what the catalog names is below the origin.
        try Files.makeFolder(round)
        for name in ["box", "backend"] {
            try FileManager.default.copyItem(atPath: "\(origin)/\(name)", toPath: "\(round)/\(name)")
        }
        let server = try serve(round)
        defer { server.kill() }
        let home = ["RUSHES_HOME": round + "/box", "RUSHES_SERVER": "unix:\(round)/s"]
        let first = try Programs.run(["cancel", "--all"], home.merging(["RUSHES_CRASH_AT_STEP": "\(step)"]) { $1 })
        if first.signal == nil {
            #expect(first.status == 0, "\(first.output)\(first.errors)")
        } else {
            let second = try Programs.run(["cancel", "--all"], home)
            #expect(second.status == 0, "killed at step \(step): \(second.output)\(second.errors)")
        }
        let status = try Programs.run(["status", "--json"], home).output
        #expect(status.contains("\"state\":\"cancelled\""), "killed at step \(step): \(status)")
        let staged = try Files.names(in: round + "/box/staging").filter { $0 != "CACHEDIR.TAG" }
        #expect(staged.count == (isMoved ? 1 : 0), "killed at step \(step): \(staged)")
        #expect(server.stop().status == 0)
        let check = try Programs.run(["check", "--data", round + "/backend"], home)
        #expect(check.status == 0, "killed at step \(step): \(check.output)\(check.errors)")
        return first.signal != nil
    }
}
