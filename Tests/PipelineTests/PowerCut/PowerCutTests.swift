import Backend
import Digests
import Foundation
import Ingest
import Testing
import Vocabulary

/// The power goes at any moment of an ingest, on a disk that keeps only what was synced. Then the same command is given again.
@Suite struct PowerCutTests {
    /// Restarts for each way of taking files; `RUSHES_POWER_CUTS` sets another number, `all` for every cut there is.
    static let restartCount = 16
    /// `RUSHES_SEED` repeats a run's choice of cuts.
    static let seed: UInt64 =
        ProcessInfo.processInfo.environment["RUSHES_SEED"].flatMap { UInt64($0) } ?? .random(in: 0..<1_000_000)

    struct Cut: Sendable {
        /// Entries of the journal that have happened.
        var index: Int
        var description: String
        var found: [String: StrictDisk.Contents]
    }

    @Test(.timeLimit(.minutes(15)), arguments: Recording.Way.allCases)
    func thePowerMayGoAtAnyMoment(way: Recording.Way) async throws {
        print("power cuts (\(way)): RUSHES_SEED=\(Self.seed)")
        let scratch = try ScratchFolder()
        let recording = try await onThread {
            try Recording.make(way, recorder: try Self.build(in: scratch.path), in: scratch.path)
        }
        let cuts = try Self.cuts(of: recording)
        let names = recording.journal.entries.compactMap { entry in
            if case .step(let name) = entry { name } else { nil }
        }
        // A recorder that misses a side would make everything pass.
        for expected in ["files.commit", "files.link", "files.remove", "catalog.staged", "ledger.seal"] {
            #expect(names.contains(expected), "\(names)")
        }
        #expect(cuts.count > 200)
        if way == .moved { try Self.requireSyncOfMoved(recording) }
        try Self.requireEveryOriginal(recording, cuts)
        for cut in cuts { try await Self.requireWhatIsWrittenDown(recording, cut) }
        let chosen = Self.choose(cuts)
        for cut in chosen { try await onThread { try Self.restart(recording, after: cut) } }
        print(
            "power cuts (\(way)): \(cuts.count) different disks examined, \(chosen.count) started from; \(names.count) durable steps"
        )
    }

    /// The recorder is C, to be preloaded: it sees SQLite's writes as well as ours.
    private static func build(in folder: String) throws -> String {
        let library = folder + "/recorder.so"
        let source = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("recorder.c")
        let compiler = Process()
        compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        compiler.arguments = ["cc", "-shared", "-fPIC", "-O1", "-o", library, source.path, "-ldl", "-lpthread"]
        try compiler.run()
        compiler.waitUntilExit()
        guard compiler.terminationStatus == 0 else { throw Recording.Failed(reason: "cc failed") }
        return library
    }

    // MARK: Cuts

    /// Every different disk that a cut could leave: at each entry with nothing kept that was not synced, with all of it, with some of it, and
    /// with the file torn that was just being synced.
    static func cuts(of recording: Recording) throws -> [Cut] {
        var disk = recording.start
        var random = SeededGenerator(seed: seed)
        var seen: Set<[String: StrictDisk.Contents]> = []
        var cuts: [Cut] = []
        let entries = recording.journal.entries
        for index in 0...entries.count {
            func add(_ kind: String, _ found: [String: StrictDisk.Contents]) {
                guard seen.insert(found).inserted else { return }
                cuts.append(
                    Cut(
                        index: index,
                        description: "\(kind), after entry \(index) \(index > 0 ? "\(entries[index - 1])" : "")",
                        found: found))
            }
            add("nothing kept", disk.cut(.none))
            add("all names kept", disk.cut(.all))
            add("some names kept", disk.cut(.some(seed: random.next())))
            guard index < entries.count else { break }
            if case .syncFile(let inode, let copy) = entries[index] {
                add("torn", disk.cut(.all, torn: (inode, copy, random.next())))
            }
            try disk.apply(entries[index])
        }
        return cuts
    }

    /// Spread over the whole run, with a different place in each stretch for each seed.
    static func choose(_ cuts: [Cut]) -> [Cut] {
        let wanted = ProcessInfo.processInfo.environment["RUSHES_POWER_CUTS"]
        let count = wanted == "all" ? cuts.count : min(wanted.flatMap { Int($0) } ?? restartCount, cuts.count)
        var random = SeededGenerator(seed: seed)
        return (0..<count).map { stretch in
            cuts[Int.random(in: stretch * cuts.count / count..<(stretch + 1) * cuts.count / count, using: &random)]
        }
    }

    // MARK: What must hold

    /// Before anything is started again: the bytes of every original are on the card or in the home.
    static func requireEveryOriginal(_ recording: Recording, _ cuts: [Cut]) throws {
        let originals = Set(try recording.originals().values)
        var hashes: [StrictDisk.Contents: SHA256Digest] = [:]
        for cut in cuts {
            var found: Set<SHA256Digest> = []
            for contents in cut.found.values {
                if hashes[contents] == nil { hashes[contents] = Digest.sha256([UInt8](try recording.bytes(contents))) }
                if let hash = hashes[contents] { found.insert(hash) }
            }
            #expect(found.isSuperset(of: originals), "\(recording.way), \(cut.description)")
        }
    }

    /// Whoever wrote the files that are moved may not have synced them.
    static func requireSyncOfMoved(_ recording: Recording) throws {
        let synced = recording.journal.entries.compactMap { entry in
            if case .syncFile(let inode, _) = entry { inode } else { nil }
        }
        for name in Recording.picks {
            #expect(synced.contains(try #require(recording.start.inode(of: "card/" + name))), "\(name)")
        }
    }

    /// As the power cut left it, nobody having mended anything: what the catalog and the ledger say is so, and what lies about has an owner
    /// in them. So the order of the writes is right, whatever recovery could make good.
    static func requireWhatIsWrittenDown(_ recording: Recording, _ cut: Cut) async throws {
        // A folder of its own: a connection that is closed after the check tidies up by name, and must not do so in the next cut's.
        let scratch = try ScratchFolder()
        try recording.restore(cut.found, at: scratch.path + "/r")
        var findings = try await BoxCheck.run(home: scratch.path + "/r/home")
        findings += try await BackendCheck.run(dataFolder: scratch.path + "/r/home/backend")
        #expect(findings.isEmpty, "\(recording.way), RUSHES_SEED=\(seed), \(cut.description)")
    }

    static func restart(_ recording: Recording, after cut: Cut) throws {
        try recording.restore(cut.found)
        let place: Comment = "\(recording.way), RUSHES_SEED=\(seed), \(cut.description)"
        let ended = try Programs.run(recording.command, recording.environment)
        #expect(ended.status == 0, "\(place): \(ended.errors)")
        let status = try Programs.run(["status", "--json"], recording.environment)
        let items = try StatusLine.read(status.output)
        #expect(items.map(\.name).sorted() == Recording.itemNames, "\(place): \(items) \(ended.errors)")
        #expect(items.allSatisfy { $0.state == "ready" && !$0.outputs.isEmpty }, "\(place): \(items)")
        let check = try Programs.run(["check"], recording.environment)
        #expect(check.status == 0, "\(place): \(check.output)\(check.errors)")
        if recording.way == .copied {
            #expect(try recording.originalsOnCard(), place)
        } else {
            #expect(try FileManager.default.contentsOfDirectory(atPath: recording.card).isEmpty, place)
        }
    }
}
