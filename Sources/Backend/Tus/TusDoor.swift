import Digests
import Files
import Vocabulary

/// An upload of a foreign client, as the ledger and the store have it.
struct TusUpload: Sendable {
    var row: UploadRow
    /// As the client gave it.
    var metadata: String
    var shoot: String
    /// Of the bytes that are durable.
    var hash: ResumableSHA256
    /// Parts in order; the last may be a tail, which is not whole yet.
    var recorded: [SignedPart] = []

    var standing: TusStanding {
        let received = recorded.reduce(0) { $0 + $1.length }
        return TusStanding(
            size: row.size, partSize: row.partSize, offset: row.state == .open ? received : row.size ?? 0)
    }
    var tail: BlobKey? { recorded.last.map { .tail($0, of: row.session) } }
}

/// Takes what foreign clients send into the same sessions, parts and rows as any other upload. The bytes come through this server: each part is
/// filled on its disk and handed to the store when it is whole. What is left of a body below the size of a part, the tail, is an object of its own
/// until the next body goes on with it. An upload's offset is what the ledger has recorded, and it records what is durable in the store.
struct TusDoor: Sendable {
    let ledger: any Ledger
    let store: any BlobStore
    let sealing: Sealing
    /// On this machine, for parts on their way.
    let workFolder: String
    let disk: DiskQueue
    let clock: @Sendable () -> Timestamp
    /// Seconds after the last bytes.
    let lifetime: Double
    /// There is something new of an owner.
    let wake: @Sendable (Owner) -> Void
    /// Rows went whose bytes are still there.
    let removeDoomed: @Sendable () -> Void
    let log: @Sendable (String) -> Void
    let locks = TusLocks()

    // MARK: Requests

    func create(_ creation: Tus.Creation, owner: Owner, shoot: String?) async throws(Failure) -> TusUpload {
        try TusPolicy.check(length: creation.length)
        let now = clock()
        var random = SystemRandomNumberGenerator()
        let id = UploadID.make(milliseconds: now.milliseconds, using: &random)
        guard let item = ItemID(rawValue: id.rawValue) else { preconditionFailure("ids are spelt alike") }
        let metadata = try TusMetadata(creation.metadata)
        // As where a person names none.
        let shoot = shoot ?? String(now.iso8601.prefix(10))
        let request = metadata.opening(of: id, item, length: creation.length, shoot: shoot)
        try RequestChecks.check(request, idempotencyKey: nil)
        try RequestChecks.check(metadata.attachment(of: id, shoot: shoot))
        let hash = ResumableSHA256()
        let opened = try await ledger.openTus(
            request, metadata: creation.metadata, hash: hash.state, owner: owner,
            expiresAt: now.adding(seconds: lifetime), openMax: Tus.openMax)
        do throws(Failure) {
            return TusUpload(
                row: try await sealing.begin(opened), metadata: creation.metadata, shoot: shoot, hash: hash)
        } catch {
            await discard(opened)
            throw error
        }
    }

    /// With its first bytes.
    /// - Throws: why they cannot be: then there is no upload either, since its address would never be told.
    func create(_ creation: Tus.Creation, taking reception: TusReception, owner: Owner, shoot: String?)
        async throws(Failure) -> TusUpload
    {
        let standing = TusStanding(size: creation.length, partSize: PartLimits.partSize(for: creation.length))
        _ = try TusPolicy.admit(reception.patch, at: standing)
        let made = try await create(creation, owner: owner, shoot: shoot)
        do throws(Failure) {
            return try await locks.holding(made.row.id, of: owner, for: reception) { () throws(Failure) in
                let upload = try await fill(made, from: reception)
                if reception.isBroken { throw Failure(.incomplete, "The body of this upload was cut off.") }
                return try await finish(upload)
            }
        } catch {
            await discard(made.row)
            throw error
        }
    }

    /// One of which nobody knows.
    private func discard(_ row: UploadRow) async {
        // One that cannot be ended now runs out.
        _ = try? await ledger.abort(row.id, owner: row.owner)
        removeDoomed()
    }

    /// For who holds it.
    /// - Throws: `not-found`; `gone` for what has ended or run out, or was lost by the store, which ends it.
    private func find(_ id: UploadID, owner: Owner) async throws(Failure) -> TusUpload {
        let known = try await known(id, owner: owner)
        guard let upload = try await read(known) else {
            try await ledger.expire(known.upload.session)
            throw Self.gone
        }
        return upload
    }

    /// - Throws: `not-found`; `gone` for what has ended or run out.
    private func known(_ id: UploadID, owner: Owner) async throws(Failure) -> TusRow {
        guard let known = try await ledger.tus(id, owner: owner) else { throw LedgerFault.unknown }
        switch known.upload.state {
        case .complete: return known
        case .open where known.upload.expiresAt > clock(): return known
        case .open, .expired, .aborted: throw Self.gone
        }
    }

    /// - Returns: nil when the store does not have what was acknowledged; also while somebody else is at it, who may have gone on between
    ///   the looks at ledger and store.
    private func read(_ known: TusRow) async throws(Failure) -> TusUpload? {
        guard let hash = ResumableSHA256(state: known.hash) else {
            throw Failure(.databaseError, "What was received of this upload cannot be gone on with.")
        }
        let row = known.upload
        var upload = TusUpload(row: row, metadata: known.metadata, shoot: known.shoot, hash: hash)
        guard row.state == .open else { return upload }
        upload.recorded = try await ledger.signedParts(row.session)
        let isThere = try await sealing.hasAll(upload.recorded, of: row) { tail, part throws(Failure) in
            try await store.size(tail) == part.length
        }
        return isThere ? upload : nil
    }

    private static let gone = Failure(.gone, "This upload has ended: make a new one.")

    /// What a HEAD sees. What has come whole is finished, in case that was cut short.
    /// - Throws: `locked` when that cannot be said while a body comes in.
    func look(_ id: UploadID, owner: Owner) async throws(Failure) -> TusUpload {
        let seen = try await read(try await known(id, owner: owner))
        if let seen, seen.row.state != .open || !seen.standing.isWhole { return seen }
        do throws(Failure) {
            return try await locks.holding(id, of: owner) { () throws(Failure) in
                try await finish(try await find(id, owner: owner))
            }
        } catch {
            guard let seen, error.code != .gone else { throw error }
            if error.code != .locked, error.code != .busy { log("tus upload \(id): \(error)") }
            return seen
        }
    }

    /// - Returns: the item that it has become; one goes with the other.
    /// - Throws: `locked` while a body comes in.
    func end(_ id: UploadID, owner: Owner) async throws(Failure) -> ItemID? {
        let row = try await known(id, owner: owner).upload
        if row.state == .complete { return row.item }
        try await locks.holding(id, of: owner) { () throws(Failure) in
            guard try await ledger.abort(id, owner: owner) != nil else { throw LedgerFault.unknown }
        }
        removeDoomed()
        return nil
    }

    // MARK: Bytes

    func append(_ reception: TusReception, to id: UploadID, owner: Owner) async throws(Failure) -> TusUpload {
        // Who has no such upload learns that first.
        guard try await ledger.tus(id, owner: owner) != nil else { throw LedgerFault.unknown }
        return try await locks.holding(id, of: owner, for: reception) { () throws(Failure) in
            try await finish(try await fill(try await find(id, owner: owner), from: reception))
        }
    }

    private func fill(_ found: TusUpload, from reception: TusReception) async throws(Failure) -> TusUpload {
        var upload = found
        let admitted = try TusPolicy.admit(reception.patch, at: found.standing)
        guard upload.row.state == .open else { return upload }
        if let size = admitted.size, upload.row.size == nil {
            try await ledger.tellSize(size, session: upload.row.session, owner: upload.row.owner)
            upload.row.size = size
        }
        reception.goOn(from: upload.hash)
        let (start, id) = (upload, upload.row.id)
        return try await inFolder(of: id) { folder throws(Failure) in
            try await receive(reception, into: start, folder)
        }
    }

    private func receive(
        _ reception: TusReception, into found: TusUpload, _ folder: String
    ) async throws(Failure) -> TusUpload {
        var upload = found
        var at = upload.standing
        var unchecked: [TusSpool] = []
        var ending: TusReception.Ending?
        while ending == nil {
            guard !at.isFull else {
                reception.refuseMore(TusPolicy.beyondTheEnd)
                ending = await reception.ended()
                break
            }
            let spool = try await spool(at, of: upload, isFirst: at.offset == found.standing.offset, in: folder)
            let before = spool.count
            ending = await reception.fill(spool)
            guard spool.count > before else { break }
            at.offset += spool.count - before
            if reception.patch.checksum == nil {
                try await keep(spool, of: &upload)
            } else {
                try await disk.run { () throws(Failure) -> Void in try spool.seal() }
                unchecked.append(spool)
            }
        }
        // Without a checksum everything has been kept already.
        if ending == .whole {
            try reception.checkSum()
            for spool in unchecked { try await keep(spool, of: &upload) }
        }
        return upload
    }

    /// With a folder for what is on its way, gone afterwards.
    private func inFolder<Value: Sendable>(
        of id: UploadID, _ body: (String) async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let path = workFolder + "/" + Self.folderName(id)
        try await disk.run { () throws(Failure) in
            try Files.removeTree(path)
            try Files.makeFolder(path)
        }
        let result: Result<Value, Failure>
        do throws(Failure) { result = .success(try await body(path)) } catch { result = .failure(error) }
        try? await disk.run { () throws(Failure) in try Files.removeTree(path) }
        return try result.get()
    }
    static func folderName(_ id: UploadID) -> String { "\(id).tus" }

    /// The part in which the next byte lies, with what there is of it.
    private func spool(_ at: TusStanding, of upload: TusUpload, isFirst: Bool, in folder: String)
        async throws(Failure) -> TusSpool
    {
        var path: String?
        if isFirst, at.tailBytes > 0, let tail = upload.tail { path = try await store.path(tail, in: folder) }
        let tailPath = path
        return try await disk.run { () throws(Failure) in
            let spool = try TusSpool(number: at.partNumber, capacity: at.partBytes, in: folder)
            if let tailPath { try spool.load(tailPath, bytes: at.tailBytes) }
            return spool
        }
    }

    /// First the bytes, then the row: what is acknowledged is there, whatever is cut short.
    private func keep(_ spool: TusSpool, of upload: inout TusUpload) async throws(Failure) {
        let session = upload.row.session
        let part = try await disk.run { () throws(Failure) in try spool.seal() }
        if spool.isFull {
            try await store.take(spool.path, as: part, of: session)
        } else {
            let key = BlobKey.tail(part, of: session)
            // What a request that was cut short left under this name.
            try await store.remove(key)
            _ = try await store.adopt(spool.path, as: key)
        }
        let expiresAt = clock().adding(seconds: lifetime)
        do throws(Failure) {
            try await ledger.recordReceived(
                part, hash: spool.hash.state, session: session, owner: upload.row.owner, expiresAt: expiresAt)
        } catch {
            if !spool.isFull { try? await store.remove(.tail(part, of: session)) }
            throw error
        }
        upload.row.expiresAt = max(upload.row.expiresAt, expiresAt)
        upload.hash = spool.hash
        if upload.recorded.last?.number == part.number { upload.recorded.removeLast() }
        upload.recorded.append(part)
    }

    // MARK: The end

    /// The whole has come: it becomes an object, and that an item, by the way that every upload goes. The SHA-256 of what was received stands for
    /// the one that other clients declare. The upload is held by who calls.
    private func finish(_ found: TusUpload) async throws(Failure) -> TusUpload {
        var upload = found
        guard upload.row.state == .open, upload.standing.isWhole else { return upload }
        try await completeLastPart(of: &upload)
        let request = CompleteUploadRequest(
            generation: upload.row.generation, sizeBytes: upload.standing.offset, sha256: upload.hash.digest,
            parts: upload.recorded.map { CompleteUploadRequest.Part(partNumber: $0.number, etag: nil) })
        upload.row = try await sealing.complete(
            upload.row.id, request, owner: upload.row.owner,
            attaching: try TusMetadata(upload.metadata).attachment(of: upload.row.id, shoot: upload.shoot))
        wake(upload.row.owner)
        return upload
    }

    /// What has become the last part by having no more after it: a tail, or a file without bytes.
    private func completeLastPart(of upload: inout TusUpload) async throws(Failure) {
        let held = try await sealing.held(upload.row, signed: upload.recorded)
        let number = upload.recorded.last?.number ?? 1
        guard held.object == nil, !held.parts.contains(where: { $0.number == number }) else { return }
        let found = upload
        upload = try await inFolder(of: upload.row.id) { folder throws(Failure) in
            var upload = found
            var path: String?
            if let tail = upload.tail { path = try await store.path(tail, in: folder) }
            let (tailPath, bytes) = (path, upload.recorded.last?.length ?? 0)
            let spool = try await disk.run { () throws(Failure) in
                let spool = try TusSpool(number: number, capacity: bytes, in: folder)
                if let tailPath { try spool.load(tailPath, bytes: bytes) }
                return spool
            }
            if upload.recorded.isEmpty {
                try await keep(spool, of: &upload)
            } else {
                let part = try await disk.run { () throws(Failure) in try spool.seal() }
                try await store.take(spool.path, as: part, of: upload.row.session)
            }
            return upload
        }
    }

    /// Uploads that have come whole and were not finished, since somebody was killed.
    func finishAll() async throws(Failure) {
        for (id, owner) in try await ledger.receivedTus(limit: Self.finishedMax) {
            do throws(Failure) {
                _ = try await locks.holding(id, of: owner) { () throws(Failure) in
                    try await finish(try await find(id, owner: owner))
                }
            } catch {
                if error.code != .locked, error.code != .busy { log("tus upload \(id): \(error)") }
            }
        }
    }
    /// In one go; the rest waits for the next.
    private static let finishedMax = 1000
}
