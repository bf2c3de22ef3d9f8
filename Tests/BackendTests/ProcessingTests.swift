import Digests
import Files
import Foundation
import Synchronization
import Testing
import Vocabulary

@testable import Backend

/// Fails a number of times before it works.
private final class Failing: Sendable {
    let left: Mutex<Int>
    init(_ count: Int) { left = Mutex(count) }
    func next(_ failure: Failure) throws(Failure) {
        let fails = left.withLock { left in
            left -= 1
            return left >= 0
        }
        if fails { throw failure }
    }
}

@Suite struct ProcessingTests {
    private let crash = Failure(.mediaCrashed, "The media process died on this file.")

    private func ended(_ test: TestBackend, _ file: TestFile) async throws -> ItemDocument {
        try await test.client.upload(file)
        _ = try await test.client.attach(file)
        return try await test.client.item(file.item) { $0.state == .ready || $0.state == .rejected }
    }

    @Test func aVerdictRejectsTheItemAndKeepsTheVerifiedOriginal() async throws {
        let test = try await TestBackend(
            media: .photos { facts in
                ProbeReport(file: "", facts: facts, reason: Reason(.truncated, "The end is missing."))
            })
        let file = try TestFile("up-1")
        let item = try await ended(test, file)
        #expect(item.state == .rejected)
        #expect(item.reason?.code == .truncated)
        #expect(item.uploads.first?.sha256Recomputed == file.sha256)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func attachedOnceMoreWhatNeededTooMuchMemoryIsTriedAgainAndAVerdictStays() async throws {
        let once = Failing(1)
        let test = try await TestBackend(
            media: .photos { facts throws(Failure) in
                try once.next(Failure(.overBudget, "More memory than is allowed."))
                return ProbeReport(file: "", facts: facts)
            })
        let file = try TestFile("up-1")
        let item = try await ended(test, file)
        #expect(item.state == .rejected && item.reason?.code == .overBudget)
        _ = try await test.client.attach(file)
        let again = try await test.client.item(file.item) { $0.state == .ready }
        #expect(again.generation == item.generation + 1 && again.reason == nil)
        await test.backend.stop()

        let hopeless = try await TestBackend(
            media: .photos { facts in ProbeReport(file: "", facts: facts, reason: Reason(.corrupt, "x")) })
        let rejected = try await ended(hopeless, file)
        #expect(try await hopeless.client.attach(file).generation == rejected.generation)
        await hopeless.backend.stop()
    }

    @Test func mediaWorkThatCrashesIsTriedAgainAndThenTheReasonIsGiven() async throws {
        let twice = Failing(2)
        let test = try await TestBackend(
            media: .photos { facts throws(Failure) in
                try twice.next(crash)
                return ProbeReport(file: "", facts: facts)
            })
        #expect(try await ended(test, try TestFile("up-1")).state == .ready)
        await test.backend.stop()

        let always = Failing(.max)
        let hopeless = try await TestBackend(
            media: .photos { _ throws(Failure) in
                try always.next(crash)
                throw crash
            })
        let item = try await ended(hopeless, try TestFile("up-1"))
        #expect(item.state == .rejected)
        #expect(item.reason?.code == .mediaCrashed)
        #expect(always.left.withLock { $0 } == .max - RetryPolicy().failureMax)
        #expect(item.uploads.first?.sha256Recomputed != nil)
        await hopeless.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: hopeless.data).isEmpty)
    }

    @Test func bytesThatAreNotTheDeclaredOnesHaveToComeAgain() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        var wrong = file
        wrong.bytes = Array("some BYTES".utf8)
        // The parts are intact by their MD5, the whole is not what was declared.
        _ = try await test.client.open(file)
        try await test.client.sendParts(wrong)
        #expect(try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete()).status == 200)
        _ = try await test.client.attach(file)
        let waiting = try await test.client.item(file.item) { $0.state == .awaiting }
        #expect(waiting.generation == 2)
        #expect(waiting.uploads.first?.state == .expired)
        #expect(waiting.uploads.first?.sha256Recomputed == nil)
        let again: UploadSession = try await test.client.send(
            "POST", "/v1/uploads/up-1/reopen", ReopenUploadRequest(generation: 1)
        )
        .decoded()
        #expect(again.generation == 2)
        try await test.client.sendParts(file, generation: 2)
        #expect(
            try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete(generation: 2)).status == 200)
        let item = try await test.client.item(file.item) { $0.state == .ready }
        #expect(item.uploads.first?.sha256Recomputed == file.sha256)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func derivedFilesOfTheClientAreOfferedWhenTheyOpenAndMadeHereOtherwise() async throws {
        for opens in [true, false] {
            let test = try await TestBackend(
                media: MediaWork(
                    probe: { _, name throws(Failure) in
                        var facts = MediaFacts(kind: name == "poster.jpg" ? .photo : .video, format: .isoMedia)
                        facts.delivery = .encode
                        let isFine = name == "CLIP.MP4" || opens
                        return ProbeReport(
                            file: name, facts: facts, reason: isFine ? nil : Reason(.corrupt, "Damaged."))
                    },
                    transcode: { _, _, outputs, folder, _ throws(Failure) in
                        var files: [MadeFile] = []
                        for name in outputs {
                            files.append(
                                try MediaWork.made(
                                    name, name.videoRole, name.videoContentType, "made", folder))
                        }
                        return MadeVideo(reason: nil, previewColor: "#102030", files: files)
                    },
                    thumb: MediaWork.photos.thumb))
            var original = try TestFile("up-1", Array("original".utf8))
            original.filename = "CLIP.MP4"
            var rendition = try TestFile("up-2", Array("rendition".utf8))
            (rendition.role, rendition.name, rendition.filename) = (.rendition, "1080p", "1080p.mp4")
            var poster = try TestFile("up-3", Array("poster".utf8))
            (poster.role, poster.name, poster.filename) = (.poster, "poster", "poster.jpg")
            for file in [original, rendition, poster] { try await test.client.upload(file) }
            let request = AttachRequest(
                kind: .video, shoot: "wedding",
                uploads: [original, rendition, poster].map { .init(uploadID: $0.upload, role: $0.role, name: $0.name) })
            #expect(try await test.client.send("PUT", "/v1/items/item-1", request).status == 200)
            let item = try await test.client.item(original.item) { $0.state == .ready }
            let hashes = Set(item.renditions.map(\.sha256))
            let boards = ["storyboard", "storyboard-index"].map { Digest.sha256("\($0) of made") }
            let expected =
                opens
                ? [rendition.sha256, poster.sha256]
                : [Digest.sha256("1080p of made"), Digest.sha256("poster of made")]
            #expect(hashes == Set(expected + boards))
            #expect(item.previewColor == "#102030")
            let board = item.renditions.filter { $0.role == .storyboard }
            #expect(Set(board.map(\.contentType)) == ["image/jpeg", "text/vtt"])
            let playback: Playback = try await test.client.request("GET", "/v1/items/item-1/playback").decoded()
            #expect(playback.renditions.map(\.name) == ["1080p"])
            await test.backend.stop()
            #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
        }
    }

    @Test func aMediaWorkerDecidesNeitherTypeNorRoleOfWhatIsServed() async throws {
        let test = try await TestBackend(
            media: MediaWork(
                probe: MediaWork.photos.probe, transcode: MediaWork.photos.transcode,
                thumb: { _, name, sizes, folder throws(Failure) in
                    var files: [MadeFile] = []
                    for size in sizes {
                        files.append(
                            try MediaWork.made(ThumbSettings.name(of: size), .rendition, "text/html", name, folder))
                    }
                    return (ThumbReport(outcome: .made, previewColor: "</style>"), files)
                }))
        let rendition = try #require(try await ended(test, try TestFile("up-1")).renditions.first)
        #expect(rendition.role == .thumbnail)
        #expect(
            try await test.client.request("GET", try #require(rendition.url)).headers["content-type"] == "image/jpeg")
        await test.backend.stop()
    }

    @Test func whatTheMediaWorkerReportsWrongIsNotOffered() async throws {
        let test = try await TestBackend(
            media: MediaWork(
                probe: MediaWork.photos.probe, transcode: MediaWork.photos.transcode,
                thumb: { _, name, sizes, folder throws(Failure) in
                    var files: [MadeFile] = []
                    for size in sizes {
                        var file = try MediaWork.made(
                            ThumbSettings.name(of: size), .thumbnail, "image/jpeg", name, folder)
                        if size == sizes.last { file.output.sha256 = Digest.sha256("something else") }
                        files.append(file)
                    }
                    return (ThumbReport(outcome: .made), files)
                }))
        let item = try await ended(test, try TestFile("up-1"))
        #expect(item.state == .rejected)
        #expect(item.reason?.code == .outputInvalid)
        #expect(item.renditions.isEmpty)
        await test.backend.stop()
        let again = try await TestBackend(scratch: test.scratch)
        await again.backend.stop()
        // The objects of the failed attempts have no row and go with the next start.
        #expect(try await DirectoryBlobStore.open(test.data).keys().map(\.rawValue) == ["u-up-1.1"])
    }

    @Test func bytesThatTheStoreHasLostHaveToComeAgain() async throws {
        let test = try await TestBackend()
        let first = try TestFile("up-1")
        #expect(try await ended(test, first).state == .ready)
        let second = try TestFile("up-2", item: "item-2")
        #expect(try await test.client.open(second).alreadyStored)
        let store = try DirectoryBlobStore.open(test.data)
        try Files.remove(store.blobPath(try #require(BlobKey(rawValue: "u-up-1.1"))))
        _ = try await test.client.attach(second)
        let waiting = try await test.client.item(second.item) { $0.state == .awaiting }
        #expect(waiting.uploads.first?.state == .expired)
        // Nor is anybody else told any more that they are there.
        let third = try TestFile("up-3", item: "item-3")
        #expect(try await !test.client.open(third).alreadyStored)
        await test.backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func theSameBytesInPlaceOfLostOnesAreHadByAllWhoNameThem() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        #expect(try await ended(test, file).state == .ready)
        let store = try DirectoryBlobStore.open(test.data)
        let key = BlobKey.upload(StoreSession(upload: file.upload, generation: 1))
        try Files.remove(store.blobPath(key))
        let other = try TestFile("up-2", item: "item-2")
        let session = try await test.client.open(other)
        #expect(session.state == .open && !session.alreadyStored)
        #expect(try await ended(test, other).state == .ready)
        let item = try await test.client.item(file.item)
        #expect(item.state == .ready && item.uploads.first?.sha256Recomputed == file.sha256)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func aFileThatStillGrowsIsOpenedWithoutItsSize() async throws {
        let test = try await TestBackend()
        var file = try TestFile("up-1", [UInt8](repeating: 3, count: 6 << 20))
        file.partSize = 5 << 20
        var open = file.open
        (open.sizeBytes, open.sha256, open.parts) = (nil, nil, [])
        let session: UploadSession = try await test.client.send("POST", "/v1/uploads", open).decoded()
        #expect(session.partCount == nil)
        try await test.client.sendParts(file)
        #expect(try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete()).status == 200)
        _ = try await test.client.attach(file)
        #expect(
            try await test.client.item(file.item) { $0.state == .ready }.uploads.first?.sizeBytes == file.bytes.count)
        await test.backend.stop()
    }

    @Test func aJobThatIsRunningWhenTheBackendStopsIsDoneByTheNextOneWithoutACountedAttempt() async throws {
        let (started, signal) = AsyncStream<Void>.makeStream()
        let test = try await TestBackend(
            media: MediaWork(
                probe: { _, _ throws(Failure) in
                    signal.yield()
                    do { try await Task.sleep(for: .seconds(3600)) } catch { throw Failure(.cancelled, "Stopped.") }
                    throw Failure(.internalError, "This never ends.")
                }, transcode: MediaWork.photos.transcode, thumb: MediaWork.photos.thumb))
        let file = try TestFile("up-1")
        try await test.client.upload(file)
        _ = try await test.client.attach(file)
        for await _ in started { break }
        await test.backend.stop()
        let ledger = try await SQLiteLedger.open(test.data + "/" + Backend.ledgerName)
        let job = try ledger.database.row("SELECT state, attempts FROM jobs")
        #expect(job?.values == ["available", 0])
        let next = try await TestBackend(scratch: test.scratch)
        #expect(try await next.client.item(file.item) { $0.state == .ready }.generation == 1)
        await next.backend.stop()
    }
}
