import Files
import Foundation
import Glibc
import MediaJobs
import Testing
import Vocabulary

/// Files that take over the decoder: each costs its own job, and nothing else.
@Suite struct HostileFileTests {
    @Test(
        "a photo and a video with each deed fail with its code, and others go on",
        arguments: [
            ("crashes", FailureCode.mediaCrashed), ("hangs", .mediaTimeout), ("spins", .mediaTimeout),
            ("forks", .mediaCrashed),
            ("allocates", .overBudget),
        ])
    func deed(_ deed: String, _ code: FailureCode) async throws {
        let bench = try Bench(
            "hijacked-media", limits: MediaLimits(memoryBytes: 256 << 20),
            silenceMax: .seconds(deed == "hangs" ? 2 : 300),
            silentCPUTimeMax: .seconds(deed == "spins" ? 2 : 300))
        let photo = try Hostile.photo(deed, in: bench.folder)
        let video = try Hostile.video(deed, in: bench.folder)
        let out = bench.folder + "/out"
        try Files.makeFolder(out)
        let jobs = bench.jobs
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                let failure = await #expect(throws: Failure.self) {
                    try await jobs.thumb(photo, name: "photo", settings: ThumbSettings(sizes: [64]), into: out)
                }
                #expect(failure?.code == code, "\(failure?.description ?? "none")")
            }
            group.addTask {
                let failure = await #expect(throws: Failure.self) {
                    try await jobs.transcode(
                        video, name: "video", settings: TranscodeSettings(outputs: [.rendition1080]), into: out
                    ) { _ in }
                }
                #expect(failure?.code == code, "\(failure?.description ?? "none")")
            }
        }
        #expect(try Files.names(in: out).isEmpty)
        let (report, _) = try await jobs.thumb(
            Hostile.honestPhoto, name: "honest", settings: ThumbSettings(sizes: [64]), into: out)
        #expect(report.outcome == .made)
        await bench.close()
    }

    @Test func aThumbnailIsNamedForItsFormat() async throws {
        let bench = try Bench("rushes-media")
        let settings = ThumbSettings(sizes: [64, 32], format: .webp)
        let (_, files) = try await bench.jobs.thumb(
            Hostile.honestPhoto, name: "honest", settings: settings, into: bench.folder)
        #expect(files.map(\.path) == ["64", "32"].map { "\(bench.folder)/\($0).webp" })
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: bench.folder + "/64.webp")))
        #expect(MediaFormat.sniff(bytes) == .webp)
        await bench.close()
    }

    @Test func aProcessNeverReadsFilesOfTwoOwners() async throws {
        let bench = try Bench(processCountMax: 4)
        func process(_ owner: String) async throws -> String? {
            try await bench.jobs.probe(bench.input, name: "number", owner: MediaOwner(owner)).warnings.first?.message
        }
        let first = try await process("one")
        #expect(try await process("one") == first)
        let second = try await process("two")
        #expect(second != first)
        #expect(try await process("one") == first)
        #expect(try await process("two") == second)
        await bench.close()
    }

    @Test func jobsThatComeAtOnceShareTheProcessesThatAreThere() async throws {
        let bench = try Bench(processCountMax: 2)
        let seen = try await withThrowingTaskGroup(of: String?.self) { group in
            for _ in 1...100 {
                group.addTask { try await bench.jobs.probe(bench.input, name: "number").warnings.first?.message }
            }
            return try await group.reduce(into: Set<String>()) { if let number = $1 { $0.insert(number) } }
        }
        #expect(1...2 ~= seen.count)
        await bench.close()
    }

    @Test func anIdleProcessMakesRoomForAnotherOwner() async throws {
        let bench = try Bench(processCountMax: 1)
        var seen: Set<String> = []
        for owner in ["one", "two", "one"] {
            let report = try await bench.jobs.probe(bench.input, name: "number", owner: MediaOwner(owner))
            seen.formUnion(report.warnings.map(\.message))
        }
        #expect(seen.count == 3)
        await bench.close()
    }

    @Test func aProcessIsReplacedAfterItsNumberOfJobsAndAfterGrowth() async throws {
        let bench = try Bench(processCountMax: 1, jobsPerProcessMax: 3, idleBytesMax: 200 << 20)
        func process(_ name: String = "number") async throws -> String? {
            try await bench.jobs.probe(bench.input, name: name).warnings.first?.message
        }
        let first = try await process()
        #expect(try await process() == first)
        #expect(try await process() == first)
        let second = try await process()
        #expect(second != first)
        #expect(try await process("grows") == second)
        #expect(try await process() != second)
        await bench.close()
    }
}
