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

    static func failure(_ body: () async throws -> Void) async -> FailureCode? {
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

extension Ledger {
    func seal(_ session: StoreSession, owner: Owner, key: BlobKey, size: Int, sha256: SHA256Digest, now: Timestamp)
        async throws(Failure) -> UploadRow
    {
        try await seal(session, owner: owner, key: key, size: size, sha256: sha256, attaching: nil, now: now)
    }

    func open(_ request: OpenUploadRequest, owner: Owner, now: Timestamp, expiresAt: Timestamp) async throws(Failure)
        -> (UploadRow, isNew: Bool)
    {
        try await open(request, owner: owner, now: now, expiresAt: expiresAt, knowing: nil, lost: nil, openMax: 100)
    }
    func reopen(_ id: UploadID, owner: Owner, generation: Int, expiresAt: Timestamp) async throws(Failure) -> UploadRow?
    {
        try await reopen(id, owner: owner, generation: generation, expiresAt: expiresAt, openMax: 100)
    }

    func recordVerified(_ upload: UploadID, item: ItemID, epoch: Int, sha256: SHA256Digest, now: Timestamp)
        async throws(Failure) -> BlobKey?
    {
        try await recordVerified(upload, item: item, epoch: epoch, sha256: sha256, lost: nil, now: now)
    }

    func recordDamaged(_ upload: UploadID, item: ItemID, epoch: Int, now: Timestamp) async throws(Failure) -> Bool {
        let key = try await self.upload(upload, owner: LedgerConformance.owner)?.blob
        return try await recordDamaged(upload, key: key, item: item, epoch: epoch, now: now)
    }

    func doomedBlobs(limit: Int) async throws(Failure) -> [BlobKey] { try await doomedBlobs(after: nil, limit: limit) }
}
