import Files
import Foundation
import TestStores
import Testing
import Vocabulary

/// Files that take over the decoder, among good ones, through the whole program: `hijacked-media` is the worker that ships with a decoder that
/// does what such a file says.
@Suite(.enabled(if: TestStore.waits)) struct HostileIngestTests {
    private static let deeds: [String: FailureCode] = [
        "crashes": .mediaCrashed, "hangs": .mediaTimeout, "forks": .mediaCrashed, "allocates": .overBudget,
    ]

    @Test(.timeLimit(.minutes(10))) func eachEndsWithItsCodeAndHoldsUpNoOther() async throws {
        let scratch = try ScratchFolder()
        let card = scratch.path + "/card"
        try Files.makeFolder(card)
        var expected: [String: String] = [:]
        for (deed, code) in Self.deeds {
            for (model, ending) in [("exif-orientation-6.jpg", "jpg"), ("conforming.mp4", "mp4")] {
                try Self.hijack(Programs.fixtures + "/" + model, deed, to: "\(card)/\(deed).\(ending)")
                expected["\(deed).\(ending)"] = code.rawValue
            }
        }
        for name in ["exif-orientation-6.jpg", "conforming.mp4", "picture.png", "portrait-rotated-90.mov"] {
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: card + "/" + name)
            expected[name] = "ready"
        }
        let environment = [
            "RUSHES_HOME": scratch.path + "/home", "RUSHES_MEDIA_SILENCE": "5",
            "RUSHES_MEDIA_WORKER": URL(fileURLWithPath: Programs.rushes).deletingLastPathComponent().path
                + "/hijacked-media",
        ]
        let ended = try await onThread {
            try Programs.run(["ingest", card, "--shoot", "hostile", "--memory", "256M", "--json"], environment)
        }
        #expect(ended.status == 3, "\(ended.errors)")
        let items = try StatusLine.read(ended.output)
        let came = Dictionary(
            uniqueKeysWithValues: items.map { ($0.name, $0.reason?.code.rawValue ?? $0.state) })
        #expect(came == expected)
        let check = try Programs.run(["check"], environment)
        #expect(check.status == 0, "\(check.output)\(check.errors)")
        // The originals are at the backend, and nothing half made is anywhere.
        #expect(try Files.names(in: scratch.path + "/home/staging") == ["CACHEDIR.TAG"])
        let all = FileManager.default.enumerator(atPath: scratch.path)?.compactMap { $0 as? String } ?? []
        #expect(all.filter { $0.contains(Files.temporaryPrefix) } == [])
        #expect(try Files.names(in: scratch.path + "/home/backend/work") == [])
        #expect(try Self.processes(using: scratch.path) == [])
    }

    /// An honest file with a mark at its end, by which the decoder knows what it is to do.
    private static func hijack(_ model: String, _ deed: String, to path: String) throws {
        var bytes = try Data(contentsOf: URL(fileURLWithPath: model))
        bytes += [0, 0, 0, 40] + Array("free".utf8)
        bytes += Array("RUSHES-HIJACK \(deed)".padding(toLength: 32, withPad: " ", startingAt: 0).utf8)
        try bytes.write(to: URL(fileURLWithPath: path))
    }

    /// Processes that were started for this home: they hold one of its files, or are named for it.
    private static func processes(using folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").filter { pid in
            guard Int32(pid) != nil, pid != "\(getpid())" else { return false }
            let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/fd")) ?? []
            return names.contains { name in
                let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(pid)/fd/\(name)")
                return target?.hasPrefix(folder + "/") ?? false
            }
        }
    }
}
