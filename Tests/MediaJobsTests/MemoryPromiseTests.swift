import Files
import Foundation
import MediaJobs
import Synchronization
import Testing
import Vocabulary

/// `--memory` bounds all media processes together, bombs or not.
@Suite struct MemoryPromiseTests {
    static let memoryBytes = 256 << 20

    /// Bombs, pictures that fit only alone, and ordinary ones. Nil without the shared folder.
    private static let photos: [String]? = {
        let shared = ProcessInfo.processInfo.environment["RUSHES_SHARED"] ?? "../shared"
        let names = [
            "65536x65536.png", "decompression-bomb.gif", "giant-20000x14000.jpg", "libheif-fuzz-huge.heic",
            "iphone_15_pro.heic", "display-p3.jpg", "Landscape_6.jpg", "8bit-sRGB.jxl", "denali.webp", "adobe-rgb.tif",
            "progressive-telegram.jpg", "16bit-grey-alpha.png", "canon-r6-pruned.CR3", "canon_eos_6d.dng",
        ]
        let paths = names.map { "\(shared)/media/\($0)" }
        if paths.allSatisfy({ FileManager.default.fileExists(atPath: $0) }) { return paths }
        print("SKIPPED: MemoryPromiseTests, for there is no \(shared)/media; set RUSHES_SHARED")
        return nil
    }()

    @Test(.enabled(if: photos != nil))
    func allProcessesTogetherStayBelowItAndAllElseIsDone() async throws {
        let bench = try Bench(
            "rushes-media", limits: MediaLimits(memoryBytes: Self.memoryBytes), silenceMax: .seconds(600),
            jobTimeMax: .seconds(1200), cpuSecondsMax: 600)
        let photos = try #require(Self.photos)
        let most = Mutex(0)
        let watch = Task.detached {
            while !Task.isCancelled {
                let bytes = Self.residentBytes()
                most.withLock { $0 = max($0, bytes) }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        var made = 0
        var codes: [String: FailureCode] = [:]
        try await withThrowingTaskGroup(of: (String, Result<ThumbReport, Failure>).self) { group in
            for path in photos {
                let folder = bench.folder + "/" + UUID().uuidString
                try Files.makeFolder(folder)
                group.addTask {
                    do throws(Failure) {
                        let settings = ThumbSettings(sizes: ThumbSettings.standardSizes)
                        return (
                            path,
                            .success(try await bench.jobs.thumb(path, name: path, settings: settings, into: folder).0)
                        )
                    } catch { return (path, .failure(error)) }
                }
            }
            for try await (path, result) in group {
                let name = URL(fileURLWithPath: path).lastPathComponent
                switch result {
                case .success(let report):
                    made += report.outcome == .made ? 1 : 0
                    codes[name] = report.reason?.code
                case .failure(let failure): codes[name] = failure.code
                }
            }
        }
        watch.cancel()
        await bench.close()
        // The bombs are refused or fit; what they are never costs the others.
        let bombs: Set = ["65536x65536.png", "decompression-bomb.gif", "libheif-fuzz-huge.heic"]
        #expect(Set(codes.keys).isSubset(of: bombs), "\(codes)")
        #expect(made >= photos.count - bombs.count)
        let peak = most.withLock { $0 }
        #expect(peak > 0 && peak < Self.memoryBytes, "\(peak >> 20) MiB")
    }

    /// Of the media processes that this one has started: their share of what is mapped, or all of it where that is not told.
    private static func residentBytes() -> Int {
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
        let children = threads.flatMap { thread in
            (text("/proc/self/task/\(thread)/children") ?? "").split(separator: " ").map(String.init)
        }
        return Set(children).reduce(0) { total, child in
            let name = text("/proc/\(child)/comm") ?? ""
            guard name.hasPrefix("rushes-media") else { return total }
            if let rollup = text("/proc/\(child)/smaps_rollup"),
                let line = rollup.split(separator: "\n").first(where: { $0.hasPrefix("Pss:") }),
                let kilobytes = line.split(separator: " ").dropFirst().first.flatMap({ Int($0) })
            {
                return total + kilobytes << 10
            }
            let pages = text("/proc/\(child)/statm")?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            return total + pages * 4096
        }
    }

    private static func text(_ path: String) -> String? { try? String(contentsOfFile: path, encoding: .utf8) }
}
