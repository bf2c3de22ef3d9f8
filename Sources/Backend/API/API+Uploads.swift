import Foundation
import HTTPServer
import Vocabulary

extension API {
    func openUpload(_ body: Data, idempotencyKey: String?, _ caller: Caller) async throws(Failure) -> HTTPResponse {
        let request = try JSON.decode(OpenUploadRequest.self, from: body)
        try RequestChecks.check(request, idempotencyKey: idempotencyKey)
        let parts = try RequestChecks.signed(
            request.parts, grid: UploadGrid(size: request.sizeBytes, partSize: request.partSize))
        let now = clock()
        _ = try shoot(request.shoot, for: caller)
        try await admit(caller, toUpload: request.uploadID)
        try await admit(caller, toItem: request.itemID)
        // What the store has lost meanwhile has to come once more.
        let lost = try await ledger.lost(
            request.sha256, size: request.sizeBytes, owner: caller.owner, shoot: caller.shoot, from: store)
        // Who may see one shoot only must not get at another's bytes by naming their hash.
        let (row, isNew) = try await ledger.open(
            request, owner: caller.owner, now: now, expiresAt: now.adding(seconds: lifetimes.session),
            knowing: caller.shoot, lost: lost, openMax: APIBounds.openUploadsMax)
        let session = try await session(row, sign: parts, owner: caller.owner)
        return .json(session, status: isNew ? 201 : 200)
    }

    func partURLs(_ id: UploadID, _ body: Data, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        let request = try JSON.decode(PartURLsRequest.self, from: body)
        guard request.parts.count <= PartLimits.urlsMax else {
            throw Failure(.badRequest, "At most \(PartLimits.urlsMax) parts can be asked for at once.")
        }
        let row = try await known(id, owner)
        guard row.generation == request.generation else { throw LedgerFault.stale }
        let parts = try RequestChecks.signed(request.parts, grid: row.grid)
        let urls = try await sign(parts, of: row, owner: owner)
        return .json(PartURLs(urls: urls, expiresIn: Int(lifetimes.url)))
    }

    func listParts(_ id: UploadID, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        let row = try await known(id, owner)
        let parts = try await held(row)
        return .json(
            StoredParts(
                generation: row.generation, state: row.state,
                parts: parts.map { StoredParts.Part(partNumber: $0.number, size: $0.size, etag: $0.quotedETag) }))
    }

    func complete(_ id: UploadID, _ body: Data, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        let request = try JSON.decode(CompleteUploadRequest.self, from: body)
        guard request.parts.count <= PartLimits.countMax else {
            throw Failure(.badRequest, "There are too many parts.")
        }
        let row = try await sealing.complete(id, request, owner: owner)
        if row.isAttached { wake() }
        return .json(describe(row, urls: [:]))
    }

    func reopen(_ id: UploadID, _ body: Data, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        let request = try JSON.decode(ReopenUploadRequest.self, from: body)
        var row = try await known(id, owner)
        guard !row.isTus else { throw LedgerFault.tus }
        // Whether a session has vanished is for the store to say, not for the client.
        let isAlive = row.state == .open && row.generation == request.generation
        if isAlive {
            let held = try await sealing.held(row, signed: try await ledger.signedParts(row.session))
            if held.object != nil, let size = row.size, let sha256 = row.sha256 {
                // Its completion was cut short after the store had done its part.
                let parts = held.parts.map { CompleteUploadRequest.Part(partNumber: $0.number, etag: nil) }
                let request = CompleteUploadRequest(
                    generation: row.generation, sizeBytes: size, sha256: sha256, parts: parts)
                row = try await sealing.complete(id, request, owner: owner)
                if row.isAttached { wake() }
            }
            if !held.isLost { return .json(try await session(row, sign: [], owner: owner)) }
        }
        if isAlive { try await ledger.expire(row.session) }
        guard
            let reopened = try await ledger.reopen(
                id, owner: owner, generation: request.generation, expiresAt: clock().adding(seconds: lifetimes.session),
                openMax: APIBounds.openUploadsMax)
        else { throw LedgerFault.unknown }
        row = reopened
        return .json(try await session(row, sign: [], owner: owner))
    }

    func abort(_ id: UploadID, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        guard try await ledger.abort(id, owner: owner) != nil else { throw LedgerFault.unknown }
        removeDoomed()
        return HTTPResponse(status: 204)
    }

    func uploadOffset(_ id: UploadID, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        let row = try await known(id, owner)
        guard !row.isTus else { throw LedgerFault.tus }
        guard row.state == .open || row.state == .complete else {
            throw Failure(.gone, "This upload is \(row.state.rawValue).")
        }
        var offset = row.state == .complete ? row.size ?? 0 : 0
        if row.state == .open {
            for (index, part) in try await held(row).enumerated() {
                guard part.number == index + 1 else { break }
                offset += part.size
            }
        }
        var headers = [(name: "Upload-Offset", value: String(offset)), ("Upload-Expires", row.expiresAt.httpDate)]
        if let size = row.size { headers.append(("Upload-Length", String(size))) }
        return HTTPResponse(status: 200, headers: headers + [("Cache-Control", "no-store")])
    }

    // MARK: Pieces

    private func known(_ id: UploadID, _ owner: Owner) async throws(Failure) -> UploadRow {
        guard let row = try await ledger.upload(id, owner: owner) else { throw LedgerFault.unknown }
        return row
    }

    /// Of an open session: what the store holds of what was last signed for each part.
    private func held(_ row: UploadRow) async throws(Failure) -> [StoredPart] {
        guard row.state == .open else { return [] }
        return try await sealing.held(row, signed: try await ledger.signedParts(row.session)).parts
    }

    private func session(_ row: UploadRow, sign parts: [SignedPart], owner: Owner) async throws(Failure)
        -> UploadSession
    {
        guard row.state == .open else { return describe(row, urls: [:]) }
        let begun = try await sealing.begin(row)
        return describe(begun, urls: try await sign(parts, of: begun, owner: owner))
    }

    /// What was signed is remembered before a URL leaves the house.
    private func sign(_ parts: [SignedPart], of row: UploadRow, owner: Owner) async throws(Failure) -> [String: String]
    {
        guard !parts.isEmpty else { return [:] }
        let now = clock()
        try await ledger.recordSigned(
            parts, session: row.session, owner: owner, expiresAt: now.adding(seconds: lifetimes.session))
        let expiresAt = now.adding(seconds: lifetimes.url)
        let urls = parts.map { part in
            (
                String(part.number),
                store.partURL(part, of: row.session, seconds: lifetimes.url)
                    ?? signer.url(for: PartPermit(session: row.session, part: part, expiresAt: expiresAt))
            )
        }
        return Dictionary(urls, uniquingKeysWith: { first, _ in first })
    }

    private func describe(_ row: UploadRow, urls: [String: String]) -> UploadSession {
        UploadSession(
            uploadID: row.id, generation: row.generation, state: row.state, partSize: row.partSize,
            partCount: row.grid.partCount,
            urls: urls, expiresAt: row.expiresAt.iso8601, alreadyStored: row.isAlreadyStored)
    }
}
