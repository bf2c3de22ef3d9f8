import Curl
import Digests
import Files
import Foundation
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

/// The real box against the real backend over a Unix socket, with a network that the test chooses. Every test ends with the check of both
/// sides.
struct Stage {
    let scratch: ScratchFolder
    let backend: RunningBackend

    /// - Parameter start: the backend below a folder.
    init(start: (String) async throws -> RunningBackend = { try await RunningBackend.start(in: $0) }) async throws {
        scratch = try ScratchFolder()
        backend = try await start(scratch.path + "/b")
    }

    var home: String { scratch.path + "/home" }
    var card: RawPath { RawPath(scratch.path + "/card") }

    @discardableResult
    func write(_ name: String, _ kind: Media, size: Int, seed: Int = 1) throws -> String {
        let path = scratch.path + "/card/" + name
        try Files.makeFolder(Files.folder(of: path))
        try Files.write(try kind.bytes(padding: size, seed: seed), to: path)
        return path
    }

    func settings(_ transport: any UploadTransport = HTTPClient(), patience: Double? = 20) -> IngestSettings {
        var settings = IngestSettings(
            home: home, server: .socket(path: backend.socket), media: .running(Media.jobs), transport: transport)
        settings.patience = patience
        settings.random = .seeded(11)
        settings.bounds.spaceMarginBytes = 1 << 20
        // Waits of seconds pass in milliseconds.
        settings.clock.sleep = { seconds in try? await Task.sleep(for: .seconds(seconds / 20)) }
        return settings
    }

    /// Takes the card and sees it through.
    @discardableResult
    func ingest(
        _ settings: IngestSettings, shoot: String = "test", prepare: PrepareMode = .both, move: Bool = false
    ) async throws -> (EnrolReport, [ItemStatus]) {
        let box = try await Box.open(settings)
        let report = try await box.enrol(
            PickRequest(paths: [card], shoot: shoot, move: move, prepare: prepare))
        try await box.run(until: .itemsFinal(report.items)) { _ in }
        return (report, try await box.items(report.items))
    }

    /// What lies in staging beside its tag.
    func staged() throws -> [String] { try Files.names(in: home + "/staging").filter { $0 != "CACHEDIR.TAG" } }

    func end() async throws {
        #expect(try await BoxCheck.run(home: home) == [])
        await backend.backend.stop()
        #expect(try await backend.check() == [])
    }
}

enum Pattern {
    static func bytes(_ count: Int, seed: Int) -> [UInt8] {
        var random = BoxRandom.seeded(UInt64(seed))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return Array(bytes.prefix(count))
    }
}

extension LossyTransport {
    /// Parts whose success the box heard, each as often as it was sent after that. A part is what its URL names: upload, generation, number.
    var sentAgain: [String] {
        var heard: Set<String> = []
        var again: [String] = []
        for exchange in exchanges {
            guard exchange.contentMD5 != nil, let token = exchange.url.split(separator: "/").last else { continue }
            let part = token.split(separator: ".").prefix(3).joined(separator: ".")
            if heard.contains(part) { again.append(part) }
            if let status = exchange.status, (200..<300).contains(status) { heard.insert(part) }
        }
        return again
    }
}

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

    @Test(.timeLimit(.minutes(2))) func aSecondIngestCopiesNothingAndSendsNothing() async throws {
        let stage = try await Stage()
        let clip = try stage.write("clip.mp4", .video, size: 200_000)
        try stage.write("no.txt", .text, size: 7)
        try await stage.ingest(stage.settings())
        // Another name and another time: only the bytes count.
        try FileManager.default.moveItem(atPath: clip, toPath: stage.scratch.path + "/card/other.mp4")
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0)
        let (report, items) = try await stage.ingest(stage.settings(network))
        #expect(items.count == 2)
        let refused = try #require(items.first { $0.name == "no.txt" }?.reason)
        #expect(refused.code == .notMedia)
        #expect(Set(report.picks.map(\.outcome)) == [.alreadyThere, .refusedBefore(refused)])
        // The backend is asked what it holds of the one that it said it had.
        #expect(network.exchanges.map(\.method) == [.get])
        #expect(try stage.staged() == [])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aSidecarThatWasEditedAfterwardsIsSentAfterItsItem() async throws {
        let stage = try await Stage()
        try stage.write("clip.mp4", .video, size: 200_000)
        try stage.write("clip.xmp", .sidecar, size: 50, seed: 1)
        let (_, before) = try await stage.ingest(stage.settings())
        try stage.write("clip.xmp", .sidecar, size: 50, seed: 2)
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0)
        let (report, after) = try await stage.ingest(stage.settings(network))
        #expect(report.picks.map(\.outcome) == [.alreadyThere])
        #expect(after.map(\.item) == before.map(\.item))
        #expect(after.map(\.state) == [.ready])
        #expect(after.map(\.generation) == [2])
        // Only the new sidecar travels.
        #expect(network.exchanges.filter { $0.contentMD5 != nil }.map(\.bytes) == [62])
        let files = try await Box.open(stage.settings()).show(after[0].item).files.filter { $0.role == .sidecar }
        #expect(files.count == 2 && files.allSatisfy { $0.confirmedSHA256 == $0.sha256 && $0.stagedPath == nil })
        // Once more, and there is nothing left to do.
        network.forget()
        try await stage.ingest(stage.settings(network))
        #expect(network.exchanges.map(\.method) == [.get])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aSidecarThatComesWhileItsItemIsUnfinishedGoesWithIt() async throws {
        let stage = try await Stage()
        try stage.write("clip.mp4", .video, size: 200_000)
        let away = LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
        _ = try? await stage.ingest(stage.settings(away, patience: 0.5), prepare: .original)
        try stage.write("clip.xmp", .sidecar, size: 50)
        let (report, items) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(report.picks.map(\.outcome) == [.joined])
        #expect(items.map(\.state) == [.ready])
        let files = try await Box.open(stage.settings()).show(items[0].item).files.filter { $0.role == .sidecar }
        #expect(files.map(\.name) == ["clip.xmp"] && files.allSatisfy { $0.confirmedSHA256 == $0.sha256 })
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aSidecarIsTakenOfACopiedItemThatIsToBeMovedNowAndNotTheOtherWayRound()
        async throws
    {
        let stage = try await Stage()
        try stage.write("clip.mp4", .video, size: 2000)
        try await stage.ingest(stage.settings(), prepare: .original)
        try stage.write("clip.xmp", .sidecar, size: 50)
        let (copied, items) = try await stage.ingest(stage.settings(), prepare: .original, move: true)
        #expect(copied.picks.map(\.staysBehind) == [true])
        let box = try await Box.open(stage.settings())
        #expect(try await box.show(items[0].item).files.map(\.name).sorted() == ["clip.mp4", "clip.xmp"])
        #expect(try Files.names(in: stage.card.description) == ["clip.mp4", "clip.xmp"])

        for name in ["clip.mp4", "clip.xmp"] { try Files.remove(stage.card.description + "/" + name) }
        try stage.write("moved.mp4", .video, size: 3000, seed: 2)
        let moved = try Data(contentsOf: URL(fileURLWithPath: stage.card.description + "/moved.mp4"))
        try await stage.ingest(stage.settings(), prepare: .original, move: true)
        try Files.write([UInt8](moved), to: stage.card.description + "/moved.mp4")
        try stage.write("moved.xmp", .sidecar, size: 60, seed: 2)
        let (kept, _) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(kept.ignored.map(\.reason) == [.sidecarOfMoved])
        #expect(try Files.names(in: stage.card.description) == ["moved.mp4", "moved.xmp"])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func theSameBytesInAnotherShootAreANewItemThatSendsNoBytes() async throws {
        let stage = try await Stage()
        try stage.write("clip.mp4", .video, size: 200_000)
        try await stage.ingest(stage.settings(), prepare: .original)
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0)
        let (report, items) = try await stage.ingest(stage.settings(network), shoot: "other", prepare: .original)
        #expect(report.picks.map(\.outcome) == [.new])
        #expect(items.map(\.state) == [.ready])
        #expect(network.exchanges.filter { $0.method == .put && $0.contentMD5 != nil }.isEmpty)
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
        let puts = Mutex(0)
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .put, request.headers["Content-MD5"] != nil else { return nil }
            guard
                puts.withLock({
                    $0 += 1; return $0 == 3
                })
            else { return nil }
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

    @Test(.timeLimit(.minutes(2))) func theSameBytesTwiceInOnePickAreSentAndStoredOnce() async throws {
        let stage = try await Stage()
        for name in ["a/1.jpg", "b/2.jpg", "c/3.jpg"] { try stage.write(name, .photo, size: 300_000) }
        // The first part is on its way until another item sends or waits.
        let isDecided = Signal()
        let puts = Mutex(0)
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .put, request.headers["Content-MD5"] != nil else { return nil }
            let count = puts.withLock {
                $0 += 1; return $0
            }
            if count == 1 { await isDecided.wait() } else { isDecided.give() }
            return nil
        }
        let box = try await Box.open(stage.settings(network))
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        try await box.run(until: .itemsFinal(report.items)) { event in
            if case .item(let item) = event, item.waiting?.hasSuffix("has the same bytes") == true { isDecided.give() }
        }
        #expect(try await box.items(report.items).map(\.state) == [.ready, .ready, .ready])
        #expect(puts.withLock { $0 } == 1)
        let blobs = try FileManager.default.subpathsOfDirectory(atPath: stage.backend.folder + "/data/blobs")
        #expect(blobs.count { $0.split(separator: "/").last?.hasPrefix("u-") ?? false } == 1)
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
        let away = LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
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

    @Test(.timeLimit(.minutes(2)), arguments: [false, true])
    func theSameCommandAfterMidnightGoesOnWithWhatWasPickedBefore(move: Bool) async throws {
        let stage = try await Stage()
        for index in 0..<2 { try stage.write("\(index).jpg", .photo, size: 1000, seed: index) }
        func pick(_ day: String, _ transport: any UploadTransport = HTTPClient()) async throws -> (
            EnrolReport, [ItemStatus]
        ) {
            let box = try await Box.open(stage.settings(transport, patience: 0.5))
            let report = try await box.enrol(
                PickRequest(paths: [stage.card], shoot: day, isShootChosen: false, move: move, prepare: .original))
            try await box.run(until: .itemsFinal(report.items)) { _ in }
            return (report, try await box.items(report.items))
        }
        let away = LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
        await #expect(throws: Failure.self) { try await pick("2026-11-30", away) }
        let (report, items) = try await pick("2026-12-01")
        #expect(report.picks.map(\.outcome) == [.joined, .joined])
        #expect(items.map(\.state) == [.ready, .ready] && Set(items.map(\.shoot)) == ["2026-11-30"])
        // What is done stays what it is, too.
        if !move { #expect(try await pick("2026-12-02").0.picks.map(\.outcome) == [.alreadyThere, .alreadyThere]) }
        #expect(try await Box.open(stage.settings()).items().count == 2)
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func whatIsUnfinishedInAnotherShootIsWaitedForToo() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        let away = LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
        _ = try? await stage.ingest(stage.settings(away, patience: 0.5), shoot: "one", prepare: .original, move: true)
        let (report, items) = try await stage.ingest(stage.settings(), shoot: "two", prepare: .original, move: true)
        #expect(report.picks.map(\.outcome) == [.joined])
        #expect(items.map(\.shoot) == ["one"] && items.map(\.state) == [.ready])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func twoBoxesOnOneHomeShareTheWork() async throws {
        let stage = try await Stage()
        for index in 0..<10 { try stage.write("\(index).jpg", .photo, size: 100_000, seed: index) }
        let events = Mutex<[String]>([])
        var one = stage.settings()
        one.random = .seeded(1)
        var two = stage.settings()
        two.random = .seeded(2)
        async let first = stage.ingest(one)
        async let second: [ItemStatus] = { [two] in
            let box = try await Box.open(two)
            let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .both))
            try await box.run(until: .itemsFinal(report.items)) { event in
                switch event {
                case .following: events.withLock { $0.append("following") }
                case .tookOver: events.withLock { $0.append("took over") }
                case .item, .waiting, .note: break
                }
            }
            return try await box.items(report.items)
        }()
        let (ofFirst, ofSecond) = try await (first.1, second)
        #expect(ofFirst.allSatisfy { $0.state == .ready } && ofSecond.allSatisfy { $0.state == .ready })
        #expect(try await Box.open(stage.settings()).items().count == 10)
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aBoxWithAnotherBackendThanTheOneAtWorkIsRefusedAndTakesNothing() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        let away = LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
        let (isWorking, works) = AsyncStream.makeStream(of: Void.self)
        let firstBox = try await Box.open(stage.settings(away, patience: nil))
        _ = try await firstBox.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        let first = Task {
            try await firstBox.run(until: .stopped) { event in
                if case .waiting(_?) = event { works.yield() }
            }
        }
        for await _ in isWorking { break }
        try stage.write("b.jpg", .photo, size: 1000, seed: 2)
        var settings = stage.settings()
        settings.serverName = "https://elsewhere"
        let box = try await Box.open(settings)
        let ofPick = await #expect(throws: Failure.self) {
            try await box.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        }
        let ofRun = await #expect(throws: Failure.self) { try await box.run(until: .stopped) { _ in } }
        #expect(ofPick?.code == .alreadyRunning && ofRun?.code == .alreadyRunning)
        #expect(try await box.items().count == 1)
        first.cancel()
        await #expect(throws: Failure.self) { try await first.value }
        try await stage.ingest(stage.settings())
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func theBoxThatLooksOnTakesOverWhenTheOtherOneGoes() async throws {
        let stage = try await Stage()
        for index in 0..<3 { try stage.write("\(index).jpg", .photo, size: 1000, seed: index) }
        // The first one gets nowhere, and stays until it is told to go.
        let away = LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
        let (isWorking, works) = AsyncStream.makeStream(of: Void.self)
        let firstBox = try await Box.open(stage.settings(away, patience: nil))
        let report = try await firstBox.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        let first = Task {
            try await firstBox.run(until: .stopped) { event in
                if case .waiting(_?) = event { works.yield() }
            }
        }
        for await _ in isWorking { break }

        let events = Mutex<[String]>([])
        var settings = stage.settings()
        settings.random = .seeded(2)
        let box = try await Box.open(settings)
        let second = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test"))
        #expect(second.picks.allSatisfy { $0.outcome == .joined } && second.items == report.items)
        try await box.run(until: .itemsFinal(second.items)) { event in
            switch event {
            case .following(let process):
                events.withLock { $0.append("following") }
                #expect(process == Int(ProcessInfo.processInfo.processIdentifier))
                first.cancel()
            case .tookOver: events.withLock { $0.append("took over") }
            case .item, .waiting, .note: break
            }
        }
        await #expect(throws: Failure.self) { try await first.value }
        #expect(events.withLock { $0 } == ["following", "took over"])
        #expect(try await box.items(second.items).map(\.state) == Array(repeating: .ready, count: 3))
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
            let seen = Mutex(0)
            let box = try await Box.open(stage.settings(network))
            let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .both))
            let (stopSign, stop) = AsyncStream.makeStream(of: Void.self)
            let run = Task {
                try await box.run(until: .itemsFinal(report.items)) { _ in
                    if seen.withLock({
                        $0 += 1; return $0
                    }) == stopAfter {
                        stop.yield()
                    }
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

extension Stage {
    var onlyStagedOriginal: String? {
        (try? staged())?.first.map { home + "/staging/" + $0 + "/original" }
    }

    /// Uploads that the backend holds open, as the catalog of the box names them.
    func openUploads(_ socket: String) async throws -> [UploadID] {
        let box = try await Box.open(settings())
        var ids: [UploadID] = []
        for item in try await box.items() {
            for file in try await box.show(item.item).files where file.uploadState == .uploading {
                if let id = file.upload { ids.append(id) }
            }
        }
        return ids
    }
}
