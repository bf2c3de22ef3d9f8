import Files
import Foundation
import Glibc
import MediaJobs
import Synchronization
import Testing
import Vocabulary

@testable import Processes

/// What a decoder that was taken over can still do: proven from inside, in the worker as it ships.
@Suite struct WallsTests {
    /// Where the attempts try to write.
    private static let elsewhere = "/var/tmp/rushes-hijacked"

    private static func expectRefused(_ answers: [MediaWarning], location: SourceLocation = #_sourceLocation) {
        let names = answers.flatMap { answer in answer.message.split(separator: "\n").map { (String($0), answer.code) }
        }
        #expect(names.count > 80, sourceLocation: location)
        for (name, answer) in names {
            // clone3 is said not to exist, so that glibc goes on to clone, whose flags the filter can see.
            #expect(answer == "\(name == "clone3" ? ENOSYS : EPERM)", "\(name)", sourceLocation: location)
        }
        #expect(access(elsewhere, F_OK) != 0, sourceLocation: location)
    }

    @Test func everyAttemptIsRefused() async throws {
        let bench = try Bench("hijacked-media")
        let file = try Hostile.photo("attempts", in: bench.folder)
        Self.expectRefused(try await bench.jobs.probe(file, name: "photo").warnings)
        // The process lives on, and works.
        #expect(try await bench.jobs.probe(Hostile.honestPhoto, name: "photo").outcome == .accept)
        await bench.close()
    }

    @Test func everyAttemptIsRefusedInTheMiddleOfA4KTranscode() async throws {
        let bench = try Bench("hijacked-media", limits: MediaLimits())
        let clip = bench.folder + "/4k.mp4"
        try Hostile.ffmpeg([
            "-f", "lavfi", "-i", "testsrc2=size=3840x2160:rate=25:duration=0.4", "-f", "lavfi", "-i",
            "sine=duration=0.4", "-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", clip,
        ])
        try Hostile.mark(clip, "meanwhile")
        let (report, files) = try await bench.jobs.transcode(
            clip, name: "4k.mp4", settings: TranscodeSettings(outputs: [.rendition1080, .poster], preset: "ultrafast"),
            into: bench.folder
        ) { _ in }
        Self.expectRefused(report.warnings)
        #expect(report.outcome == .encoded)
        #expect(report.frames == 10)
        #expect(files.count == 2)
        let rendition = try #require(files.first { $0.output.name == .rendition1080 })
        let probe = try await bench.jobs.probe(rendition.path, name: "1080p")
        #expect(probe.facts?.height == 1080)
        #expect(probe.facts?.frames == 10)
        await bench.close()
    }

    /// So that the tests above are known to be able to fail.
    @Test func withoutWallsTheSameDecoderOpensFiles() async throws {
        let bench = try Bench("hijacked-media", isWalledIn: false)
        let file = try Hostile.photo("opens", in: bench.folder)
        let answers = try await bench.jobs.probe(file, name: "photo").warnings
        #expect(answers == [MediaWarning("0", "openat")])
        await bench.close()
    }

    /// The filter answers before Landlock is asked: here Landlock is alone.
    @Test func landlockAloneRefusesFilesAndConnections() async {
        await #expect(processExitsWith: .success) {
            let before = open("/etc/passwd", O_RDONLY)
            guard before >= 0 else { fatalError("nothing can be opened to begin with") }
            try Confinement.denyFiles()
            for path in ["/etc/passwd", "/", "/proc/self/status"] {
                guard open(path, O_RDONLY) < 0, errno == EACCES else { fatalError("\(path) can be opened") }
            }
            guard open("/var/tmp/rushes-hijacked", O_WRONLY | O_CREAT, 0o600) < 0, errno == EACCES else {
                fatalError("a file can be made")
            }
            var byte: UInt8 = 0
            guard read(before, &byte, 1) == 1 else { fatalError("what is open cannot be read any more") }
        }
    }

    @Test func aProcessWithSeveralThreadsIsNotWalledIn() async {
        await #expect(processExitsWith: .success) {
            let thread = Thread { while true { pause() } }
            thread.start()
            do throws(Failure) {
                try Confinement.wallIn()
                fatalError("walled in beside another thread")
            } catch {
                guard error.code == .sandboxUnavailable, error.detail?.contains("threads") == true else {
                    fatalError("\(error)")
                }
            }
        }
    }

    // MARK: A kernel that cannot

    @Test(
        "a kernel without either wall stops the work, with a way out",
        arguments: ["landlock_create_ruleset", "seccomp prctl"])
    func kernel(without calls: String) throws {
        let file = Hostile.honestPhoto
        let refused = try CommandLineRun.run(withoutCalls: calls, "probe", "--json", file)
        #expect(refused.status == 1)
        #expect(refused.object?["code"] as? String == "sandbox-unavailable", "\(refused.errors)")
        #expect(refused.output.contains("RUSHES_SANDBOX=off"))
        let allowed = try CommandLineRun.run(
            withoutCalls: calls, environment: ["RUSHES_SANDBOX": "off"], "probe", "--json", file)
        #expect(allowed.status == 0, "\(allowed.errors)")
        #expect(allowed.object?["outcome"] as? String == "accept")
        #expect(allowed.errors.contains("WARNING: RUSHES_SANDBOX=off"))
    }

    @Test(
        "the setting is on, off or a mistake",
        arguments: [(nil, true), ("", true), ("on", true), ("off", false), ("Off", nil), ("0", nil), ("no", nil)]
            as [(String?, Bool?)])
    func setting(_ value: String?, _ isWalledIn: Bool?) {
        var environment = [MediaSettings.workerVariable: Bench.program("rushes-media")]
        environment[MediaSettings.sandboxVariable] = value
        let settings = try? MediaSettings.standard(environment: environment)
        #expect(settings?.isWalledIn == isWalledIn)
    }
}
