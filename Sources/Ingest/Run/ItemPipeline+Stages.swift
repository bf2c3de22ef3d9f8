import Files
import Foundation
import Vocabulary

extension ItemPipeline {
    // MARK: picked → staged

    func stage(_ item: ItemRow) async throws(Failure) -> Outcome {
        let files = try catalog.files(of: item.id).filter { $0.role.isGiven && $0.state == .wanted }
        if let failure = try await roomFailure(item, files) {
            try await catalog.waits(item, ConditionPolicy.noRoom)
            return .noRoom(failure)
        }
        let total = files.reduce(0) { $0 + $1.sourceSize }
        var before = 0
        for file in files {
            let staging = staging
            let board = board
            let start = before
            let staged: FileRow
            do throws(Failure) {
                staged = try await FileWork.run { stop throws(Failure) in
                    try staging.removeUnfinished(of: item.id, keepsDerived: true)
                    return try staging.adopt(file, isMoved: item.isMoved, stop: stop) { bytes in
                        if total > 0 { board.fraction(item, Double(start + bytes) / Double(total)) }
                    }
                }
            } catch {
                // The footage does not wait for its sidecar, which is told of, and taken when it is picked again.
                guard file.role == .sidecar, error.code == .sourceUnreadable else { throw error }
                try await catalog.leftOut(file, of: item, Reason(error))
                continue
            }
            try await catalog.staged(staged, of: item)
            if item.isMoved, let reason = try await finishMove(staged) { try await catalog.sourceStays(staged, reason) }
            before += staged.bytes ?? 0
        }
        return .moved
    }

    private func roomFailure(_ item: ItemRow, _ files: [FileRow]) async throws(Failure) -> Failure? {
        let root = staging.root
        // A card that hangs may not answer for long.
        let (given, free) = try await FileWork.run { _ throws(Failure) in
            // What is renamed takes no room. Where that turns out not to be possible, the copy reserves its own.
            let device = try Files.facts(root)?.device
            let given = files.reduce(0) { sum, file in
                let isRenamed = item.isMoved && file.source.flatMap { (try? Files.facts($0))?.device } == device
                return isRenamed ? sum : sum + file.sourceSize
            }
            return (given, try Files.freeBytes(at: root))
        }
        let made = SpacePolicy.madeBytes(original: item.sourceSize, mode: item.prepare)
        let policy = SpacePolicy(marginBytes: settings.bounds.spaceMarginBytes)
        guard given + made > 0, policy.decide(free: free, given: given, made: made) == .wait else { return nil }
        return SpacePolicy.failure(name: item.name, free: free, needed: given + made + policy.marginBytes)
    }

    // MARK: staged → preparing → uploading

    func prepare(_ item: ItemRow) async throws(Failure) -> Outcome {
        let files = try catalog.files(of: item.id)
        guard let original = files.first(where: { $0.role == .original }) else {
            throw Failure(.internalError, "An item has no original.", detail: item.id.rawValue)
        }
        let known = try catalog.uploads(of: item.id)
        guard known.isEmpty else {
            // Prepared in an earlier generation: only what has come since is added.
            let sendsOriginal = known.contains { $0.role == .original }
            try await write(item, files, made: [], sendsOriginal: sendsOriginal)
            return .moved
        }
        if original.state == .staged { try staging.check(original) }
        var item = item
        if item.state == .staged { item = try await probe(item, original) }
        let plan = PreparePlan(
            report: try item.probe?.read(), mode: item.prepare, isMetered: await settings.surroundings().isMetered)
        switch plan {
        case .refuse(let reason):
            let outcome = try await end(item, .rejected, reason)
            try await release(item.id)
            return outcome
        case .send(let jobs, let sendsOriginal):
            let made = try await make(jobs, item, original)
            try await write(item, files, made: made, sendsOriginal: sendsOriginal || made.isEmpty)
            return .moved
        }
    }

    private func probe(_ item: ItemRow, _ original: FileRow) async throws(Failure) -> ItemRow {
        var report: ProbeReport?
        if original.bytes == 0 {
            report = ProbeReport(
                file: item.name, facts: nil, reason: Reason(.empty, "The file is empty: nothing was recorded in it."))
        } else {
            do throws(Failure) { report = try await media.probe(staging.path(of: original), item.name) } catch {
                // Safekeeping does not depend on a decoder: after some attempts the backend gets the bytes without our facts.
                guard isMediaFault(error), item.attempts + 1 >= Self.mediaAttemptMax else { throw error }
            }
        }
        let type = report == nil ? nil : ContentType.of(report?.facts)
        try await catalog.probed(item, report, contentType: type)
        guard let probed = try catalog.item(item.id) else { return item }
        return probed
    }

    /// Attempts at probing and making before an item goes on without.
    private static let mediaAttemptMax = 3

    private func isMediaFault(_ failure: Failure) -> Bool {
        switch failure.code {
        case .mediaCrashed, .mediaKilled, .mediaTimeout, .mediaProtocol, .outputInvalid, .overBudget: true
        default: false
        }
    }

    private func make(
        _ jobs: [PreparePlan.Job], _ item: ItemRow, _ original: FileRow
    ) async throws(Failure) -> [MediaWork.Made] {
        guard !jobs.isEmpty else { return [] }
        let staging = staging
        let folder = try await FileWork.run { _ throws(Failure) in
            // What a killed process made is not in the catalog, and is made again.
            try staging.removeUnfinished(of: item.id, keepsDerived: false)
            return try Files.makeFolder(Staging.derivedFolder, in: staging.folder(of: item.id))
        }
        let board = board
        let path = staging.path(of: original)
        var made: [MediaWork.Made] = []
        do throws(Failure) {
            for job in jobs {
                switch job {
                case .rendition:
                    made += try await media.rendition(path, item.name, folder) { board.fraction(item, $0) }
                case .thumbnail:
                    made += try await media.thumbnail(path, item.name, folder, PreparePlan.thumbnailSize)
                }
            }
        } catch {
            guard isMediaFault(error), item.attempts + 1 >= Self.mediaAttemptMax else { throw error }
            return []
        }
        return made
    }

    /// Everything that will be sent, written down at once.
    private func write(
        _ item: ItemRow, _ files: [FileRow], made: [MediaWork.Made], sendsOriginal: Bool
    ) async throws(Failure) {
        let derived = try made.map { made throws(Failure) in
            guard made.path.hasPrefix(staging.root + "/") else {
                throw Failure(.internalError, "Something was made outside staging.", detail: made.path)
            }
            return FileRow(
                item: item.id, role: made.output.role, name: made.output.name.rawValue,
                path: String(made.path.dropFirst(staging.root.utf8.count + 1)), contentType: made.output.contentType,
                state: .staged, bytes: made.output.bytes, sha256: made.output.sha256)
        }
        let given = files.filter { $0.role.isGiven && $0.state == .staged && ($0.role != .original || sendsOriginal) }
        let known = Set(try catalog.uploads(of: item.id).map { [$0.role.rawValue, $0.name] })
        var random = settings.random
        let uploads = (derived + given).filter { !known.contains([$0.role.rawValue, $0.name]) }.map { file in
            UploadRow(
                id: UploadID.make(milliseconds: settings.clock.now(), using: &random), item: item.id, role: file.role,
                name: file.name, partSize: PartLimits.partSize(for: file.bytes ?? 0))
        }
        try await catalog.prepared(
            item, derived: derived, uploads: uploads, server: settings.serverName)
    }

    // MARK: uploading → processing

    func upload(_ item: ItemRow) async throws(Failure) -> Outcome {
        let files = try catalog.files(of: item.id)
        let uploads = try catalog.uploads(of: item.id)
        if item.server != settings.serverName { try await catalog.redirected(item, to: settings.serverName) }
        if item.wasDeleted {
            // Uploads are only taken for an item that is not deleted.
            try await weather.persist { () throws(Failure) in
                _ = try await client.attach(item.id, try attachRequest(item, []))
            }
            try await catalog.broughtBack(item)
        }
        let transferred = try catalog.transferred(item.id)
        board.uploading(item, total: transferred.total, confirmed: transferred.confirmed)
        let isAsked = try catalog.isAsked(item.id)
        for upload in uploads where upload.state != .completed {
            guard let file = files.first(where: { $0.role == upload.role && $0.name == upload.name }) else {
                throw Failure(.internalError, "An upload has no file.", detail: upload.id.rawValue)
            }
            if upload.generation == 0, let twin = try catalog.twin(of: file, item) {
                // Once the backend has read those, it answers that it has these, and no byte goes twice.
                let reason = "Waiting for “\(twin)”, which has the same bytes"
                try await catalog.waits(item, reason)
                board.state(item, item.state, waiting: reason)
                return .later(Self.twinInterval)
            }
            let uploader = Uploader(
                item: item, file: file, upload: upload, staging: staging, client: client, catalog: catalog,
                weather: weather, board: board, gate: gate,
                rank: PartGate.Turns.Rank(isAsked: isAsked, bytes: file.bytes ?? 0))
            do throws(Failure) {
                if let outcome = try await send(uploader, of: item, bytes: file.bytes ?? 0) { return outcome }
            } catch {
                guard error.code == .notFound, upload.generation > 0 else { throw error }
                return try await startOver(item, uploads, areSealed: false, after: error)
            }
        }
        let request = try attachRequest(item, uploads)
        let document: ItemDocument
        do throws(Failure) {
            document = try await weather.persist { () throws(Failure) in try await client.attach(item.id, request) }
        } catch {
            guard error.code == .conflict || error.code == .incomplete || error.code == .gone else { throw error }
            return try await startOver(item, uploads, areSealed: true, after: error)
        }
        try await catalog.attached(item)
        // It may be done already, since an earlier process had handed it over: then no event will come any more.
        return document.isAwaited ? .watched(0) : .moved
    }

    /// Seconds between two looks whether the same bytes have arrived as another item's.
    private static let twinInterval = 0.5

    private func attachRequest(_ item: ItemRow, _ uploads: [UploadRow]) throws(Failure) -> AttachRequest {
        AttachRequest(
            kind: item.kind, shoot: item.shoot, title: item.title, caption: item.caption, place: item.place,
            takenAt: try item.probe?.read().facts?.takenAt,
            uploads: uploads.map { AttachRequest.Upload(uploadID: $0.id, role: $0.role, name: $0.name) })
    }

    /// Begins anew with uploads that the backend does not have as we believed: nobody had taken them for too long, or it is another backend, or
    /// an earlier state of this one, and has never heard of them.
    /// - Throws: the failure itself, where it has them all.
    private func startOver(
        _ item: ItemRow, _ uploads: [UploadRow], areSealed: Bool, after failure: Failure
    ) async throws(Failure) -> Outcome {
        guard item.attempts + 1 < retries.attemptMax else { throw failure }
        var (lost, unheardOf) = ([UploadID](), Set<UploadID>())
        for id in uploads.filter({ $0.generation > 0 }).map(\.id) {
            do throws(Failure) {
                let listing = try await weather.persist { () throws(Failure) in try await client.parts(id) }
                if areSealed, listing.state != .complete { lost.append(id) }
            } catch {
                guard error.code == .notFound else { throw error }
                lost.append(id)
                unheardOf.insert(id)
            }
        }
        guard !lost.isEmpty else { throw failure }
        try await catalog.vanished(lost, unheardOf: unheardOf, of: item)
        return .moved
    }

    // MARK: processing → ready, rejected

    func poll(_ item: ItemRow, count: Int) async throws(Failure) -> Outcome {
        let document: ItemDocument
        do throws(Failure) {
            document = try await weather.persist { () throws(Failure) in try await client.item(item.id) }
        } catch {
            guard error.code == .notFound || error.code == .gone else { throw error }
            // The backend has lost the item, not necessarily its uploads: tie them to it again.
            guard item.attempts + 1 < retries.attemptMax else { throw error }
            try await catalog.vanished([], of: item)
            return .moved
        }
        let files = try catalog.files(of: item.id)
        let uploads = try catalog.uploads(of: item.id)
        let hashes = uploads.map { upload in
            (row: upload, sha256: files.first { $0.role == upload.role && $0.name == upload.name }?.sha256)
        }
        if let progress = document.progress { board.fraction(item, progress) }
        let verdict = BackendVerdict(document, uploads: hashes)
        if BackendVerdict.hasConfirmedGiven(document, uploads: hashes),
            uploads.contains(where: { $0.role.isGiven && $0.confirmedSHA256 == nil })
        {
            // Processing may take hours: staging does not wait for it once the bytes are confirmed. What was moved does: as long as the item may
            // be cancelled, its only copy is here.
            try await catalog.confirmed(item, document)
            if !item.isMoved { try await release(item.id) }
        }
        switch verdict {
        case .wait:
            var random = settings.random
            let delay = PollPolicy().delay(count: count + 1, using: &random)
            // Where the state is final already, only the hashes are missing: no event will tell of them.
            return document.isAwaited ? .watched(delay) : .later(delay)
        case .sendAgain(let ids):
            guard item.attempts + 1 < retries.attemptMax else {
                throw Failure(
                    .hashMismatch, "What arrived at the backend was not what was sent, again and again.",
                    detail: ids.map(\.rawValue).joined(separator: " "))
            }
            try await catalog.vanished(ids, of: item)
            // Either the way damaged the bytes, or they are not what they were here.
            for file in files where file.state == .staged && file.role.isGiven {
                let staging = staging
                guard let item = try catalog.item(item.id) else { break }
                do throws(Failure) {
                    try await FileWork.run { stop throws(Failure) in try staging.verify(file, stop: stop) }
                } catch { return try await failed(item, error) }
            }
            return .moved
        case .end(let state, let reason):
            try await catalog.settled(item, document, as: state, reason)
            board.state(item, state, reason: reason)
            try await release(item.id)
            return .finished
        }
    }

    // MARK: release

    /// Lets the files go of which it is certain that they may: given ones by their confirmed hash alone, whatever the item's state.
    func release(_ id: ItemID) async throws(Failure) {
        // What is to be cancelled leaves the backend: nothing may rely on it any more.
        guard let item = try catalog.item(id), item.intent != .cancelled || item.isOver else { return }
        let uploads = try catalog.uploads(of: id)
        var going: [FileRow] = []
        for file in try catalog.files(of: id) where file.state != .wanted {
            if file.state == .staged {
                let upload = uploads.first { $0.role == file.role && $0.name == file.name }
                guard try await mayGo(file, of: item, upload) else { continue }
            }
            going.append(file)
        }
        guard !going.isEmpty || item.isOver else { return }
        let (files, staging) = (try await catalog.released(going), staging)
        try await FileWork.run { _ throws(Failure) in try staging.remove(files, of: id, withFolder: item.isOver) }
    }

    private func mayGo(_ file: FileRow, of item: ItemRow, _ upload: UploadRow?) async throws(Failure) -> Bool {
        let policy = ReleasePolicy.decide(
            role: file.role, sha256: file.sha256, state: item.state, reason: item.reason?.code, isMoved: item.isMoved,
            confirmed: upload?.confirmedSHA256)
        switch policy {
        case .go: return true
        case .stay: return false
        case .goIfSourceHasIt:
            return try await sourceHas(file)
        }
    }
}

extension ItemDocument {
    /// The backend is, or will be, at work on it, and an event tells of its end.
    fileprivate var isAwaited: Bool { state == .processing || state == .awaiting }
}
