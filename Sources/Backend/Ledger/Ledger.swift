import Vocabulary

/// The server's durable state, as intents: each is one transaction, and whatever belongs together (a state, its event, the job that follows)
/// changes together. Where a method answers nil, there is no such thing for this owner.
protocol Ledger: Sendable {
    // MARK: Uploads

    /// Repeatable with the same request. Where the owner has bytes of the declared hash, verified, the session is complete at once.
    /// - Parameters:
    ///   - shoot: the only one whose bytes count for that; nil for all.
    ///   - lost: an object that does not count, since the store does not have it.
    /// - Returns: the row, and whether it is new.
    /// - Throws: `not-found` for another's id, `conflict` for another request under the same id, `gone` for a deleted item; `busy` when the owner
    ///   has `openMax` that are not finished.
    func open(
        _ request: OpenUploadRequest, owner: Owner, now: Timestamp, expiresAt: Timestamp, knowing shoot: String?,
        lost: BlobKey?, openMax: Int
    ) async throws(Failure) -> (UploadRow, isNew: Bool)
    /// An object of the owner's that came in as an upload, and had these bytes when it was verified.
    /// - Parameter shoot: the only one that it may have come for; nil for any.
    func stored(_ sha256: SHA256Digest?, size: Int?, owner: Owner, shoot: String?) async throws(Failure) -> BlobKey?
    func upload(_ id: UploadID, owner: Owner) async throws(Failure) -> UploadRow?
    /// Remembers what was signed, the latest for each part, and puts the session's expiry off.
    /// - Throws: `stale-generation`, or `gone` when the session is no longer open.
    func recordSigned(_ parts: [SignedPart], session: StoreSession, owner: Owner, expiresAt: Timestamp)
        async throws(Failure)
    /// Keeps the store's name for an open session; the first one given counts.
    /// - Returns: the one that counts; nil when the session is no longer open.
    func bind(_ session: StoreSession, to name: String) async throws(Failure) -> String?
    func signedParts(_ session: StoreSession) async throws(Failure) -> [SignedPart]
    /// The object is in the store under `key`, durably.
    /// - Parameter attachment: by which the upload's item gets it in the same transaction; nil: its client attaches it.
    func seal(
        _ session: StoreSession, owner: Owner, key: BlobKey, size: Int, sha256: SHA256Digest,
        attaching attachment: AttachRequest?, now: Timestamp
    ) async throws(Failure) -> UploadRow
    /// The store no longer holds the session.
    func expire(_ session: StoreSession) async throws(Failure)
    /// The session's bytes are lost: the next generation, from zero. A repeated call gives the same answer.
    /// - Parameter generation: the one that the client knows.
    /// - Throws: `busy` as `open` does.
    func reopen(
        _ id: UploadID, owner: Owner, generation: Int, expiresAt: Timestamp, openMax: Int
    ) async throws(Failure) -> UploadRow?
    /// Repeatable. - Throws: `conflict` when the upload is attached to an item.
    func abort(_ id: UploadID, owner: Owner) async throws(Failure) -> UploadRow?

    // MARK: Uploads of foreign clients

    /// - Throws: `busy` when the owner has `openMax` that are not finished.
    func openTus(
        _ request: OpenUploadRequest, metadata: String, hash: [UInt8], owner: Owner, expiresAt: Timestamp, openMax: Int
    ) async throws(Failure) -> UploadRow
    func tus(_ id: UploadID, owner: Owner) async throws(Failure) -> TusRow?
    /// The first time counts.
    func tellSize(_ size: Int, session: StoreSession, owner: Owner) async throws(Failure)
    /// The part, or its beginning, is in the store, durably; what there was of it before goes.
    /// - Parameter hash: over everything up to its end.
    func recordReceived(
        _ part: SignedPart, hash: [UInt8], session: StoreSession, owner: Owner, expiresAt: Timestamp
    ) async throws(Failure)
    /// Open ones of which everything has been received.
    func receivedTus(limit: Int) async throws(Failure) -> [(UploadID, Owner)]
    /// Open ones, by id.
    func openTusUploads(after: UploadID?, limit: Int) async throws(Failure) -> [UploadRow]

    // MARK: Items

    /// Repeatable; uploads only grow. The job to process the item becomes runnable with it. A request without uploads brings a deleted item
    /// back, as its next generation: its owner has decided to try it again.
    /// - Throws: `gone` for a deleted item otherwise.
    func attach(_ request: AttachRequest, to item: ItemID, owner: Owner, now: Timestamp) async throws(Failure)
        -> ItemRow
    func item(_ id: ItemID, owner: Owner) async throws(Failure) -> ItemRow?
    /// By id, without deleted ones.
    func items(owner: Owner, shoot: String?, after: ItemID?, limit: Int) async throws(Failure) -> [ItemRow]
    /// Leaves a tombstone. Repeatable. - Returns: false when there is no such item.
    func remove(_ id: ItemID, owner: Owner, now: Timestamp) async throws(Failure) -> Bool
    func eventSpan(owner: Owner) async throws(Failure) -> EventSpan
    /// In order.
    func events(owner: Owner, after number: Int, limit: Int) async throws(Failure) -> [EventRow]

    // MARK: Jobs

    /// The attempt is counted here.
    func claim(now: Timestamp, leaseUntil: Timestamp) async throws(Failure) -> ClaimedJob?
    /// False when the lease is lost.
    func heartbeat(_ item: ItemID, epoch: Int, leaseUntil: Timestamp) async throws(Failure) -> Bool
    /// The upload's bytes were read from the store. Where the owner has them already under another key, that one is kept.
    /// - Parameter lost: an object with these bytes that the store does not have any more: whoever names it gets these.
    /// - Returns: the key to go on with; nil when the lease is lost.
    func recordVerified(
        _ upload: UploadID, item: ItemID, epoch: Int, sha256: SHA256Digest, lost: BlobKey?, now: Timestamp
    ) async throws(Failure) -> BlobKey?
    /// The bytes are not those that were declared, or not there: the upload has to come again, the item waits for it. An object that was
    /// verified before is kept all the same, as a suspect, until `recordVerified` of what comes in its place, or `remove`.
    /// - Parameter key: of the object that was looked at.
    /// - Returns: false when the lease is lost, or the upload has another object by now.
    func recordDamaged(_ upload: UploadID, key: BlobKey?, item: ItemID, epoch: Int, now: Timestamp)
        async throws(Failure) -> Bool
    /// The manifest, the state `ready` and the event. - Returns: false when the lease is lost; nothing has changed then.
    func publish(_ manifest: Manifest, item: ItemID, epoch: Int, now: Timestamp) async throws(Failure) -> Bool
    /// The originals stay.
    func reject(_ reason: Reason, manifest: Manifest, item: ItemID, epoch: Int, now: Timestamp) async throws(Failure)
        -> Bool
    /// The attempt failed; another follows.
    func retry(_ item: ItemID, epoch: Int, failure: Failure, runnableAt: Timestamp) async throws(Failure) -> Bool
    /// The attempt could not be made and does not count.
    func giveBack(_ item: ItemID, epoch: Int, runnableAt: Timestamp) async throws(Failure) -> Bool

    // MARK: Housekeeping

    /// The system's clock was set: leases are given anew, and what was to end after so long still does.
    /// - Parameter seconds: forward; negative where it was set back.
    func followClock(by seconds: Double, leaseUntil: Timestamp) async throws(Failure)
    /// The oldest events of each owner's log go.
    func trimEvents(_ bounds: EventLogBounds, now: Timestamp) async throws(Failure)
    /// Leases that ran out become runnable again or end, sessions that ran out expire.
    /// - Parameter isRestart: no worker of this ledger is running, so all leases are lost.
    func sweep(now: Timestamp, isRestart: Bool, policy: RetryPolicy) async throws(Failure)
    /// Objects whose rows are gone and whose bytes may go, by key.
    func doomedBlobs(after: BlobKey?, limit: Int) async throws(Failure) -> [BlobKey]
    func forgetDoomed(_ keys: [BlobKey]) async throws(Failure)
    /// Sessions that have ended here and are to be ended at the store, by upload.
    func doomedSessions(after: UploadID?, limit: Int) async throws(Failure) -> [StoreSession]
    func forgetDoomed(_ session: StoreSession) async throws(Failure)
    /// By key.
    func suspects(limit: Int) async throws(Failure) -> [SuspectRow]
    /// The object was found to be there after all: its upload has it again, to be verified anew.
    /// - Returns: false when its bytes are coming in anew already.
    func restore(_ suspect: SuspectRow, now: Timestamp) async throws(Failure) -> Bool
    /// Nil when there is no such upload.
    func generation(of upload: UploadID) async throws(Failure) -> (number: Int, isOpen: Bool)?
    /// The last one that was given for an item; nil when there is no such item.
    func epoch(of item: ItemID) async throws(Failure) -> (number: Int, isRunning: Bool)?
    /// Also while an open session has no store's name yet: it may be about to get this one.
    func isOpen(_ session: StoreSession) async throws(Failure) -> Bool
    /// Whether a row names the object that is made of this session's parts, as far as is known.
    func hasObject(of session: StoreSession) async throws(Failure) -> Bool
    /// Those that have a store's name, by id.
    func openUploads(after: UploadID?, limit: Int) async throws(Failure) -> [UploadRow]
    /// Below which this ledger's objects lie in a bucket, the same for ever.
    /// - Parameter proposal: taken where there is none yet; nil only looks.
    func storePrefix(orMake proposal: String?) async throws(Failure) -> String?
    func blob(_ key: BlobKey) async throws(Failure) -> BlobRow?
    /// A rendition that offers this object, for its content type.
    func offering(_ key: BlobKey) async throws(Failure) -> Rendition?
    /// The shoot of an upload's item; until that is described, the one that the upload was opened for.
    func shoot(of upload: UploadID) async throws(Failure) -> String?

    // MARK: Tokens

    func token(_ name: String) async throws(Failure) -> TokenRow?
    /// The oldest first.
    func tokens() async throws(Failure) -> [TokenRow]
    /// - Parameter limit: tokens that were over before go.
    /// - Returns: false when there are so many valid ones already.
    func addToken(_ token: TokenRow, forgettingOver limit: Timestamp, validMax: Int) async throws(Failure) -> Bool
    /// Repeatable; the first time counts.
    func revokeToken(_ name: String, now: Timestamp) async throws(Failure) -> TokenRow?

    // MARK: Looking

    /// Invariants that the rows alone can break.
    func selfCheck(_ policy: RetryPolicy) async throws(Failure) -> [Finding]
    /// By key.
    func blobs(after: BlobKey?, limit: Int) async throws(Failure) -> [BlobRow]
    /// Whether there is a row, whatever its state, from which the sweep knows what to do.
    func knows(_ upload: UploadID) async throws(Failure) -> Bool
    func knows(_ item: ItemID) async throws(Failure) -> Bool
    func counts() async throws(Failure) -> LedgerCounts
}

extension Ledger {
    /// What is named here with these bytes and is not in the store any more.
    func lost(
        _ sha256: SHA256Digest?, size: Int?, owner: Owner, shoot: String? = nil, from store: any BlobStore
    ) async throws(Failure) -> BlobKey? {
        guard let key = try await stored(sha256, size: size, owner: owner, shoot: shoot),
            try await store.size(key) != size
        else { return nil }
        return key
    }
}
