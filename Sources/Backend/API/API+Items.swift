import Foundation
import Digests
import HTTPServer
import Vocabulary

extension API {
    func attach(_ id: ItemID, _ body: Data, _ caller: Caller) async throws(Failure) -> HTTPResponse {
        let request = try JSON.decode(AttachRequest.self, from: body)
        try RequestChecks.check(request)
        _ = try shoot(request.shoot, for: caller)
        for upload in request.uploads { try await admit(caller, toUpload: upload.uploadID) }
        let row = try await ledger.attach(request, to: id, owner: caller.owner, now: clock())
        wake()
        return .json(document(row))
    }

    func showItem(_ id: ItemID, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        guard let row = try await ledger.item(id, owner: owner) else { throw LedgerFault.unknown }
        guard row.state != .deleted else { throw LedgerFault.deleted }
        return .json(document(row))
    }

    func removeItem(_ id: ItemID, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        guard try await ledger.remove(id, owner: owner, now: clock()) else { throw LedgerFault.unknown }
        // Its lease is gone with it; a worker of this process does not have to find that out.
        running.stop(id)
        progress.clear(id)
        // Its sessions are still open at the store, and its objects there.
        lookAtStore()
        wake()
        return HTTPResponse(status: 204)
    }

    func listItems(_ query: [String: String], _ caller: Caller) async throws(Failure) -> HTTPResponse {
        let limit = min(APIBounds.pageMax, max(1, query["limit"].flatMap { Int($0) } ?? APIBounds.pageDefault))
        var after: ItemID?
        if let cursor = query["cursor"], !cursor.isEmpty {
            guard let bytes = [UInt8](base64URL: cursor),
                let id = ItemID(rawValue: String(decoding: bytes, as: UTF8.self))
            else {
                throw Failure(.badRequest, "This cursor was not given out here.")
            }
            after = id
        }
        let rows = try await ledger.items(
            owner: caller.owner, shoot: try shoot(query["shoot"], for: caller), after: after, limit: limit + 1)
        let page = rows.prefix(limit)
        let cursor = rows.count > limit ? page.last.map { Array($0.id.rawValue.utf8).base64URL } : nil
        return .json(ItemPage(items: page.map(document), cursor: cursor))
    }

    func playback(_ id: ItemID, _ owner: Owner) async throws(Failure) -> HTTPResponse {
        guard let row = try await ledger.item(id, owner: owner) else { throw LedgerFault.unknown }
        guard row.state != .deleted else { throw LedgerFault.deleted }
        guard row.state == .ready, let best = row.renditions.first(where: { $0.rendition.role == .rendition }) else {
            throw Failure(.notFound, "There is nothing to play (yet).")
        }
        let expiresAt = clock().adding(seconds: lifetimes.url)
        return .json(
            Playback(
                url: url(of: best, until: expiresAt), expiresAt: expiresAt.iso8601,
                renditions: row.renditions.filter { $0.rendition.role == .rendition }.map {
                    signed($0, until: expiresAt)
                }))
    }

    /// Only what an item offers is served, under the type that the backend found itself: never the client's word, which a browser would act on.
    func media(_ key: BlobKey, _ query: [String: String]) async throws(Failure) -> HTTPResponse {
        guard signer.allows(key, expires: query["expires"], signature: query["signature"], now: clock()) else {
            throw Failure(.urlExpired, "This URL is not valid (any more): ask for a new one.")
        }
        guard let rendition = try await ledger.offering(key) else {
            throw Failure(.gone, "These bytes are not there any more.")
        }
        guard let door else { throw Failure(.gone, "These bytes are served by the store itself.") }
        let file = FileBody(
            path: door.blobPath(key), contentType: rendition.contentType, etag: "\"\(rendition.sha256)\"")
        return HTTPResponse(
            status: 200,
            headers: [
                ("X-Content-Type-Options", "nosniff"), ("Cache-Control", "private, max-age=31536000, immutable"),
            ],
            body: .file(file))
    }

    // MARK: Pieces

    private func signed(_ row: RenditionRow, until expiresAt: Timestamp) -> Rendition {
        var rendition = row.rendition
        rendition.url = url(of: row, until: expiresAt)
        return rendition
    }

    private func url(of row: RenditionRow, until expiresAt: Timestamp) -> String {
        store.url(row.blob, contentType: row.rendition.contentType, seconds: lifetimes.url)
            ?? signer.url(for: row.blob, expiresAt: expiresAt)
    }

    private func document(_ row: ItemRow) -> ItemDocument {
        let expiresAt = clock().adding(seconds: lifetimes.url)
        var document = ItemDocument(
            itemID: row.id, shoot: row.shoot, kind: row.kind, state: row.state, generation: row.generation)
        document.reason = row.reason
        document.progress = row.state == .processing ? progress.fraction(row.id) : nil
        document.durationMS = row.durationMS
        document.aspect = row.aspect
        document.previewColor = row.previewColor
        document.renditions = row.renditions.map { signed($0, until: expiresAt) }
        document.posterURL = document.renditions.first { $0.role == .poster || $0.role == .thumbnail }?.url
        document.uploads = row.uploads.map {
            ItemDocument.Upload(
                uploadID: $0.id, role: $0.role, name: $0.name, state: $0.state, sizeBytes: $0.size ?? 0,
                sha256Recomputed: $0.recomputed, verifiedAt: $0.verifiedAt?.iso8601)
        }
        return document
    }
}
