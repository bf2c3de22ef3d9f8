import Digests
import Testing
import Vocabulary

@testable import Backend

/// Leases, what is done under them, and what turns out to be lost.
extension LedgerConformance {
    @Sendable static func claims(_ ledger: any Ledger) async throws {
        _ = try await attached(try upload("up-1"), in: ledger)
        let first = try await claimed(ledger)
        #expect((first.attempt, first.epoch, first.failureCount) == (1, 1, 0))
        #expect(try await ledger.claim(now: start, leaseUntil: start) == nil)
        let failure = Failure(.mediaCrashed, "Died.")
        #expect(
            try await ledger.retry(first.item.id, epoch: 1, failure: failure, runnableAt: start.adding(seconds: 10)))
        #expect(try await ledger.claim(now: start.adding(seconds: 9), leaseUntil: start) == nil)
        let second = try await claimed(ledger, after: 10)
        #expect((second.attempt, second.epoch, second.failureCount) == (2, 2, 1))
        #expect(try await ledger.giveBack(second.item.id, epoch: 2, runnableAt: start))
        let third = try await claimed(ledger, after: 20)
        #expect((third.attempt, third.epoch, third.failureCount) == (2, 3, 1))
    }

    @Sendable static func lostLeases(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        _ = try await attached(file, in: ledger)
        let lost = try await claimed(ledger)
        try await ledger.sweep(now: start.adding(seconds: 61), isRestart: false, policy: policy)
        let held = try await claimed(ledger, after: 100)
        let id = file.item
        #expect(held.epoch == lost.epoch + 1)
        #expect(try await !ledger.heartbeat(id, epoch: lost.epoch, leaseUntil: start))
        #expect(try await !ledger.publish(thumbnail(lost), item: id, epoch: lost.epoch, now: start))
        #expect(
            try await !ledger.reject(Reason(.corrupt, ""), manifest: .empty, item: id, epoch: lost.epoch, now: start))
        #expect(try await !ledger.recordDamaged(file.upload, item: id, epoch: lost.epoch, now: start))
        #expect(try await !ledger.retry(id, epoch: lost.epoch, failure: Failure(.ioError, ""), runnableAt: start))
        #expect(try await !ledger.giveBack(id, epoch: lost.epoch, runnableAt: start))
        #expect(
            try await ledger.recordVerified(file.upload, item: id, epoch: lost.epoch, sha256: file.sha256, now: start)
                == nil)
        #expect(try await ledger.item(id, owner: owner)?.state == .processing)
        #expect(try await ledger.heartbeat(id, epoch: held.epoch, leaseUntil: start.adding(seconds: 500)))
        try await ledger.sweep(now: start.adding(seconds: 400), isRestart: false, policy: policy)
        #expect(try await ledger.publish(thumbnail(held), item: id, epoch: held.epoch, now: start))
        #expect(try await !ledger.publish(thumbnail(held), item: id, epoch: held.epoch, now: start))
    }

    @Sendable static func publishing(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        _ = try await attached(file, in: ledger)
        let job = try await claimed(ledger)
        let key = try await ledger.recordVerified(
            file.upload, item: file.item, epoch: job.epoch, sha256: file.sha256, now: start)
        #expect(key == .upload(StoreSession(upload: file.upload, generation: 1)))
        #expect(try await ledger.publish(thumbnail(job), item: file.item, epoch: job.epoch, now: start))
        let item = try #require(try await ledger.item(file.item, owner: owner))
        #expect(item.state == .ready)
        #expect(item.kind == .photo)
        #expect(item.renditions == thumbnail(job).renditions)
        #expect(item.uploads.first?.recomputed == file.sha256)
        #expect(try await ledger.offering(item.renditions[0].blob) == item.renditions[0].rendition)
        #expect(try await ledger.events(owner: owner, after: 0, limit: 10).map(\.state) == [.processing, .ready])
    }

    @Sendable static func attemptLimit(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        _ = try await attached(file, in: ledger)
        for attempt in 1...3 {
            let job = try await claimed(ledger, after: Double(attempt) * 1000)
            #expect(job.attempt == attempt)
            try await ledger.sweep(
                now: start.adding(seconds: Double(attempt) * 1000 + 61), isRestart: false, policy: policy)
        }
        #expect(try await ledger.claim(now: start.adding(seconds: 9000), leaseUntil: start) == nil)
        let item = try #require(try await ledger.item(file.item, owner: owner))
        #expect(item.state == .rejected)
        #expect(item.reason?.code == .mediaCrashed)
        #expect(item.uploads.first?.state == .complete)
    }

    @Sendable static func growing(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let sidecar = try upload("up-2", role: .sidecar, bytes: "xmp")
        _ = try await attached(file, in: ledger)
        let job = try await claimed(ledger)
        let grown = try await attached(sidecar, in: ledger)
        #expect((grown.state, grown.generation) == (.processing, 1))
        #expect(try await ledger.publish(thumbnail(job), item: file.item, epoch: job.epoch, now: start))
        #expect(try await ledger.item(file.item, owner: owner)?.state == .processing)
        let next = try await claimed(ledger)
        #expect(next.item.uploads.count == 2)
        #expect((next.attempt, next.epoch) == (1, 2))
        #expect(try await ledger.publish(thumbnail(next), item: file.item, epoch: next.epoch, now: start))
        #expect(try await ledger.item(file.item, owner: owner)?.state == .ready)
        // The first manifest's object has no name left.
        #expect(try await ledger.doomedBlobs(limit: 10) == thumbnail(job).blobs.map(\.key))
    }

    @Sendable static func events(_ ledger: any Ledger) async throws {
        for number in 1...3 {
            _ = try await attached(try upload("a-\(number)", item: "a-\(number)"), in: ledger)
            _ = try await attached(try upload("b-\(number)", item: "b-\(number)"), in: ledger, owner: stranger)
        }
        _ = try await ledger.remove(try #require(ItemID(rawValue: "a-2")), owner: owner, now: start)
        #expect(try await ledger.events(owner: owner, after: 0, limit: 100).map(\.number) == [1, 2, 3, 4])
        #expect(try await ledger.events(owner: owner, after: 3, limit: 100).map(\.state) == [.deleted])
        #expect(try await ledger.events(owner: stranger, after: 0, limit: 2).map(\.item.rawValue) == ["b-1", "b-2"])
        #expect(try await ledger.selfCheck(policy).isEmpty)
    }

    /// Item 1 with its original verified and then not found.
    private static func suspected(_ ledger: any Ledger, twin: TestFile? = nil) async throws -> (TestFile, BlobKey) {
        let file = try upload("up-1")
        _ = try await attached(file, in: ledger)
        let job = try await claimed(ledger)
        let key = try #require(
            try await ledger.recordVerified(
                file.upload, item: file.item, epoch: job.epoch, sha256: file.sha256, now: start))
        #expect(try await ledger.publish(.empty, item: file.item, epoch: job.epoch, now: start))
        if let twin {
            #expect(try await attached(twin, in: ledger).uploads.map(\.blob) == [key])
            #expect(try await ledger.publish(.empty, item: twin.item, epoch: claimed(ledger).epoch, now: start))
        }
        _ = try await attached(try upload("up-2", role: .sidecar, bytes: "<xmp/>"), in: ledger)
        let again = try await claimed(ledger)
        let other = try #require(BlobKey(rawValue: "u-other.1"))
        #expect(
            try await !ledger.recordDamaged(
                file.upload, key: other, item: file.item, epoch: again.epoch, now: start))
        #expect(try await ledger.recordDamaged(file.upload, item: file.item, epoch: again.epoch, now: start))
        #expect(try await ledger.item(file.item, owner: owner)?.state == .awaiting)
        #expect(try await ledger.doomedBlobs(limit: 9).isEmpty)
        #expect(try await ledger.blob(key)?.sha256 == nil)
        #expect(try await ledger.suspects(limit: 9) == [SuspectRow(key: key, size: 5, upload: file.upload)])
        // Nobody is told that these bytes are there.
        let same = try upload("up-3", item: "item-3")
        let (row, _) = try await ledger.open(same.open, owner: owner, now: start, expiresAt: start)
        #expect(row.state == .open)
        _ = try await ledger.abort(same.upload, owner: owner)
        try await ledger.forgetDoomed(try await ledger.doomedBlobs(limit: 9))
        return (file, key)
    }

    @Sendable static func suspects(_ ledger: any Ledger) async throws {
        let twin = try upload("up-9", item: "item-9")
        let (file, key) = try await suspected(ledger, twin: twin)
        let row = try #require(try await ledger.reopen(file.upload, owner: owner, generation: 1, expiresAt: start))
        let sealed = try await ledger.seal(
            row.session, owner: owner, key: .upload(row.session), size: 5, sha256: file.sha256, now: start)
        #expect(try await ledger.doomedBlobs(limit: 9).isEmpty)
        let job = try await claimed(ledger)
        #expect(
            try await ledger.recordVerified(
                file.upload, item: file.item, epoch: job.epoch, sha256: file.sha256, now: start) == sealed.blob)
        #expect(try await ledger.doomedBlobs(limit: 9) == [key])
        #expect(try await ledger.suspects(limit: 9).isEmpty)
        // What came anew is also what the other item had.
        let other = try #require(try await ledger.upload(twin.upload, owner: owner))
        #expect(other.blob == sealed.blob && other.recomputed == twin.sha256)
    }

    @Sendable static func restoring(_ ledger: any Ledger) async throws {
        let (file, key) = try await suspected(ledger)
        let suspect = try #require(try await ledger.suspects(limit: 9).first)
        #expect(try await ledger.restore(suspect, now: start))
        #expect(try await !ledger.restore(suspect, now: start))
        var job = try await claimed(ledger)
        let row = try #require(job.item.uploads.first { $0.id == file.upload })
        #expect(row.blob == key && row.recomputed == nil)
        // Not as it was: it stays a suspect.
        #expect(try await ledger.recordDamaged(file.upload, item: file.item, epoch: job.epoch, now: start))
        #expect(try await ledger.doomedBlobs(limit: 9).isEmpty)
        #expect(try await ledger.restore(suspect, now: start))
        job = try await claimed(ledger)
        _ = try await ledger.recordVerified(
            file.upload, item: file.item, epoch: job.epoch, sha256: file.sha256, now: start)
        #expect(try await ledger.suspects(limit: 9).isEmpty)
        #expect(try await ledger.doomedBlobs(limit: 9).isEmpty)
        #expect(try await ledger.blob(key)?.sha256 == file.sha256)

        // The owner decides.
        let again = try await claimedAgain(ledger)
        #expect(try await ledger.recordDamaged(file.upload, item: file.item, epoch: again.epoch, now: start))
        _ = try await ledger.reopen(file.upload, owner: owner, generation: 1, expiresAt: start)
        #expect(try await !ledger.restore(suspect, now: start))
        #expect(try await ledger.remove(file.item, owner: owner, now: start))
        #expect(try await ledger.doomedBlobs(limit: 9).contains(key))
        #expect(try await ledger.suspects(limit: 9).isEmpty)
    }

    /// The running job of the first item is published, and starts over with another sidecar.
    private static func claimedAgain(_ ledger: any Ledger) async throws -> ClaimedJob {
        let item = try #require(ItemID(rawValue: "item-1"))
        let epoch = try #require(try await ledger.epoch(of: item)?.number)
        #expect(try await ledger.publish(.empty, item: item, epoch: epoch, now: start))
        _ = try await attached(try upload("up-4", role: .sidecar, bytes: "<more/>"), in: ledger)
        return try await claimed(ledger)
    }
}
