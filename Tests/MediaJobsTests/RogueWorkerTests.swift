import Files
import Foundation
import Glibc
import MediaJobs
import Testing
import Vocabulary

/// Whatever the worker does: the right failure comes back, nothing is left in the folder, and the next job works.
@Suite struct RogueWorkerTests {
    private func expect(
        _ misdeed: String, _ code: FailureCode, in bench: Bench, location: SourceLocation = #_sourceLocation
    ) async throws {
        let failure = await bench.failure(misdeed)
        #expect(failure?.code == code, "\(failure?.description ?? "no failure")", sourceLocation: location)
        #expect(try bench.made().isEmpty, sourceLocation: location)
        let (report, _) = try await bench.thumb("honest")
        #expect(report.outcome == .made, sourceLocation: location)
        await bench.close()
    }

    @Test(arguments: ["dies", "leaves", "talks and dies"])
    func aWorkerThatDies(_ misdeed: String) async throws { try await expect(misdeed, .mediaCrashed, in: try Bench()) }

    @Test func theLastWordsOfAWorkerAreKept() async throws {
        let bench = try Bench()
        let failure = await bench.failure("talks and dies")
        #expect(failure?.detail?.hasSuffix("the last words") == true)
        #expect(failure?.detail?.contains("signal 6") == true)
        #expect((failure?.detail?.utf8.count ?? 0) < 5000)
        await bench.close()
    }

    @Test(arguments: [
        "sends garbage", "sends too much", "sends a descriptor", "greets twice", "asks for another", "asks twice",
        "makes it twice", "seals what it never asked for", "seals nothing", "lies about the size",
        "lies about the hash",
        "calls it a video", "keeps the descriptor", "keeps a mapping", "never seals", "answers something else",
        "answers another job", "is further than the end",
    ])
    func aWorkerThatLies(_ misdeed: String) async throws { try await expect(misdeed, .mediaProtocol, in: try Bench()) }

    @Test func aWorkerThatDoesNothing() async throws {
        try await expect("hangs", .mediaTimeout, in: try Bench(silenceMax: .milliseconds(700)))
    }

    @Test(arguments: ["burns", "repeats itself"])
    func aWorkerThatDoesNotGetOn(_ misdeed: String) async throws {
        try await expect(misdeed, .mediaTimeout, in: try Bench(silentCPUTimeMax: .milliseconds(500)))
    }

    @Test func timeAloneDoesNotEndAWorkerThatComputes() async throws {
        let bench = try Bench(silenceMax: .milliseconds(300))
        let (report, _) = try await bench.thumb("computes for a while")
        #expect(report.outcome == .made)
        await bench.close()
    }

    @Test func aJobWhoseProcessIsKilledBySomebodyBeginsAgain() async throws {
        let bench = try Bench()
        let (report, _) = try await bench.thumb("is killed three times")
        #expect(report.outcome == .made)
        #expect(try bench.made() == ["512.jpg"])
        await bench.close()
    }

    @Test func aJobThatIsKilledForEverEnds() async throws {
        try await expect("is killed", .mediaKilled, in: try Bench(restartMax: 3))
    }

    @Test func aWorkerThatHangsUpAndStaysIsNotKilledBySomebody() async throws {
        try await expect("hangs up", .mediaProtocol, in: try Bench())
    }

    @Test func aJobThatIsOverdue() async throws {
        try await expect("hangs", .mediaTimeout, in: try Bench(jobTimeMax: .milliseconds(700)))
    }

    @Test func aWorkerThatUsesUpItsProcessorTime() async throws {
        try await expect("burns", .mediaTimeout, in: try Bench(cpuSecondsMax: 1))
    }

    @Test func aWorkerThatWritesWithoutEnd() async throws {
        try await expect("writes without end", .outputInvalid, in: try Bench())
    }

    @Test(arguments: ["takes memory", "takes memory while it talks", "runs out of memory"])
    func aWorkerThatWantsTooMuchMemory(_ misdeed: String) async throws {
        try await expect(misdeed, .overBudget, in: try Bench())
    }

    /// All that one job may have is its own and the program's, not more beside it; what a share is too little for begins again alone.
    @Test func theBoundOfAWorkerIsItsShareOfTheMemory() async throws {
        let small = try Bench(limits: MediaLimits(memoryBytes: 256 << 20))
        let failure = await #expect(throws: Failure.self) { try await small.jobs.probe(small.input, name: "grows") }
        #expect(failure?.code == .overBudget)
        await small.close()
        let large = try Bench(limits: MediaLimits(memoryBytes: 400 << 20))
        _ = try await large.jobs.probe(large.input, name: "grows")
        await large.close()
    }

    @Test func cancellingTheTaskStopsTheWorker() async throws {
        let bench = try Bench()
        let work = Task { await bench.failure("hangs") }
        // Jobs that are cancelled before, during and after their start all end the same way.
        for _ in 0..<5 { await Task.yield() }
        work.cancel()
        #expect(await work.value?.code == .cancelled)
        #expect(try bench.made().isEmpty)
        _ = try await bench.thumb("honest")
        await bench.close()
    }

    @Test(.timeLimit(.minutes(2))) func cancellingStopsAWorkerThatHasNotSaidHello() async throws {
        let folder = try Bench.makeFolder()
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let (program, started) = (folder + "/mute-media", folder + "/started")
        try Files.write(
            Array("#!/bin/sh\necho $$ > \(started).tmp\nmv \(started).tmp \(started)\nexec sleep 9999\n".utf8),
            to: program)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
        let bench = try Bench(program, startMax: .seconds(9999))
        let work = Task { await bench.failure("honest") }
        while try Files.facts(started) == nil { try await Task.sleep(for: .milliseconds(10)) }
        let text = try String(contentsOfFile: started, encoding: .utf8)
        let pid = try #require(Int32(text.trimmingCharacters(in: .whitespacesAndNewlines)))
        work.cancel()
        #expect(await work.value?.code == .cancelled)
        #expect(kill(pid, 0) == -1 && errno == ESRCH)
        await bench.close()
    }

    @Test func aWaitingJobCanBeCancelled() async throws {
        let bench = try Bench(processCountMax: 1)
        let first = Task { await bench.failure("hangs") }
        let second = Task { await bench.failure("honest") }
        second.cancel()
        _ = await second.value
        first.cancel()
        #expect(await first.value?.code == .cancelled)
        await bench.close()
    }

    @Test func nothingIsLeftOpenAfterMisdeeds() async {
        // In a process of its own, so that the descriptors of other tests are not counted.
        await #expect(processExitsWith: .success) {
            let bench = try Bench(silenceMax: .milliseconds(700))
            func openCount() throws -> Int { try Files.names(in: "/proc/self/fd").count }
            _ = await bench.failure("dies")
            _ = try await bench.thumb("honest")
            await bench.jobs.shutDown()
            let before = try openCount()
            for _ in 0..<3 {
                let again = try Bench(silenceMax: .milliseconds(700))
                for misdeed in [
                    "honest", "dies", "sends a descriptor", "asks twice", "keeps the descriptor", "hangs", "fails",
                ] {
                    _ = await again.failure(misdeed)
                }
                await again.close()
            }
            await bench.close()
            let after = try openCount()
            guard after == before else { fatalError("\(before) descriptors were open, now \(after)") }
        }
    }
}
