import Files
import Foundation
import Glibc
import MediaJobs
import Testing
import Vocabulary

/// Real media processes and a folder of their own for one test.
struct Bench {
    let folder: String
    let input: String
    let jobs: MediaJobs

    /// - Parameter program: `rogue-media`, which misbehaves as the file's name says, `rushes-media`, or the path of another one.
    init(
        _ program: String = "rogue-media",
        limits: MediaLimits = MediaLimits(memoryBytes: 1 << 30, outputBytesMax: 1 << 20),
        startMax: Duration = .seconds(60), silenceMax: Duration = .seconds(60), jobTimeMax: Duration = .seconds(120),
        cpuSecondsMax: Int = 60,
        silentCPUTimeMax: Duration = .seconds(60), restartMax: Int = 20,
        processCountMax: Int = 2, jobsPerProcessMax: Int = 256, idleBytesMax: Int = 512 << 20, isWalledIn: Bool = true
    ) throws {
        folder = try Self.makeFolder()
        input = folder + "/input"
        try Files.write(Array("the input's bytes".utf8), to: input)
        var settings = MediaSettings(
            workerPath: program.hasPrefix("/") ? program : Self.program(program), processCountMax: processCountMax,
            limits: limits,
            silenceMax: silenceMax, startMax: startMax, jobTimeMax: jobTimeMax, cpuSecondsMax: cpuSecondsMax,
            isWalledIn: isWalledIn)
        settings.silentCPUTimeMax = silentCPUTimeMax
        settings.restartMax = restartMax
        settings.jobsPerProcessMax = jobsPerProcessMax
        settings.idleBytesMax = idleBytesMax
        jobs = MediaJobs(settings)
    }

    /// Programs lie beside the tests.
    static func program(_ name: String) -> String {
        let own = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        return Files.folder(of: own) + "/" + name
    }

    static func makeFolder() throws -> String {
        let path = NSTemporaryDirectory() + "/rushes-media-jobs-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        return path
    }

    func thumb(_ misdeed: String) async throws(Failure) -> (ThumbReport, [SealedFile]) {
        try await jobs.thumb(input, name: misdeed, settings: ThumbSettings(sizes: [512]), into: folder)
    }

    func failure(_ misdeed: String) async -> Failure? {
        do throws(Failure) {
            _ = try await thumb(misdeed)
            return nil
        } catch { return error }
    }

    /// What lies in the folder beside the input.
    func made() throws -> [String] { try Files.names(in: folder).filter { $0 != "input" } }

    func close() async {
        await jobs.shutDown()
        try? FileManager.default.removeItem(atPath: folder)
    }
}
