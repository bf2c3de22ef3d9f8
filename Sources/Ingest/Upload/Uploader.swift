import Synchronization
import Vocabulary

/// Carries out what the state machine of one file asks for. One of these a file; it lives as long as the upload runs.
final class Uploader: Sendable {
    let item: ItemRow
    let file: FileRow
    let upload: UploadRow
    let path: String
    let client: BackendClient
    let catalog: Catalog
    let weather: Weather
    let board: TransferBoard
    private let gate: PartGate
    private let rank: PartGate.Turns.Rank
    private let hashes: PartHashes
    /// Parts whose URL was refused, so that the next one was signed just before it is used.
    private let refused = Mutex<Set<Int>>([])

    init(
        item: ItemRow, file: FileRow, upload: UploadRow, staging: Staging, client: BackendClient, catalog: Catalog,
        weather: Weather, board: TransferBoard, gate: PartGate, rank: PartGate.Turns.Rank
    ) {
        self.item = item
        self.file = file
        self.upload = upload
        path = staging.path(of: file)
        hashes = PartHashes(file, in: staging)
        self.client = client
        self.catalog = catalog
        self.weather = weather
        self.board = board
        self.gate = gate
        self.rank = rank
    }

    /// Brings the file to the backend. Returns when the backend has all of it; what it read itself shows in the item's document later.
    func run() async throws(Failure) {
        let grid = try PartGrid(size: file.bytes ?? 0, partSize: upload.partSize)
        var machine = UploadStateMachine(grid: grid)
        var failure: Failure?
        let known = try await known()
        await withTaskGroup(of: UploadStateMachine.Event.self) { group in
            var events = [UploadStateMachine.Event.begun(known)]
            while true {
                for event in events {
                    // Its last act may fail too: writing down that the file has arrived.
                    if machine.isEnded, case .failed(let reason, nil) = event, failure == nil { failure = reason }
                    for action in machine.handle(event) {
                        if case .giveUp(let reason) = action { failure = reason }
                        // Only the grid of the session counts: the backend may have clamped the size of a part.
                        let grid = machine.grid
                        group.addTask { await self.carryOut(action, grid) }
                    }
                }
                if machine.isEnded, failure != nil { group.cancelAll() }
                guard let event = await group.next() else { break }
                events = [event]
            }
        }
        if let failure { throw failure }
    }

    private func known() async throws(Failure) -> UploadStateMachine.Known {
        if upload.generation == UploadRow.unheardOf { return .unheardOf }
        guard upload.generation > 0 else { return .nothing }
        if upload.state == .queued { return .useless(generation: upload.generation) }
        let parts = try catalog.parts(of: upload.id)
        return .session(generation: upload.generation, acknowledged: Set(parts.map(\.number)))
    }

    // MARK: Actions

    private func carryOut(_ action: UploadStateMachine.Action, _ grid: PartGrid) async -> UploadStateMachine.Event {
        do throws(Failure) {
            switch action {
            case .open(let parts): return try await open(parts, grid)
            case .reopen(let generation):
                let session = try await persist { () throws(Failure) in
                    try await client.reopen(upload.id, generation: generation)
                }
                return try await opened(session)
            case .list: return try await list(grid)
            case .sign(let parts, let generation):
                let wanted = try await partRequests(parts, grid)
                let urls = try await persist { () throws(Failure) in try await sign(wanted, generation) }
                return .signed(generation: generation, urls)
            case .send(let part, let url, let generation):
                return try await send(grid.part(part), url, generation)
            case .complete(let generation): return try await complete(generation)
            case .finish(let generation):
                try await catalog.completed(upload.id, generation: generation)
                return .completed
            case .giveUp: return .completed
            }
        } catch { return await event(for: error, after: action) }
    }

    /// What a refusal means to the machine.
    private func event(
        for failure: Failure, after action: UploadStateMachine.Action
    ) async -> UploadStateMachine.Event {
        switch (action, failure.code) {
        case (.send(let part, _, let generation), .urlExpired), (.send(let part, _, let generation), .unauthorized):
            refused.withLock { _ = $0.insert(part) }
            return .urlRefused(part, generation: generation)
        case (.send(let part, _, let generation), .badDigest), (.send(let part, _, let generation), .badRequest):
            // What is staged may have changed since it was signed.
            await hashes.forget(part)
            return .partRefused(part, generation: generation)
        case (.send(let part, _, let generation), .notFound), (.send(let part, _, let generation), .gone):
            return .sessionLost(generation: generation, part: part)
        case (.sign(_, let generation), .notFound), (.sign(_, let generation), .gone),
            (.complete(let generation), .notFound), (.complete(let generation), .gone):
            return .sessionLost(generation: generation)
        case (_, .staleGeneration): return .generationStale
        case (.complete(let generation), .incomplete): return .incomplete(generation: generation)
        case (.complete(let generation), .hashMismatch): return .wholeRefused(generation: generation)
        case (.send(_, _, let generation), _): return .failed(failure, generation: generation)
        default: return .failed(failure, generation: nil)
        }
    }

    private func open(_ parts: [Int], _ grid: PartGrid) async throws(Failure) -> UploadStateMachine.Event {
        let request = Self.openRequest(item, file, upload, partSize: grid.partSize, try await partRequests(parts, grid))
        let session = try await persist { () throws(Failure) in try await client.open(request) }
        return try await opened(session)
    }

    /// The same for every repetition but for the parts.
    static func openRequest(
        _ item: ItemRow, _ file: FileRow, _ upload: UploadRow, partSize: Int, _ parts: [PartRequest]
    ) -> OpenUploadRequest {
        OpenUploadRequest(
            uploadID: upload.id, itemID: item.id, role: file.role, name: file.name,
            filename: file.role == .original ? item.name : file.name, contentType: file.contentType,
            sizeBytes: file.bytes, partSize: partSize, sha256: file.sha256, shoot: item.shoot, parts: parts)
    }

    /// The session is written down before the first byte goes.
    private func opened(_ session: UploadSession) async throws(Failure) -> UploadStateMachine.Event {
        if !session.alreadyStored, session.state == .open {
            try await catalog.sessionOpened(
                upload.id, generation: session.generation, partSize: session.partSize)
        }
        return .session(session)
    }

    private func list(_ grid: PartGrid) async throws(Failure) -> UploadStateMachine.Event {
        let listing = try await persist { () throws(Failure) in try await client.parts(upload.id) }
        if listing.state == .open {
            try await catalog.sessionOpened(upload.id, generation: listing.generation, partSize: grid.partSize)
            let parts = listing.parts.filter { grid.contains(number: $0.partNumber, length: $0.size) }
            try await catalog.stored(
                parts.map { PartRow(number: $0.partNumber, bytes: $0.size, etag: $0.etag) }, of: upload.id,
                generation: listing.generation)
        }
        return .listed(listing)
    }

    private func send(
        _ part: PartGrid.Part, _ url: String, _ generation: Int
    ) async throws(Failure) -> UploadStateMachine.Event {
        let request = try await hashes.requests([part])[0]
        let key = TransferBoard.PartKey(upload: upload.id, number: part.number)
        let wasRefused = refused.withLock { $0.contains(part.number) }
        let isFirst = Mutex(true)
        defer { board.sending(item, key, nil) }
        let etag = try await persist(.store, part: part.number) { () throws(Failure) in
            // Where even what is signed just now is refused, what comes later has to be signed later, too.
            let isSigned = isFirst.withLock { isFirst in
                defer { isFirst = false }
                return isFirst || !wasRefused
            }
            let address = isSigned ? url : try await self.sign([request], generation)[part.number] ?? url
            return try await self.gate.pass(self.rank) { () throws(Failure) in
                try await self.client.put(
                    request, of: self.path, offset: part.offset, to: address, wasRefused: wasRefused
                ) { sent in
                    self.board.sending(self.item, key, sent)
                }
            }
        }
        try await catalog.stored(
            [PartRow(number: part.number, bytes: part.length, etag: etag)], of: upload.id, generation: generation)
        await hashes.forget(part.number)
        refused.withLock { _ = $0.remove(part.number) }
        board.acknowledged(item, bytes: part.length)
        return .stored(part.number, generation: generation)
    }

    private func complete(_ generation: Int) async throws(Failure) -> UploadStateMachine.Event {
        guard let bytes = file.bytes, let sha256 = file.sha256 else {
            throw Failure(.internalError, "A file was to be sealed before it was staged.", detail: file.path)
        }
        try await hashes.confirm()
        try await catalog.completing(upload.id)
        let parts = try catalog.parts(of: upload.id)
        let request = CompleteUploadRequest(
            generation: generation, sizeBytes: bytes, sha256: sha256,
            parts: parts.map { CompleteUploadRequest.Part(partNumber: $0.number, etag: $0.etag) })
        // A lost answer is no answer: the same request again, which the backend allows.
        try await persist { () throws(Failure) in try await client.complete(upload.id, request) }
        return .completed
    }

    // MARK: Parts

    private func sign(_ parts: [PartRequest], _ generation: Int) async throws(Failure) -> [Int: String] {
        UploadStateMachine.numbered(
            try await client.partURLs(upload.id, PartURLsRequest(generation: generation, parts: parts)).urls)
    }

    private func partRequests(_ numbers: [Int], _ grid: PartGrid) async throws(Failure) -> [PartRequest] {
        try await hashes.requests(numbers.map(grid.part))
    }
}
