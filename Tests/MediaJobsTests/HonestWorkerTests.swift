import Files
import Foundation
import MediaJobs
import Synchronization
import Testing
import Vocabulary

@Suite struct HonestWorkerTests {
    @Test func anOutputArrivesWholeUnderItsName() async throws {
        let bench = try Bench()
        let (report, files) = try await bench.thumb("honest")
        #expect(report == ThumbReport(outcome: .made, width: 4, height: 3))
        #expect(files.map(\.path) == [bench.folder + "/512.jpg"])
        #expect(files.first?.output.bytes == 9)
        #expect(try String(contentsOfFile: bench.folder + "/512.jpg", encoding: .utf8) == "a picture")
        #expect(try bench.made() == ["512.jpg"])
        await bench.close()
    }

    @Test func theInputArrivesWithItsJob() async throws {
        let bench = try Bench()
        let report = try await bench.jobs.probe(bench.input, name: "reads")
        #expect(report.warnings.map(\.message) == ["the input's bytes"])
        await bench.close()
    }

    @Test func theWorkerHoldsNothingButItsChannelAndTheInput() async throws {
        let bench = try Bench()
        // Standard input, output and error, the channel, the input.
        for _ in 1...3 {
            let report = try await bench.jobs.probe(bench.input, name: "counts descriptors")
            #expect(report.warnings.map(\.message) == ["5"])
        }
        await bench.close()
    }

    @Test func theWorkerSeesNothingOfTheEnvironment() async throws {
        let bench = try Bench()
        let report = try await bench.jobs.probe(bench.input, name: "environment")
        let allowed: Set = [
            "LANG", "MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "SWIFT_BACKTRACE",
            "LD_LIBRARY_PATH",
        ]
        #expect(Set(report.warnings.map(\.message)).subtracting(allowed).isEmpty)
        await bench.close()
    }

    @Test func aRejectionLeavesNoFile() async throws {
        let bench = try Bench()
        let (report, files) = try await bench.thumb("rejects after sealing")
        #expect(report.reason?.code == .corrupt)
        #expect(files.isEmpty)
        #expect(try bench.made().isEmpty)
        await bench.close()
    }

    @Test func aFailureLeavesTheOlderFileAlone() async throws {
        let bench = try Bench()
        try Files.write(Array("older".utf8), to: bench.folder + "/512.jpg")
        #expect(await bench.failure("lies about the hash")?.code == .mediaProtocol)
        #expect(try String(contentsOfFile: bench.folder + "/512.jpg", encoding: .utf8) == "older")
        _ = try await bench.thumb("honest")
        #expect(try String(contentsOfFile: bench.folder + "/512.jpg", encoding: .utf8) == "a picture")
        await bench.close()
    }

    @Test func theWorkersOwnFailureComesThroughAsItIs() async throws {
        let bench = try Bench()
        #expect(await bench.failure("fails") == Failure(.outputInvalid, "No."))
        await bench.close()
    }

    @Test func progressIsReportedInOrder() async throws {
        let bench = try Bench()
        let seen = Mutex<[MediaProgress]>([])
        let (report, files) = try await bench.jobs.transcode(
            bench.input, name: "reports progress", settings: TranscodeSettings(outputs: [.rendition1080]),
            into: bench.folder
        ) { progress in seen.withLock { $0.append(progress) } }
        #expect(report.outcome == .encoded)
        #expect(files.isEmpty)
        #expect(seen.withLock { $0 }.map(\.frames) == [1, 2, 3])
        await bench.close()
    }

    @Test func manyJobsAtOnceShareTheProcesses() async throws {
        let bench = try Bench()
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<40 {
                group.addTask { try await bench.jobs.probe(bench.input, name: "reads").warnings.count }
            }
            for try await count in group { #expect(count == 1) }
        }
        await bench.close()
    }

    @Test func anInputThatIsMissingOrNoFileIsSaidSo() async throws {
        let bench = try Bench()
        await #expect(throws: Failure(.sourceMissing, "“/nonexistent” does not exist.", detail: "/nonexistent")) {
            try await bench.jobs.probe("/nonexistent", name: "reads")
        }
        let fault = await #expect(throws: Failure.self) { try await bench.jobs.probe(bench.folder, name: "reads") }
        #expect(fault?.code == .sourceUnreadable)
        await bench.close()
    }

    @Test func aWorkerThatIsNoWorkerIsSaidSo() async throws {
        for (program, startMax) in [("/bin/true", Duration.seconds(60)), ("/usr/bin/yes", .milliseconds(200))] {
            let jobs = MediaJobs(MediaSettings(workerPath: program, startMax: startMax))
            let failure = await #expect(throws: Failure.self) { try await jobs.probe("/etc/hostname", name: "a") }
            #expect(failure?.code == .mediaCrashed)
            #expect(failure?.remedy == .askUser)
        }
    }

    @Test func aMissingWorkerIsSaidSo() {
        let failure = #expect(throws: Failure.self) {
            try MediaSettings.standard(environment: [MediaSettings.workerVariable: "/nonexistent"])
        }
        #expect(failure?.code == .workerMissing)
    }
}
