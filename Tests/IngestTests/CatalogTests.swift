import Digests
import Files
import SQLite
import Testing
import Vocabulary

@testable import Ingest

@Suite struct CatalogTests {
    let scratch: ScratchFolder
    let catalog: Catalog
    let id = ItemID.named("item-1")
    init() async throws {
        scratch = try ScratchFolder()
        catalog = try await Catalog.open(home: scratch.path)
    }

    func newItem(_ id: ItemID, source: RawPath = "/card/a.mp4", created: Int64 = 1) -> Catalog.NewItem {
        let walked = WalkedFile(path: source, size: 10, modified: 5)
        return Catalog.NewItem(
            id: id, shoot: "s", name: "a.mp4", source: walked, isMoved: false, prepare: .auto,
            files: [
                FileRow(
                    item: id, role: .original, name: "a.mp4", source: source, sourceSize: 10, sourceModified: 5,
                    path: "\(id)/original", contentType: "x/y", state: .wanted)
            ], created: created)
    }

    @Test func aSourceThatIsNotUTF8ComesBackByteForByte() async throws {
        let source = RawPath(Array("/card/".utf8) + [0xFF, 0x0A, 0xC3, 0x28])
        _ = try await catalog.picked(.init(new: [newItem(id, source: source)]), since: 0)
        #expect(try catalog.item(id)?.source == source)
        #expect(try catalog.files(of: id).first?.source == source)
        #expect(try catalog.picks(of: source, shoot: "s").map(\.id) == [id])
    }

    @Test func whatAPersonHasAskedForIsKnownAsSuchHoweverItWasAsked() async throws {
        var names: [ItemID] = []
        for (index, word) in ["inbox", "ingest", "again", "retry", "now"].enumerated() {
            var item = newItem(ItemID.named(word), source: RawPath("/card/\(word)"))
            item.isAsked = word == "ingest"
            names.append(item.id)
            _ = try await catalog.picked(.init(new: [item]), since: Int64(index))
        }
        #expect(try catalog.unasked(names) == [names[0], names[2], names[3], names[4]])
        for id in names[2...3] {
            let item = try #require(try catalog.item(id))
            try await catalog.ended(item, .failed, Reason(.ioError, "x"), isRetryable: true)
        }
        _ = try await catalog.picked(
            .init(again: [names[2]], asked: try catalog.unasked([names[2]])), since: 9)
        _ = try await catalog.steer(.retry, [names[3]])
        _ = try await catalog.picked(.init(urgent: [names[4]]), since: 9)
        let open = try catalog.open()
        #expect(open.map(\.id) == names && open.map(\.isAsked) == [false, true, true, true, true])
        #expect(open.allSatisfy { $0.bytes == 10 && $0.modified == 5 })
    }

    @Test func statesOnlyMoveForwardWithinAGeneration() async throws {
        _ = try await catalog.picked(.init(new: [newItem(id)]), since: 0)
        let item = try #require(try catalog.item(id))
        try await catalog.prepared(item, derived: [], uploads: [])
        try await catalog.probed(item, nil, contentType: nil)
        #expect(try catalog.item(id)?.state == .uploading)
        try await catalog.ended(item, .failed, Reason(.ioError, "x"), isRetryable: true)
        try await catalog.attached(item)
        #expect(try catalog.item(id)?.state == .failed)
        try await catalog.ended(item, .ready, nil)
        #expect(try catalog.item(id)?.state == .failed)
    }

    /// Taken while it was to be cancelled, which was refused then: nothing would be left to take, and nothing would move it on.
    @Test func anItemThatMustNotBeCancelledGoesOnFromWhereItsBytesAre() async throws {
        _ = try await catalog.picked(.init(new: [newItem(id)]), since: 0)
        let item = try #require(try catalog.item(id))
        _ = try await catalog.steer(.cancel, [id])
        var file = try #require(try catalog.files(of: id).first)
        (file.bytes, file.sha256) = (10, Digest.sha256("a"))
        try await catalog.staged(file, of: item)
        #expect(try catalog.item(id)?.state == .picked)
        try await catalog.cancelRefused(try #require(try catalog.item(id)), "the backend has the only copy")
        #expect(try catalog.item(id)?.state == .staged)
        #expect(try catalog.item(id)?.waiting == nil)
        #expect(try catalog.item(id)?.intent == .run)
    }

    @Test func newsOfAnOlderGenerationChangesNothing() async throws {
        _ = try await catalog.picked(.init(new: [newItem(id)]), since: 0)
        let old = try #require(try catalog.item(id))
        try await catalog.ended(old, .failed, Reason(.ioError, "x"), isRetryable: true)
        _ = try await catalog.picked(.init(again: [id]), since: 0)
        #expect(try catalog.item(id)?.generation == 2)
        try await catalog.ended(old, .failed, nil)
        #expect(try await catalog.attemptFailed(old, Failure(.ioError, "x")) == 0)
        let now = try #require(try catalog.item(id))
        #expect(now.state == .picked && now.attempts == 0 && now.reason == nil)
    }

    @Test func aPickThatAnotherProcessWroteDownMeanwhileIsJoined() async throws {
        let other = ItemID.named("item-2")
        _ = try await catalog.picked(.init(new: [newItem(id)]), since: 0)
        let joined = try await catalog.picked(.init(new: [newItem(other)]), since: 0)
        #expect(joined == [other: id])
        #expect(try catalog.items().map(\.id) == [id])
    }

    @Test func partsOfAnOlderSessionAreForgottenAndLateOnesNotTaken() async throws {
        _ = try await catalog.picked(.init(new: [newItem(id)]), since: 0)
        let item = try #require(try catalog.item(id))
        let upload = UploadRow(id: UploadID.named("u"), item: id, role: .original, name: "a.mp4", partSize: 4)
        try await catalog.prepared(item, derived: [], uploads: [upload])
        try await catalog.sessionOpened(upload.id, generation: 1, partSize: 4)
        try await catalog.stored([PartRow(number: 1, bytes: 4, etag: "e")], of: upload.id, generation: 1)
        #expect(try catalog.parts(of: upload.id).map(\.number) == [1])
        try await catalog.sessionOpened(upload.id, generation: 2, partSize: 4)
        try await catalog.stored([PartRow(number: 2, bytes: 4, etag: "e")], of: upload.id, generation: 1)
        #expect(try catalog.parts(of: upload.id) == [])
    }
}

@Suite struct BackendVerdictTests {
    let hash = Digest.sha256("a")
    let other = Digest.sha256("b")
    let item = ItemID.named("i")
    let upload = UploadID.named("u")

    func verdict(
        _ state: BackendItemState, _ session: SessionState = .complete, recomputed: SHA256Digest?,
        role: FileRole = .original, reason: FailureCode = .truncated
    ) -> BackendVerdict {
        var document = ItemDocument(itemID: item, shoot: "s", kind: nil, state: state, generation: 1)
        document.reason = state == .rejected ? Reason(reason, "x") : nil
        document.uploads = [
            ItemDocument.Upload(
                uploadID: upload, role: role, name: "n", state: session, sizeBytes: 1, sha256Recomputed: recomputed,
                verifiedAt: nil)
        ]
        let row = UploadRow(id: upload, item: item, role: role, name: "n", partSize: 1)
        return BackendVerdict(document, uploads: [(row: row, sha256: hash)])
    }

    @Test func theBackendsWordIsFinalOnceItHasReadTheBytes() {
        #expect(verdict(.ready, recomputed: hash) == .end(.ready, nil))
        #expect(verdict(.rejected, recomputed: hash) == .end(.rejected, Reason(.truncated, "x")))
        #expect(verdict(.ready, recomputed: nil) == .wait)
        #expect(verdict(.processing, recomputed: hash) == .wait)
        #expect(verdict(.awaiting, recomputed: nil) == .wait)
    }

    @Test(arguments: [BackendItemState.awaiting, .processing, .ready, .rejected])
    func otherBytesThanWereSentAreSentAgainWhateverTheState(state: BackendItemState) {
        #expect(verdict(state, recomputed: other) == .sendAgain([upload]))
        #expect(verdict(state, .expired, recomputed: nil) == .sendAgain([upload]))
        #expect(verdict(state, .aborted, recomputed: nil) == .sendAgain([upload]))
    }

    @Test(arguments: [FailureCode.overBudget, .mediaCrashed, .mediaTimeout])
    func whatIsNoVerdictOnTheFileIsAFailure(code: FailureCode) {
        #expect(verdict(.rejected, recomputed: hash, reason: code) == .end(.failed, Reason(code, "x")))
    }

    @Test func anItemDeletedElsewhereIsOver() {
        guard case .end(.cancelled, _?) = verdict(.deleted, recomputed: hash) else {
            Issue.record("a tombstone is an end")
            return
        }
    }
}

@Suite struct WorkQueueTests {
    @Test(arguments: [(1, 2.0), (10, 5), (100, 15)])
    func howFarItIsIsLookedUpTheMoreOftenTheFewerThereAre(count: Int, interval: Double) {
        var random = BoxRandom.seeded(1)
        let ids = (0..<count).map { _ in ItemID.make(milliseconds: 0, using: &random) }
        var bounds = IngestBounds()
        bounds.pollingMax = count
        var queue = WorkQueue(bounds: bounds)
        queue.refresh(ids.map { WorkQueue.Item(id: $0, state: .processing) }, now: 0)
        queue.heard(EventFeed.News(isLive: true), now: 0)
        #expect(queue.takeDue(now: 0).count == count)
        for id in ids {
            queue.advanced(id, .watched(0.1), item: WorkQueue.Item(id: id, state: .processing), now: 0)
        }
        #expect(queue.takeDue(now: interval - 0.01).isEmpty)
        #expect(queue.takeDue(now: interval) == ids)
    }

    let ids = (0..<6).map { ItemID.named("i\($0)") }
    func queue(_ states: [ItemState]) -> WorkQueue {
        var bounds = IngestBounds()
        bounds.stagingMax = 1
        bounds.preparingMax = 2
        bounds.uploadingSmallMax = 1
        var queue = WorkQueue(bounds: bounds)
        queue.refresh(zip(ids, states).map { WorkQueue.Item(id: $0, state: $1) }, now: 0)
        return queue
    }

    @Test func eachStageHasItsOwnBoundAndNoneHoldsUpAnother() {
        var queue = queue([.uploading, .uploading, .picked, .picked, .staged, .preparing])
        #expect(queue.takeDue(now: 0) == [ids[0], ids[2], ids[4], ids[5]])
        #expect(queue.takeDue(now: 0) == [])
        queue.advanced(ids[0], .moved, item: WorkQueue.Item(id: ids[0], state: .processing), now: 0)
        #expect(queue.takeDue(now: 0) == [ids[0], ids[1]])
    }

    @Test func anItemThatWaitsLetsTheNextOneGo() {
        var queue = queue([.uploading, .uploading])
        #expect(queue.takeDue(now: 0) == [ids[0]])
        queue.advanced(ids[0], .later(10), item: WorkQueue.Item(id: ids[0], state: .uploading), now: 0)
        #expect(queue.takeDue(now: 1) == [ids[1]])
        queue.advanced(ids[1], .finished, item: nil, now: 1)
        #expect(queue.takeDue(now: 9) == [])
        #expect(queue.takeDue(now: 10) == [ids[0]])
    }

    @Test func aFullDiskIsTheEndOnlyWhenNothingCanFreeRoom() {
        let full = Failure(.diskFull, "x")
        var queue = queue([.processing, .picked])
        #expect(queue.takeDue(now: 0) == [ids[0], ids[1]])
        queue.advanced(ids[1], .noRoom(full), item: WorkQueue.Item(id: ids[1], state: .picked), now: 0)
        #expect(queue.stuckFailure == nil)
        #expect(queue.takeDue(now: 0) == [])
        queue.advanced(ids[0], .finished, item: nil, now: 0)
        // Room may have come: it is tried again before anybody gives up.
        #expect(queue.stuckFailure == nil)
        #expect(queue.takeDue(now: 0) == [ids[1]])
        queue.advanced(ids[1], .noRoom(full), item: WorkQueue.Item(id: ids[1], state: .picked), now: 0)
        #expect(queue.stuckFailure == full)
    }

    @Test func whatDoesNotFitLetsTheSmallerOnesGo() {
        let full = Failure(.diskFull, "x")
        var queue = queue([.picked, .picked])
        #expect(queue.takeDue(now: 0) == [ids[0]])
        queue.advanced(ids[0], .noRoom(full), item: WorkQueue.Item(id: ids[0], state: .picked), now: 0)
        #expect(queue.stuckFailure == nil)
        #expect(queue.takeDue(now: 0) == [ids[1]])
        queue.advanced(ids[1], .finished, item: nil, now: 0)
        #expect(queue.takeDue(now: 0) == [ids[0]])
        queue.advanced(ids[0], .noRoom(full), item: WorkQueue.Item(id: ids[0], state: .picked), now: 0)
        #expect(queue.stuckFailure == full)
    }

    @Test func whatIsPausedStopsAndCountsNoMore() {
        var queue = queue([.uploading, .uploading])
        #expect(queue.takeDue(now: 0) == [ids[0]])
        queue.refresh(
            [
                WorkQueue.Item(id: ids[0], state: .uploading, intent: .paused),
                WorkQueue.Item(id: ids[1], state: .uploading, intent: .paused),
            ], now: 0)
        #expect(queue.unwanted == [ids[0]])
        #expect(queue.unfinished.map(\.id) == [ids[0]])
        queue.advanced(
            ids[0], .stopped, item: WorkQueue.Item(id: ids[0], state: .uploading, intent: .paused), now: 0)
        #expect(queue.unfinished.isEmpty && queue.takeDue(now: 9).isEmpty)
        queue.refresh([WorkQueue.Item(id: ids[1], state: .uploading)], now: 9)
        #expect(queue.takeDue(now: 9) == [ids[1]])
    }

    @Test func whatIsCancelledIsStoppedAndThenCancelledBesideTheOthers() {
        var queue = queue([.uploading, .uploading])
        #expect(queue.takeDue(now: 0) == [ids[0]])
        let cancelled = WorkQueue.Item(id: ids[0], state: .uploading, intent: .cancelled)
        queue.refresh([cancelled, WorkQueue.Item(id: ids[1], state: .uploading)], now: 0)
        #expect(queue.unwanted == [ids[0]])
        queue.advanced(ids[0], .stopped, item: cancelled, now: 0)
        #expect(queue.takeDue(now: 0) == Array(ids[0...1]))
        // Cancelling itself is not stopped by the cancellation.
        #expect(queue.unwanted == [])
        queue.advanced(ids[0], .finished, item: nil, now: 0)
        #expect(queue.unfinished.map(\.id) == [ids[1]])
    }

    @Test func finishedItemsLeaveAndNewOnesCome() {
        var queue = queue([.picked])
        _ = queue.takeDue(now: 0)
        queue.advanced(ids[0], .finished, item: nil, now: 0)
        #expect(queue.unfinished.isEmpty)
        queue.refresh([WorkQueue.Item(id: ids[1], state: .picked)], now: 1)
        #expect(queue.unfinished.map(\.id) == [ids[1]])
        #expect(queue.takeDue(now: 1) == [ids[1]])
    }
}
