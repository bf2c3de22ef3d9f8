import Foundation
import Digests
import Vocabulary

/// Bounds on what clients send, checked at the door.
enum APIBounds {
    static let bodyBytesMax = 1 << 20
    /// Every part with an ETag of up to 256 bytes: some stores' are opaque and long.
    static let completeBytesMax = 4 << 20
    /// Unfinished uploads of one owner. A box has few open at once, but what it gave up for good, or was lost with it, stays until it runs out.
    static let openUploadsMax = 10_000
    static let nameBytesMax = 255
    static let textBytesMax = 4096
    static let contentTypeBytesMax = 127
    static let attachedUploadsMax = 100
    static let pageDefault = 100
    static let pageMax = 500
    /// With less the backend says that it is not ready.
    static let freeBytesMin = 64 << 20
}

enum RequestChecks {
    private static func bad(_ message: String) -> Failure { Failure(.badRequest, message) }

    static func check(_ request: OpenUploadRequest, idempotencyKey: String?) throws(Failure) {
        if let idempotencyKey, idempotencyKey != request.uploadID.rawValue {
            throw bad("Idempotency-Key has to be the upload_id.")
        }
        try checkName(request.name, "name")
        try checkName(request.filename, "filename")
        try checkText(request.contentType, "content_type", APIBounds.contentTypeBytesMax)
        try checkText(request.shoot, "shoot", APIBounds.nameBytesMax)
        let grid = UploadGrid(size: request.sizeBytes, partSize: request.partSize)
        if let fault = grid.fault { throw fault }
        guard request.parts.count <= PartLimits.firstURLsMax else {
            throw bad("At most \(PartLimits.firstURLsMax) parts can be asked for with the open.")
        }
    }

    static func check(_ request: AttachRequest) throws(Failure) {
        try checkText(request.shoot, "shoot", APIBounds.nameBytesMax)
        for (text, field) in [
            (request.title, "title"), (request.caption, "caption"), (request.place, "place"),
            (request.takenAt, "taken_at"),
        ] {
            if let text { try checkText(text, field, APIBounds.textBytesMax) }
        }
        guard request.uploads.count <= APIBounds.attachedUploadsMax else {
            throw bad("At most \(APIBounds.attachedUploadsMax) uploads can be attached at once.")
        }
    }

    /// - Returns: the parts as they are signed.
    static func signed(_ parts: [PartRequest], grid: UploadGrid) throws(Failure) -> [SignedPart] {
        var signed: [SignedPart] = []
        for part in parts {
            guard grid.contains(number: part.partNumber, length: part.length) else {
                throw bad("Part \(part.partNumber) of \(part.length) bytes does not fit the grid.")
            }
            guard let md5 = [UInt8](base64: part.contentMD5), md5.count == 16 else {
                throw bad("content_md5 of part \(part.partNumber) is not the base64 of an MD5.")
            }
            signed.append(SignedPart(number: part.partNumber, length: part.length, md5: md5.hexadecimal))
        }
        guard Set(signed.map(\.number)).count == signed.count else { throw bad("A part number is given twice.") }
        return signed
    }

    private static func checkName(_ name: String, _ field: String) throws(Failure) {
        guard !name.isEmpty else { throw bad("\(field) is empty.") }
        try checkText(name, field, APIBounds.nameBytesMax)
    }

    private static func checkText(_ text: String, _ field: String, _ bytesMax: Int) throws(Failure) {
        guard text.utf8.count <= bytesMax, !text.utf8.contains(0) else {
            throw bad("\(field) is longer than \(bytesMax) bytes or holds a zero byte.")
        }
    }
}

/// Whether the client, the ledger and the store agree on what an upload consists of. Pure.
enum CompletionCheck {
    /// - Parameters:
    ///   - signed: the latest signature for each part.
    ///   - stored: what the store lists.
    /// - Returns: the parts in order, that together are the object.
    static func parts(
        _ request: CompleteUploadRequest, row: UploadRow, signed: [SignedPart], stored: [StoredPart]
    ) throws(Failure) -> [StoredPart] {
        if let size = row.size, size != request.sizeBytes {
            throw Failure(.conflict, "This upload was opened with \(size) bytes, not \(request.sizeBytes).")
        }
        if let sha256 = row.sha256, sha256 != request.sha256 {
            throw Failure(.conflict, "This upload was opened with another SHA-256.")
        }
        let grid = UploadGrid(size: request.sizeBytes, partSize: row.partSize)
        if let fault = grid.fault { throw fault }
        let declared = Dictionary(
            request.parts.map { ($0.partNumber, $0.etag) }, uniquingKeysWith: { first, _ in first })
        let signatures = signed.byNumber
        let held = Dictionary(grouping: stored, by: \.number)
        var parts: [StoredPart] = []
        for number in 1...(grid.partCount ?? 1) {
            guard let signature = signatures[number], let part = held[number]?.first(where: { $0.matches(signature) })
            else {
                throw Failure(.incomplete, "Part \(number) is missing: ask for the list of parts and send the rest.")
            }
            guard grid.contains(number: number, length: part.size) else {
                throw Failure(.incomplete, "Part \(number) does not have the length that this size asks for.")
            }
            if let etag = declared[number] ?? nil, !ETag.isSame(etag, part.etag) {
                throw Failure(
                    .incomplete,
                    "Part \(number) is held with another ETag: ask for the list of parts and send the rest.",
                    detail: "held \(part.etag), declared \(etag)")
            }
            parts.append(part)
        }
        guard Set(declared.keys).isSubset(of: Set(parts.map(\.number))) else {
            throw Failure(.badRequest, "More parts are declared than this size has.")
        }
        return parts
    }
}
