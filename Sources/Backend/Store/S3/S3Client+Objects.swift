import Curl
import Vocabulary
import XML

extension S3Client {
    struct Head: Sendable, Hashable {
        /// Bytes.
        var size: Int
        /// Without quotes; empty where the store shows none.
        var etag: String
    }

    /// Nil when the store says that there is no such object.
    /// - Parameter isCertain: false where nothing is concluded from that it is not there.
    func head(_ key: String, isCertain: Bool = true) async throws(Failure) -> Head? {
        let answer = try await send(Request(method: .head, key: key))
        if answer.isNaked404 { return isCertain ? try await confirm(key) : nil }
        let headers = try answer.expectSuccess().headers
        guard let size = headers["Content-Length"].flatMap({ Int($0) }) else { throw Self.odd("a HEAD without length") }
        return Head(size: size, etag: headers.etag)
    }

    /// An answer to a HEAD has no room for words, and anything on the way may say 404: only NoSuchKey, said to a GET, is the store's own.
    private func confirm(_ key: String) async throws(Failure) -> Head? {
        let answer = try await send(
            Request(method: .get, key: key, headers: [SignatureV4.Parameter("Range", "bytes=0-0")]))
        if answer.isGone { return nil }
        let headers = try answer.expectSuccess().headers
        guard let size = headers["Content-Range"]?.split(separator: "/").last.flatMap({ Int($0) }) else {
            throw Self.odd("a HEAD and a GET that do not agree whether \(key) is there")
        }
        return Head(size: size, etag: headers.etag)
    }

    /// Bytes asked for at once.
    static let rangeMax = 8 << 20

    /// A stretch of an object, whole.
    /// - Throws: `source-missing` when there is no such object.
    func read(_ key: String, at offset: Int, count: Int) async throws(Failure) -> [UInt8] {
        guard count > 0 else { return [] }
        for _ in 0..<policy.attemptMax {
            let answer = try await send(
                Request(
                    method: .get, key: key,
                    headers: [SignatureV4.Parameter("Range", "bytes=\(offset)-\(offset + count - 1)")],
                    answerBytesMax: count))
            let response = try answer.expectSuccess()
            // A store that does not know ranges sends everything.
            if response.status == 206, response.body.count == count { return response.body }
            if response.status == 200, offset == 0, response.body.count == count { return response.body }
        }
        throw Self.odd("other bytes than \(offset)+\(count) of \(key)")
    }

    /// Stores an object in one request.
    func put(_ key: String, _ body: HTTPRequest.Body, contentMD5: String) async throws(Failure) {
        let answer = try await send(
            Request(
                method: .put, key: key, headers: [SignatureV4.Parameter("Content-MD5", contentMD5)], body: body))
        try answer.expectSuccess()
    }

    /// Within the store, in one request: objects of at most 5 GiB (docs.aws.amazon.com, CopyObject).
    func copy(_ source: String, to key: String) async throws(Failure) {
        let answer = try await send(
            Request(method: .put, key: key, headers: [copySource(source)], silenceMax: 300))
        _ = try answer.document("CopyObjectResult")
    }
    static let copyBytesMax = 5 << 30

    func copyPart(_ source: String, _ range: Range<Int>, to key: String, of upload: String, number: Int)
        async throws(Failure) -> S3Part
    {
        let answer = try await send(
            Request(
                method: .put, key: key,
                query: [
                    SignatureV4.Parameter("partNumber", String(number)), SignatureV4.Parameter("uploadId", upload),
                ],
                headers: [
                    copySource(source),
                    SignatureV4.Parameter(
                        "x-amz-copy-source-range", "bytes=\(range.lowerBound)-\(range.upperBound - 1)"),
                ], silenceMax: 300))
        let etag = try answer.document("CopyPartResult").text("ETag") ?? ""
        return S3Part(number: number, size: range.count, etag: etag.unquoted)
    }

    private func copySource(_ key: String) -> SignatureV4.Parameter {
        SignatureV4.Parameter(
            "x-amz-copy-source",
            SignatureV4.encoded("/\(settings.bucket)/\(key)", keeping: [UInt8(ascii: "/")]))
    }

    /// Repeatable.
    func delete(_ key: String) async throws(Failure) {
        let answer = try await send(Request(method: .delete, key: key))
        if !answer.isGone { try answer.expectSuccess() }
    }

    /// Pages of a listing of objects, each of up to 1000.
    static let objectPageMax = 10_000

    /// Keys with this prefix, page by page.
    func eachPage(prefix: String, _ body: ([String]) async throws(Failure) -> Void) async throws(Failure) {
        var token: String?
        for _ in 0..<Self.objectPageMax {
            var query = [SignatureV4.Parameter("list-type", "2"), SignatureV4.Parameter("prefix", prefix)]
            if let token { query.append(SignatureV4.Parameter("continuation-token", token)) }
            let page = try await send(Request(method: .get, query: query)).document("ListBucketResult")
            let found = page.all("Contents").compactMap { $0.text("Key") }
            let next = page.text("IsTruncated") == "true" ? page.text("NextContinuationToken") ?? "" : nil
            guard next == nil || !found.isEmpty && next != "" && next != token else {
                throw Self.odd("a page of keys that leads nowhere")
            }
            try await body(found.filter { $0.hasPrefix(prefix) })
            guard let next else { return }
            token = next
        }
        throw Self.odd("a listing without end")
    }
}

extension HTTPHeaders {
    /// Without quotes; empty where there is none.
    fileprivate var etag: String { (self["ETag"] ?? "").unquoted }
}
