import Vocabulary

/// From parts to an object with its row, however often it is cut short on the way.
struct Sealing: Sendable {
    let ledger: any Ledger
    let store: any BlobStore
    let clock: @Sendable () -> Timestamp
    private let completions = Completions()

    init(ledger: any Ledger, store: any BlobStore, clock: @escaping @Sendable () -> Timestamp) {
        self.ledger = ledger
        self.store = store
        self.clock = clock
    }

    /// What the store holds of an upload's open session.
    struct Held: Sendable {
        /// What agrees with the latest signature for each part.
        var parts: [StoredPart]
        /// The session is gone, because its parts are this object already.
        var object: BlobKey?
        /// Neither the session nor its object is there.
        var isLost = false
    }

    func held(_ row: UploadRow, signed: [SignedPart]) async throws(Failure) -> Held {
        if let stored = try await store.parts(row.session) {
            let signatures = signed.byNumber
            return Held(parts: stored.filter { part in signatures[part.number].map(part.matches) ?? false })
        }
        guard let key = try await store.assembled(signed, of: row.session) else { return Held(parts: [], isLost: true) }
        return Held(parts: signed.map(StoredPart.init), object: key)
    }

    /// Whether the store has what was acknowledged of a foreign client's upload.
    /// - Parameters:
    ///   - recorded: its parts in order, the last of which may lie there as a tail.
    ///   - isIntact: whether a tail is there, as it was recorded.
    func hasAll(
        _ recorded: [SignedPart], of row: UploadRow,
        isIntact: (BlobKey, SignedPart) async throws(Failure) -> Bool
    ) async throws(Failure) -> Bool {
        let held = try await held(row, signed: recorded)
        guard !held.isLost else { return false }
        var hasTail = false
        if let last = recorded.last, !held.parts.contains(where: { $0.number == last.number }) {
            hasTail = try await isIntact(.tail(last, of: row.session), last)
        }
        return TusPolicy.hasAll(recorded, partSize: row.partSize, held: held.parts, hasTail: hasTail)
    }

    /// Makes the store ready for an upload's parts, and keeps its name for them.
    func begin(_ opened: UploadRow) async throws(Failure) -> UploadRow {
        var row = opened
        guard let name = try await store.begin(row.session), name != row.storeName else { return row }
        row.storeName = try await ledger.bind(row.session, to: name)
        // Opened twice at once: the first one counts.
        if row.storeName != name {
            try await store.end(
                StoreSession(upload: row.id, generation: row.generation, storeName: name), hasObject: false)
        }
        guard row.storeName != nil else { throw Failure(.gone, "This upload is no longer open.") }
        return row
    }

    /// One at a time for each upload; repeatable.
    /// - Parameter attachment: by which the upload's item gets it at once; nil: its client attaches it.
    func complete(
        _ id: UploadID, _ request: CompleteUploadRequest, owner: Owner, attaching attachment: AttachRequest? = nil
    ) async throws(Failure) -> UploadRow {
        try await completions.run(id) { () throws(Failure) in try await seal(id, request, owner, attachment) }
    }

    /// The object first, then its row, then the parts go: cut short anywhere, the client repeats the request and it goes on.
    private func seal(
        _ id: UploadID, _ request: CompleteUploadRequest, _ owner: Owner, _ attachment: AttachRequest?
    ) async throws(Failure) -> UploadRow {
        guard let row = try await ledger.upload(id, owner: owner) else { throw LedgerFault.unknown }
        guard row.isTus == (attachment != nil) else { throw LedgerFault.tus }
        guard row.generation == request.generation else { throw LedgerFault.stale }
        if row.state == .complete {
            guard row.sha256 == request.sha256, row.size == request.sizeBytes else {
                throw Failure(.conflict, "This upload was completed with another size or SHA-256.")
            }
            return row
        }
        guard row.state == .open else {
            throw Failure(.gone, "This upload is no longer open: it is \(row.state.rawValue).")
        }
        let signed = try await ledger.signedParts(row.session)
        let held = try await held(row, signed: signed)
        let parts = try CompletionCheck.parts(request, row: row, signed: signed, stored: held.parts)
        let key: BlobKey
        if let object = held.object { key = object } else { key = try await store.assemble(parts, of: row.session) }
        // Where it was aborted meanwhile, no row will name these bytes: the next start removes them, if they may go.
        let sealed = try await ledger.seal(
            row.session, owner: owner, key: key, size: request.sizeBytes, sha256: request.sha256,
            attaching: attachment, now: clock())
        try await store.settle(row.session)
        return sealed
    }

    /// Uploads looked at in one transaction.
    private static let pageSize = 500

    /// Uploads whose object the store has put together, but whose answer or event was lost: their rows are written now.
    /// - Parameter present: the sessions that the store still has.
    /// - Returns: how many there were.
    func finishLost(present: Set<StoreSession>, _ attempts: Attempts) async throws(Failure) -> Int {
        var (last, count): (UploadID?, Int) = (nil, 0)
        while true {
            let page = try await ledger.openUploads(after: last, limit: Self.pageSize)
            for row in page where !present.contains(row.session) {
                _ = try await attempts.attempt("finish upload \(row.id)") { () throws(Failure) in
                    if try await finishLost(row) { count += 1 }
                }
            }
            guard let end = page.last, page.count == Self.pageSize else { return count }
            last = end.id
        }
    }

    private func finishLost(_ row: UploadRow) async throws(Failure) -> Bool {
        // Declared at the complete only, they wait for the client to repeat it.
        guard let size = row.size, let sha256 = row.sha256 else { return false }
        let signed = try await ledger.signedParts(row.session)
        guard try await store.assembled(signed, of: row.session) != nil else { return false }
        let request = CompleteUploadRequest(
            generation: row.generation, sizeBytes: size, sha256: sha256,
            parts: signed.map { CompleteUploadRequest.Part(partNumber: $0.number, etag: nil) })
        do throws(Failure) {
            _ = try await complete(row.id, request, owner: row.owner)
            return true
        } catch {
            // Somebody else was quicker, or its parts do not add up: that is for its client to hear.
            guard [.gone, .staleGeneration, .incomplete, .conflict].contains(error.code) else { throw error }
            return false
        }
    }
}

/// One completion of an upload at a time: a repeated request waits for the first and then sees what it did.
private actor Completions {
    private var running: [UploadID: Task<Result<UploadRow, Failure>, Never>] = [:]

    func run(_ id: UploadID, _ body: @escaping @Sendable () async throws(Failure) -> UploadRow) async throws(Failure)
        -> UploadRow
    {
        let earlier = running[id]
        let work = Task<Result<UploadRow, Failure>, Never> {
            _ = await earlier?.value
            do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
        }
        running[id] = work
        let result = await work.value
        if running[id] == work { running[id] = nil }
        return try result.get()
    }
}
