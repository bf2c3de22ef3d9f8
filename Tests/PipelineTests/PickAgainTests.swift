import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Testing
import Vocabulary

/// What is picked twice, in part or with something new beside it, against the real backend.
@Suite struct PickAgainTests {
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

    @Test(.timeLimit(.minutes(2))) func manyThatAreThereAlreadyAreAskedForByTheirList() async throws {
        let stage = try await Stage()
        let count = 20
        for number in 1...count { try stage.write("\(number).mp4", .video, size: 1000 + number, seed: number) }
        let shoot = "Anna & Ben + 20 % „Größe“/?"
        let (_, items) = try await stage.ingest(stage.settings(), shoot: shoot, prepare: .original)
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0)
        let (again, _) = try await stage.ingest(stage.settings(network), shoot: shoot, prepare: .original)
        #expect(again.picks.map(\.outcome) == Array(repeating: .alreadyThere, count: count))
        #expect(network.exchanges.count <= 8, "\(network.exchanges.map(\.url))")
        #expect(network.exchanges.contains { $0.url.contains("/v1/items?shoot=") && $0.status == 200 })
        // What the list does not show is still asked for: the backend has lost it.
        let client = HTTPClient()
        let gone = try #require(items.last?.item)
        var request = HTTPRequest(.delete, "http://localhost/v1/items/\(gone)")
        request.socketPath = stage.backend.socket
        #expect(try await client.send(request).status == 204)
        let (lost, _) = try await stage.ingest(stage.settings(), shoot: shoot, prepare: .original)
        #expect(lost.picks.filter { $0.outcome == .lost }.map(\.item) == [gone])
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
        let away = LossyTransport.away()
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

    @Test(.timeLimit(.minutes(2))) func theSameBytesTwiceInOnePickAreSentAndStoredOnce() async throws {
        let stage = try await Stage()
        for name in ["a/1.jpg", "b/2.jpg", "c/3.jpg"] { try stage.write(name, .photo, size: 300_000) }
        // The first part is on its way until another item sends or waits.
        let isDecided = Signal()
        let puts = Tally()
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .put, request.headers["Content-MD5"] != nil else { return nil }
            if puts.next() == 1 { await isDecided.wait() } else { isDecided.give() }
            return nil
        }
        let box = try await Box.open(stage.settings(network))
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        try await box.run(until: .itemsFinal(report.items)) { event in
            if case .item(let item) = event, item.waiting?.hasSuffix("has the same bytes") == true { isDecided.give() }
        }
        #expect(try await box.items(report.items).map(\.state) == [.ready, .ready, .ready])
        #expect(puts.total == 1)
        let blobs = try FileManager.default.subpathsOfDirectory(atPath: stage.backend.folder + "/data/blobs")
        #expect(blobs.count { $0.split(separator: "/").last?.hasPrefix("u-") ?? false } == 1)
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
        let away = LossyTransport.away()
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
        let away = LossyTransport.away()
        _ = try? await stage.ingest(stage.settings(away, patience: 0.5), shoot: "one", prepare: .original, move: true)
        let (report, items) = try await stage.ingest(stage.settings(), shoot: "two", prepare: .original, move: true)
        #expect(report.picks.map(\.outcome) == [.joined])
        #expect(items.map(\.shoot) == ["one"] && items.map(\.state) == [.ready])
        try await stage.end()
    }
}
