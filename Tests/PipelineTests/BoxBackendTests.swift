import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

/// Cards from pick to ready, through networks and disks that fail.
@Suite struct BoxBackendTests {
    @Test(.timeLimit(.minutes(2))) func aCardGoesFromPickToReadyAndLeavesStaging() async throws {
        let stage = try await Stage()
        try stage.write("DCIM/clip.mp4", .video, size: 9 << 20)
        try stage.write("DCIM/clip.XMP", .sidecar, size: 10, seed: 2)
        try stage.write("DCIM/photo.jpg", .photo, size: 5000, seed: 3)
        try stage.write("DCIM/two\nlines 📸.wav", .sound, size: 500, seed: 4)
        try stage.write("DCIM/cut.mov", .cut, size: 700, seed: 5)
        try stage.write("notes.txt", .text, size: 7, seed: 6)
        try stage.write(".DS_Store", .text, size: 7)
        try Files.write([], to: stage.scratch.path + "/card/zero.mp4")
        let (report, items) = try await stage.ingest(stage.settings())
        #expect(report.ignored.map(\.reason) == [.systemFile])
        let ends = Dictionary(
            uniqueKeysWithValues: items.map { ($0.name, $0.reason?.code.rawValue ?? $0.state.rawValue) })
        #expect(
            ends == [
                "clip.mp4": "ready", "photo.jpg": "ready", "two\nlines 📸.wav": "ready", "cut.mov": "truncated",
                "notes.txt": "not-media", "zero.mp4": "empty",
            ])
        #expect(items.filter { $0.state == .ready }.allSatisfy { $0.confirmedBytes == $0.bytes && $0.bytes > 0 })
        // Nothing stays: the original of a rejected clip is confirmed at the backend, and what is no media is still on the card.
        #expect(try stage.staged() == [])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(5)), arguments: 1...8 as ClosedRange<UInt64>)
    func aLossyNetworkLosesNothingAndNoAcknowledgedPartIsSentAgain(seed: UInt64) async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 20 << 20, seed: 1)
        try stage.write("a.xmp", .sidecar, size: 100, seed: 2)
        for index in 0..<6 { try stage.write("p\(index).jpg", .photo, size: 3000 + index, seed: 10 + index) }
        let network = LossyTransport(HTTPClient(), seed: seed, chance: 0.3, faultsMax: 120)
        let (_, items) = try await stage.ingest(stage.settings(network))
        #expect(items.map(\.state) == Array(repeating: .ready, count: 7), "seed \(seed)")
        #expect(network.sentAgain == [], "seed \(seed)")
        #expect(network.exchanges.contains { $0.fate != .pass }, "the network was good: the test shows nothing")
        #expect(try stage.staged() == [])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aPartWhoseSessionIsGoneStartsTheUploadOverInItsNextGeneration() async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 20 << 20)
        let socket = stage.backend.socket
        let isAborted = Mutex(false)
        // The third part finds its session aborted.
        let puts = Tally()
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .put, request.headers["Content-MD5"] != nil else { return nil }
            guard puts.next() == 3 else { return nil }
            let id = try? await stage.openUploads(socket).first
            guard let id else { return nil }
            let gone = HTTPRequest(.delete, "http://localhost/v1/uploads/\(id)", socketPath: socket)
            _ = try? await HTTPClient().send(gone)
            isAborted.withLock { $0 = true }
            return HTTPResponse(status: 404)
        }
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        #expect(isAborted.withLock { $0 })
        #expect(items.map(\.state) == [.ready])
        #expect(network.exchanges.contains { $0.url.hasSuffix("/reopen") })
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aFullDiskPausesTheRunWithOneReasonAndNothingIsLost() async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 1000)
        var settings = stage.settings()
        settings.bounds.spaceMarginBytes = 1 << 60
        let failure = await #expect(throws: Failure.self) { try await stage.ingest(settings) }
        #expect(failure?.code == .diskFull)
        let (report, items) = try await stage.ingest(stage.settings())
        #expect(report.picks.map(\.outcome) == [.joined])
        #expect(items.map(\.state) == [.ready])
        #expect(items.map(\.generation) == [1])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aMoveWithinOneFileSystemNeedsNoRoom() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        var settings = stage.settings()
        settings.bounds.spaceMarginBytes = 1 << 60
        let (_, items) = try await stage.ingest(settings, prepare: .original, move: true)
        #expect(items.map(\.state) == [.ready])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aBackendThatIsAwayIsOneReasonAndBurnsNoAttempts() async throws {
        let stage = try await Stage()
        for index in 0..<5 { try stage.write("\(index).jpg", .photo, size: 1000, seed: index) }
        let away = LossyTransport.away()
        let said = Mutex<[String]>([])
        let box = try await Box.open(stage.settings(away, patience: 0.5))
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        let failure = await #expect(throws: Failure.self) {
            try await box.run(until: .itemsFinal(report.items)) { event in
                if case .waiting(let reason?) = event { said.withLock { $0.append(reason) } }
            }
        }
        #expect(failure?.code == .busy)
        #expect(Set(said.withLock { $0 }).count == 1)
        for item in report.items { #expect(try await box.show(item).attempts == 0) }
        let (_, items) = try await stage.ingest(stage.settings())
        #expect(items.map(\.state) == Array(repeating: .ready, count: 5))
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func oneItemThatTheBackendRefusesHoldsUpNoOther() async throws {
        let stage = try await Stage()
        try stage.write("bad.jpg", .photo, size: 1000, seed: 1)
        for index in 0..<4 { try stage.write("good\(index).jpg", .photo, size: 1000, seed: 2 + index) }
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .post, case .bytes(let body) = request.body else { return nil }
            return String(decoding: body, as: UTF8.self).contains("bad.jpg") ? HTTPResponse(status: 500) : nil
        }
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        #expect(items.filter { $0.state == .ready }.count == 4)
        #expect(items.first { $0.name == "bad.jpg" }?.state == .failed)
        // Its original is kept.
        #expect(try stage.staged().count == 1)
        // Picked again it is tried again, as the next generation of the same item.
        let (report, again) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(report.picks.contains { $0.outcome == .again })
        #expect(again.first { $0.name == "bad.jpg" }?.state == .ready)
        #expect(again.first { $0.name == "bad.jpg" }?.generation == 2)
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func bytesThatChangeInStagingAreTakenAgainFromTheSource() async throws {
        let stage = try await Stage()
        let source = try stage.write("a.jpg", .photo, size: 1000)
        let isDamaged = Mutex(false)
        // Between the hash and the upload a byte turns: the parts' own hashes cannot show it.
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .post, request.url.hasSuffix("/v1/uploads"), isDamaged.withLock({ !$0 }) else {
                return nil
            }
            isDamaged.withLock { $0 = true }
            let staged = FileHandle(forUpdatingAtPath: stage.onlyStagedOriginal ?? "")
            try? staged?.seek(toOffset: 16_000)
            staged?.write(Data([0xAA, 0x55, 0xAA]))
            try? staged?.close()
            return nil
        }
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        #expect(items.map(\.state) == [.ready])
        #expect(items.allSatisfy { $0.generation > 1 })
        let box = try await Box.open(stage.settings())
        let original = try await box.show(items[0].item).files.first { $0.role == .original }
        #expect(original?.confirmedSHA256 == (try Files.sha256(of: .reading(source))))
        // What is to be sent is told once, also where it was taken twice.
        let view = try #require(try await BoxView.open(home: stage.home))
        let story = try await view.show(items[0].item).history
        #expect(story.filter { $0.entry.what == .planned }.count == 1)
        #expect(try stage.staged() == [])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aMovedPickLeavesItsFolderAndWhatIsNoMediaStaysInStaging() async throws {
        let stage = try await Stage()
        let clip = try stage.write("a.mp4", .video, size: 5000)
        let note = try stage.write("n.txt", .text, size: 7)
        let (_, items) = try await stage.ingest(stage.settings(), move: true)
        #expect(Set(items.map(\.state)) == [.ready, .rejected])
        #expect(try Files.facts(clip) == nil && Files.facts(note) == nil)
        #expect(items.filter { !$0.staged.isEmpty }.map(\.name) == ["n.txt"])
        #expect(try stage.staged().count == 1)
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(5)), arguments: 1...6 as ClosedRange<UInt64>)
    func aRunThatIsStoppedAnywhereGoesOnAndSendsNoAcknowledgedPartAgain(seed: UInt64) async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 30 << 20, seed: 1)
        for index in 0..<5 { try stage.write("p\(index).jpg", .photo, size: 3000, seed: 10 + index) }
        let network = LossyTransport(HTTPClient(), seed: seed, chance: 0.1, faultsMax: 60)
        var random = BoxRandom.seeded(seed)
        for _ in 0..<6 {
            let stopAfter = Int.random(in: 1...14, using: &random)
            let seen = Tally()
            let box = try await Box.open(stage.settings(network))
            let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .both))
            let (stopSign, stop) = AsyncStream.makeStream(of: Void.self)
            let run = Task {
                try await box.run(until: .itemsFinal(report.items)) { _ in
                    if seen.next() == stopAfter { stop.yield() }
                }
            }
            let watch = Task {
                for await _ in stopSign { run.cancel() }
            }
            _ = try? await run.value
            stop.finish()
            await watch.value
        }
        let (_, items) = try await stage.ingest(stage.settings(network))
        #expect(items.map(\.state) == Array(repeating: .ready, count: 6), "seed \(seed)")
        #expect(items.allSatisfy { $0.generation == 1 }, "seed \(seed)")
        #expect(network.sentAgain == [], "seed \(seed)")
        #expect(try await Box.open(stage.settings()).items().count == 6)
        try await stage.end()
    }
}
