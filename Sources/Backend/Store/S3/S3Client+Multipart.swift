import Curl
import Digests
import Vocabulary
import XML

/// A part as a store lists it.
struct S3Part: Sendable, Hashable {
    var number: Int
    /// Bytes.
    var size: Int
    /// Without quotes.
    var etag: String
}

extension S3Client {
    /// Pages of one listing that are followed; each has up to 1000 entries.
    static let pageMax = 1000

    /// - Returns: the store's name for the upload.
    func createMultipart(_ key: String) async throws(Failure) -> String {
        // Repeated after a lost answer it makes a second one, which nobody knows: the sweep ends it.
        let answer = try await send(Request(method: .post, key: key, query: [SignatureV4.Parameter("uploads", "")]))
        guard let id = try answer.document("InitiateMultipartUploadResult").text("UploadId"), !id.isEmpty else {
            throw Failure(.backendError, "The store began an upload without naming it.")
        }
        return id
    }

    func partURL(_ part: SignedPart, of upload: String, _ key: String, expiresIn seconds: Double) -> String {
        presigned(
            .put, key,
            query: [
                SignatureV4.Parameter("partNumber", String(part.number)), SignatureV4.Parameter("uploadId", upload),
            ],
            headers: [
                SignatureV4.Parameter("Content-Length", String(part.length)),
                SignatureV4.Parameter("Content-MD5", part.contentMD5),
            ], expiresIn: seconds)
    }

    /// One of the backend's own.
    func putPart(_ part: SignedPart, of upload: String, _ key: String, from path: String, at offset: Int)
        async throws(Failure) -> S3Part
    {
        let answer = try await send(
            Request(
                method: .put, key: key,
                query: [
                    SignatureV4.Parameter("partNumber", String(part.number)), SignatureV4.Parameter("uploadId", upload),
                ],
                headers: [SignatureV4.Parameter("Content-MD5", part.contentMD5)],
                body: .file(path: path, offset: offset, length: part.length)))
        let etag = try answer.expectSuccess().headers["ETag"]?.unquoted
        return S3Part(number: part.number, size: part.length, etag: etag ?? part.md5)
    }

    /// By number; nil when the store does not have the upload (any more).
    func parts(of upload: String, _ key: String) async throws(Failure) -> [S3Part]? {
        var parts: [S3Part] = []
        var marker = 0
        for _ in 0..<Self.pageMax {
            let answer = try await send(
                Request(
                    method: .get, key: key,
                    query: [
                        SignatureV4.Parameter("uploadId", upload),
                        SignatureV4.Parameter("part-number-marker", String(marker)),
                    ]))
            if answer.isGone { return nil }
            let page = try answer.document("ListPartsResult")
            for part in page.all("Part") {
                guard let number = part.text("PartNumber").flatMap({ Int($0) }),
                    let size = part.text("Size").flatMap({ Int($0) })
                else { throw Self.odd("a part without number or size") }
                parts.append(S3Part(number: number, size: size, etag: (part.text("ETag") ?? "").unquoted))
            }
            guard page.text("IsTruncated") == "true" else {
                return parts.sorted { $0.number < $1.number }
            }
            guard let next = page.text("NextPartNumberMarker").flatMap({ Int($0) }), next > marker else {
                throw Self.odd("a page of parts that leads nowhere")
            }
            marker = next
        }
        throw Self.odd("a listing without end")
    }

    /// Once: what to do when the answer is lost is for who asked.
    /// - Returns: the object's ETag without quotes; nil where the store shows none.
    func completeMultipart(_ upload: String, _ key: String, _ parts: [S3Part]) async throws(Failure) -> String? {
        let list = parts.sorted { $0.number < $1.number }.map {
            "<Part><PartNumber>\($0.number)</PartNumber><ETag>&quot;\(XMLElement.escaped($0.etag))&quot;</ETag></Part>"
        }
        let body =
            "<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
            + "\(list.joined())</CompleteMultipartUpload>"
        let answer = try await send(
            Request(
                method: .post, key: key, query: [SignatureV4.Parameter("uploadId", upload)],
                headers: [SignatureV4.Parameter("Content-Type", "application/xml")], body: .bytes(Array(body.utf8)),
                isRepeatable: false, silenceMax: 60))
        let etag = try answer.document("CompleteMultipartUploadResult").text("ETag")?.unquoted
        return etag?.isEmpty ?? true ? nil : etag
    }

    /// Repeatable.
    func abortMultipart(_ upload: String, _ key: String) async throws(Failure) {
        let answer = try await send(
            Request(method: .delete, key: key, query: [SignatureV4.Parameter("uploadId", upload)]))
        if !answer.isGone { try answer.expectSuccess() }
    }

    /// Uploads under way, by key.
    func multiparts(prefix: String) async throws(Failure) -> [(key: String, upload: String)] {
        var found: [(key: String, upload: String)] = []
        var marker = (key: "", upload: "")
        for _ in 0..<Self.pageMax {
            var query = [SignatureV4.Parameter("uploads", ""), SignatureV4.Parameter("prefix", prefix)]
            if !marker.key.isEmpty {
                query += [
                    SignatureV4.Parameter("key-marker", marker.key),
                    SignatureV4.Parameter("upload-id-marker", marker.upload),
                ]
            }
            let page = try await send(Request(method: .get, query: query)).document("ListMultipartUploadsResult")
            for upload in page.all("Upload") {
                guard let key = upload.text("Key"), let id = upload.text("UploadId") else {
                    throw Self.odd("an upload without key or name")
                }
                if key.hasPrefix(prefix) { found.append((key, id)) }
            }
            guard page.text("IsTruncated") == "true" else { return found }
            let next = (key: page.text("NextKeyMarker") ?? "", upload: page.text("NextUploadIdMarker") ?? "")
            guard next > marker else { throw Self.odd("a page of uploads that leads nowhere") }
            marker = next
        }
        throw Self.odd("a listing without end")
    }

    static func odd(_ detail: String) -> Failure {
        Failure(.backendError, "The store's answer cannot be understood.", detail: detail)
    }
}

extension SignedPart {
    /// As the header has it.
    var contentMD5: String { ([UInt8](hexadecimal: md5) ?? []).base64 }
}
