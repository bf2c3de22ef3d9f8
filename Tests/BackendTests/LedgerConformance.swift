import Digests
import Testing
import Vocabulary

@testable import Backend

/// What every ledger has to do, whatever it is built on. One function a rule; each gets a ledger of its own.
enum LedgerConformance {
    static let owner = Owner(rawValue: "anna")
    static let stranger = Owner(rawValue: "ben")
    static let start = Timestamp(milliseconds: 1_700_000_000_000)
    static let policy = RetryPolicy(attemptMax: 3, failureMax: 3)

    static let rules: [(name: String, check: @Sendable (any Ledger) async throws -> Void)] = [
        ("an open is repeatable, and foreign ids are unknown", openIsRepeatable),
        ("a stale generation signs and seals nothing", staleGenerations),
        ("a reopen answers the same twice and starts from zero", reopen),
        ("attempts are counted at the claim, and epochs rise", claims),
        ("what is done under a lost lease changes nothing", lostLeases),
        ("publishing is one transaction with its event", publishing),
        ("attempts end at their limit", attemptLimit),
        ("what is attached to a running job makes it start over", growing),
        ("bytes go with the last item that names them", references),
        ("events are numbered without gaps, owner by owner", events),
        ("sessions run out, attached uploads do not", expiry),
        ("the same bytes under two keys become one object", folding),
        ("what was verified is kept until its replacement is, or its owner removes it", suspects),
        ("what is found again is read once more, unless its bytes are coming in anew", restoring),
        ("a session that ends is ended at the store by its name", endedSessions),
        ("an owner's unfinished uploads are bounded", openBound),
        ("what was received is recorded with its hash, and an earlier tail goes", receiving),
        ("a foreign client's file is attached in the transaction that seals it", attaching),
    ]

    // MARK: Pieces

    static func upload(_ id: String, item: String = "item-1", role: FileRole = .original, bytes: String = "bytes")
        throws -> TestFile
    {
        var file = try TestFile(id, item: item, Array(bytes.utf8))
        (file.role, file.name) = (role, role.rawValue + id)
        return file
    }

    static func sealed(_ file: TestFile, in ledger: any Ledger, owner: Owner = owner) async throws -> UploadRow {
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start.adding(seconds: 100))
        guard row.state == .open else { return row }
        return try await ledger.seal(
            row.session, owner: owner, key: .upload(row.session), size: file.bytes.count, sha256: file.sha256,
            now: start)
    }

    static func attached(_ file: TestFile, in ledger: any Ledger, owner: Owner = owner) async throws -> ItemRow {
        _ = try await sealed(file, in: ledger, owner: owner)
        return try await ledger.attach(file.attach, to: file.item, owner: owner, now: start)
    }

    static func claimed(_ ledger: any Ledger, after seconds: Double = 0) async throws -> ClaimedJob {
        let now = start.adding(seconds: seconds)
        return try #require(try await ledger.claim(now: now, leaseUntil: now.adding(seconds: 60)))
    }

    static func thumbnail(_ job: ClaimedJob) -> Manifest {
        let key = BlobKey.made(for: job.item.id, epoch: job.epoch, name: OutputName("512"))
        let sha256 = Digest.sha256(key.rawValue)
        var manifest = Manifest.empty
        manifest.kind = .photo
        manifest.blobs = [BlobRow(key: key, owner: job.item.owner, size: 5, sha256: sha256)]
        manifest.renditions = [
            RenditionRow(
                rendition: Rendition(
                    role: .thumbnail, name: "512", contentType: "image/jpeg", sizeBytes: 5, sha256: sha256, width: 1,
                    height: 1),
                blob: key)
        ]
        return manifest
    }

    // MARK: Rules

    @Sendable static func openIsRepeatable(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let later = start.adding(seconds: 100)
        #expect(try await ledger.open(file.open, owner: owner, now: start, expiresAt: later).isNew)
        #expect(try await !ledger.open(file.open, owner: owner, now: start, expiresAt: later).isNew)
        var other = file.open
        other.sizeBytes = 6
        #expect(
            await failure { _ = try await ledger.open(other, owner: owner, now: start, expiresAt: later) } == .conflict)
        #expect(
            await failure { _ = try await ledger.open(file.open, owner: stranger, now: start, expiresAt: later) }
                == .notFound)
        #expect(try await ledger.upload(file.upload, owner: stranger) == nil)
        #expect(try await ledger.abort(file.upload, owner: stranger) == nil)
        #expect(try await ledger.reopen(file.upload, owner: stranger, generation: 1, expiresAt: later) == nil)
    }

    @Sendable static func staleGenerations(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
        let next = StoreSession(upload: file.upload, generation: 2)
        let part = SignedPart(number: 1, length: 5, md5: String(repeating: "0", count: 32))
        #expect(
            await failure { try await ledger.recordSigned([part], session: next, owner: owner, expiresAt: start) }
                == .staleGeneration)
        #expect(
            await failure {
                _ = try await ledger.seal(
                    next, owner: owner, key: .upload(next), size: 5, sha256: file.sha256, now: start)
            } == .staleGeneration)
        try await ledger.recordSigned([part], session: row.session, owner: owner, expiresAt: start)
        var again = part
        again.md5 = String(repeating: "1", count: 32)
        try await ledger.recordSigned([again], session: row.session, owner: owner, expiresAt: start)
        #expect(try await ledger.signedParts(row.session) == [again])
        _ = try await ledger.abort(file.upload, owner: owner)
        #expect(
            await failure {
                try await ledger.recordSigned([part], session: row.session, owner: owner, expiresAt: start)
            } == .gone)
    }

    @Sendable static func reopen(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
        try await ledger.recordSigned(
            [SignedPart(number: 1, length: 5, md5: String(repeating: "0", count: 32))], session: row.session,
            owner: owner, expiresAt: start)
        try await ledger.expire(row.session)
        for _ in 0..<2 {
            let next = try #require(try await ledger.reopen(file.upload, owner: owner, generation: 1, expiresAt: start))
            #expect(next.generation == 2)
            #expect(next.state == .open)
            #expect(try await ledger.signedParts(next.session).isEmpty)
        }
        #expect(
            await failure { _ = try await ledger.reopen(file.upload, owner: owner, generation: 3, expiresAt: start) }
                == .staleGeneration)
        let session = StoreSession(upload: file.upload, generation: 2)
        let sealed = try await ledger.seal(
            session, owner: owner, key: .upload(session), size: 5, sha256: file.sha256, now: start)
        // A completed upload is not lost, whatever the client believes.
        #expect(try await ledger.reopen(file.upload, owner: owner, generation: 2, expiresAt: start) == sealed)
    }

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

    @Sendable static func references(_ ledger: any Ledger) async throws {
        let first = try upload("up-1")
        let second = try upload("up-2", item: "item-2")
        _ = try await attached(first, in: ledger)
        let job = try await claimed(ledger)
        let key = try await ledger.recordVerified(
            first.upload, item: first.item, epoch: job.epoch, sha256: first.sha256, now: start)
        let stored = try await sealed(second, in: ledger)
        #expect(stored.isAlreadyStored)
        #expect(stored.blob == key)
        _ = try await attached(second, in: ledger)
        #expect(try await ledger.remove(first.item, owner: owner, now: start))
        #expect(try await ledger.doomedBlobs(limit: 10).isEmpty)
        #expect(try await !ledger.remove(second.item, owner: stranger, now: start))
        for _ in 0..<2 { #expect(try await ledger.remove(second.item, owner: owner, now: start)) }
        let doomed = try await ledger.doomedBlobs(limit: 10)
        #expect(doomed.first == key)
        #expect(try await ledger.blob(try #require(key)) == nil)
        try await ledger.forgetDoomed(doomed)
        #expect(try await ledger.doomedBlobs(limit: 10).isEmpty)

        // What comes late does not bring it back; asking for just that does, and no key is used twice.
        let late = await #expect(throws: Failure.self) { _ = try await attached(second, in: ledger) }
        #expect(late?.code == .gone)
        let again = try await ledger.attach(
            AttachRequest(kind: nil, shoot: "s", uploads: []), to: second.item, owner: owner, now: start)
        #expect(again.state == .awaiting && again.generation > 1)
        let third = try upload("up-again", item: second.item.rawValue, bytes: "again")
        _ = try await sealed(third, in: ledger)
        _ = try await attached(third, in: ledger)
        #expect(try await claimed(ledger).epoch > job.epoch + 1000)
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

    @Sendable static func expiry(_ ledger: any Ledger) async throws {
        let open = try upload("up-1")
        let loose = try upload("up-2", bytes: "loose")
        let taken = try upload("up-3", item: "item-3", bytes: "taken")
        _ = try await ledger.open(open.open, owner: owner, now: start, expiresAt: start.adding(seconds: 100))
        _ = try await sealed(loose, in: ledger)
        _ = try await attached(taken, in: ledger)
        try await ledger.sweep(now: start.adding(seconds: 99), isRestart: false, policy: policy)
        #expect(try await ledger.upload(open.upload, owner: owner)?.state == .open)
        try await ledger.sweep(now: start.adding(seconds: 101), isRestart: false, policy: policy)
        #expect(try await ledger.upload(open.upload, owner: owner)?.state == .expired)
        #expect(try await ledger.upload(loose.upload, owner: owner)?.state == .expired)
        #expect(try await ledger.upload(taken.upload, owner: owner)?.state == .complete)
        #expect(try await ledger.doomedBlobs(limit: 10).map(\.rawValue) == ["c-up-1.1", "u-up-1.1", "u-up-2.1"])
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

    @Sendable static func endedSessions(_ ledger: any Ledger) async throws {
        for (id, name) in [("up-1", "x-1"), ("up-2", nil)] {
            let file = try upload(id, item: "item-" + id)
            let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
            if let name { #expect(try await ledger.bind(row.session, to: name) == name) }
            _ = try await ledger.abort(file.upload, owner: owner)
        }
        // Opened anew without having been ended.
        let file = try upload("up-3", item: "item-3")
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
        _ = try await ledger.bind(row.session, to: "x-3")
        _ = try await ledger.reopen(file.upload, owner: owner, generation: 1, expiresAt: start)
        let doomed = try await ledger.doomedSessions(after: nil, limit: 9)
        #expect(doomed.map(\.folderName) == ["up-1.1", "up-2.1", "up-3.1"])
        #expect(doomed.map(\.storeName) == ["x-1", nil, "x-3"])
        #expect(try await ledger.doomedSessions(after: doomed[0].upload, limit: 1) == [doomed[1]])
        for session in doomed { try await ledger.forgetDoomed(session) }
        #expect(try await ledger.doomedSessions(after: nil, limit: 9).isEmpty)
        // What was completed takes its session with it.
        _ = try await sealed(try upload("up-4", item: "item-4"), in: ledger)
        #expect(try await ledger.doomedSessions(after: nil, limit: 9).isEmpty)
    }

    @Sendable static func openBound(_ ledger: any Ledger) async throws {
        func open(_ file: TestFile, _ owner: Owner = owner) async throws -> UploadRow {
            try await ledger.open(
                file.open, owner: owner, now: start, expiresAt: start, knowing: nil, openMax: 2
            ).0
        }
        let first = try upload("up-1")
        _ = try await open(first)
        _ = try await open(try upload("up-2"))
        let third = try upload("up-3", item: "item-3")
        #expect(await failure { _ = try await open(third) } == .busy)
        // What is open already is answered, another owner is not meant.
        _ = try await open(first)
        _ = try await open(try upload("up-4", item: "item-4"), stranger)
        _ = try await ledger.abort(first.upload, owner: owner)
        _ = try await open(third)
        #expect(
            await failure {
                _ = try await ledger.reopen(first.upload, owner: owner, generation: 1, expiresAt: start, openMax: 2)
            } == .busy)
    }

    @Sendable static func folding(_ ledger: any Ledger) async throws {
        let first = try upload("up-1")
        let second = try upload("up-2", item: "item-2")
        // Both arrive before either is verified.
        _ = try await attached(first, in: ledger)
        _ = try await attached(second, in: ledger)
        var keys: [BlobKey?] = []
        for _ in 0..<2 {
            let job = try await claimed(ledger)
            let upload = try #require(job.item.uploads.first)
            keys.append(
                try await ledger.recordVerified(
                    upload.id, item: job.item.id, epoch: job.epoch, sha256: first.sha256, now: start))
        }
        #expect(keys[0] == keys[1])
        #expect(try await ledger.doomedBlobs(limit: 10).map(\.rawValue) == ["u-up-2.1"])
        #expect(try await ledger.item(second.item, owner: owner)?.uploads.first?.recomputed == first.sha256)
    }

    private static func failure(_ body: () async throws -> Void) async -> FailureCode? {
        do { try await body() } catch { return (error as? Failure)?.code }
        return nil
    }
}

@Suite struct SQLiteLedgerTests {
    @Test(arguments: LedgerConformance.rules.map(\.name))
    func keeps(rule name: String) async throws {
        let scratch = try ScratchFolder()
        let ledger = try await SQLiteLedger.open(scratch.path + "/ledger")
        let rule = try #require(LedgerConformance.rules.first { $0.name == name })
        try await rule.check(ledger)
    }
}

extension LedgerConformance {
    private static func tus(_ id: String, in ledger: any Ledger, size: Int?, openMax: Int = 2) async throws -> UploadRow
    {
        var request = try upload(id, item: id).open
        (request.sizeBytes, request.sha256, request.partSize) = (size, nil, 5 << 20)
        return try await ledger.openTus(
            request, metadata: "name x", hash: [1], owner: owner, expiresAt: start.adding(seconds: 100),
            openMax: openMax)
    }

    private static func receiving(_ ledger: any Ledger) async throws {
        let row = try await tus("tus-1", in: ledger, size: nil)
        _ = try await tus("tus-2", in: ledger, size: 5)
        await #expect(throws: Failure.self) { try await tus("tus-3", in: ledger, size: 5) }
        #expect(try await ledger.tus(row.id, owner: stranger) == nil)
        let session = row.session
        func record(_ number: Int, _ length: Int, _ md5: String, owner: Owner = owner) async throws {
            try await ledger.recordReceived(
                SignedPart(number: number, length: length, md5: md5), hash: [UInt8(length & 255)], session: session,
                owner: owner, expiresAt: start.adding(seconds: 200))
        }
        let tails = ["a", "b"].map { BlobKey.tail(SignedPart(number: 1, length: 3, md5: $0), of: session) }
        try await record(1, 3, "a")
        #expect(try await ledger.doomedBlobs(limit: 9).isEmpty)
        try await record(1, 3, "b")
        #expect(try await ledger.doomedBlobs(limit: 9) == [tails[0]])
        try await record(1, 5 << 20, "c")
        try await record(2, 4, "d")
        #expect(Set(try await ledger.doomedBlobs(limit: 9)) == Set(tails))
        await #expect(throws: LedgerFault.unknown) { try await record(2, 5, "e", owner: stranger) }
        // Nor can a box sign anything for it.
        await #expect(throws: LedgerFault.tus) {
            try await ledger.recordSigned(
                [SignedPart(number: 2, length: 5, md5: "f")], session: session, owner: owner, expiresAt: start)
        }
        let known = try #require(try await ledger.tus(row.id, owner: owner))
        #expect(known.hash == [4] && known.metadata == "name x" && known.shoot == "wedding")
        #expect(known.upload.expiresAt == start.adding(seconds: 200) && known.upload.isTus)
        #expect(try await ledger.receivedTus(limit: 9).isEmpty)
        try await ledger.tellSize((5 << 20) + 4, session: session, owner: owner)
        try await ledger.tellSize(1, session: session, owner: owner)
        #expect(try await ledger.receivedTus(limit: 9).map(\.0) == [row.id])
        #expect(try await ledger.openTusUploads(after: nil, limit: 9).map(\.id.rawValue) == ["tus-1", "tus-2"])
        try await ledger.sweep(now: start.adding(seconds: 201), isRestart: false, policy: policy)
        let last = BlobKey.tail(SignedPart(number: 2, length: 4, md5: "d"), of: session)
        #expect(try await ledger.doomedBlobs(limit: 9).contains(last))
        #expect(try await ledger.openTusUploads(after: nil, limit: 9).isEmpty)
    }

    private static func attaching(_ ledger: any Ledger) async throws {
        let row = try await tus("tus-1", in: ledger, size: 3)
        let attachment = AttachRequest(
            kind: nil, shoot: "wedding", uploads: [.init(uploadID: row.id, role: row.role, name: row.name)])
        let sealed = try await ledger.seal(
            row.session, owner: owner, key: .upload(row.session), size: 3, sha256: Digest.sha256([1, 2, 3]),
            attaching: attachment, now: start)
        #expect(sealed.state == .complete && sealed.isAttached)
        let item = try #require(try await ledger.item(row.item, owner: owner))
        #expect(item.state == .processing && item.uploads.map(\.id) == [row.id])
        #expect(try await claimed(ledger).item.id == row.item)
        #expect(try await ledger.events(owner: owner, after: 0, limit: 9).count == 1)
    }
}

extension Ledger {
    func seal(_ session: StoreSession, owner: Owner, key: BlobKey, size: Int, sha256: SHA256Digest, now: Timestamp)
        async throws(Failure) -> UploadRow
    {
        try await seal(session, owner: owner, key: key, size: size, sha256: sha256, attaching: nil, now: now)
    }

    func open(_ request: OpenUploadRequest, owner: Owner, now: Timestamp, expiresAt: Timestamp) async throws(Failure)
        -> (UploadRow, isNew: Bool)
    {
        try await open(request, owner: owner, now: now, expiresAt: expiresAt, knowing: nil, openMax: 100)
    }
    func reopen(_ id: UploadID, owner: Owner, generation: Int, expiresAt: Timestamp) async throws(Failure) -> UploadRow?
    {
        try await reopen(id, owner: owner, generation: generation, expiresAt: expiresAt, openMax: 100)
    }

    func doomedBlobs(limit: Int) async throws(Failure) -> [BlobKey] { try await doomedBlobs(after: nil, limit: limit) }
}
