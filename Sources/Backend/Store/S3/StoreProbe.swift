import Curl
import Digests
import Vocabulary

/// What was found out about a store, since no two are the same.
struct StoreAbilities: Sendable, Hashable {
    /// A part whose URL was signed in time is still taken after the upload's end, and changes or breaks the object.
    var takesLateParts: Bool
    /// A part's ETag is its MD5.
    var showsMD5: Bool
    /// A body that does not have the signed Content-MD5 is refused.
    var checksMD5: Bool

    /// As most stores do.
    static let usual = StoreAbilities(takesLateParts: false, showsMD5: true, checksMD5: true)
}

/// Tries a store with an upload of its own, the way a client would: signed URLs, no key. What it leaves when it is cut short is swept
/// at the next start.
struct StoreProbe: Sendable {
    let client: S3Client
    let prefix: String

    func run() async throws(Failure) -> StoreAbilities {
        var random = SystemRandomNumberGenerator()
        let id = UploadID.make(milliseconds: client.clock().milliseconds, using: &random)
        let key = "\(prefix)/\(BlobKey.probe(id))"
        let upload = try await client.createMultipart(key)
        let result: Result<StoreAbilities, Failure>
        do throws(Failure) { result = .success(try await look(key, upload)) } catch { result = .failure(error) }
        try? await client.abortMultipart(upload, key)
        try? await client.delete(key)
        return try result.get()
    }

    private func look(_ key: String, _ upload: String) async throws(Failure) -> StoreAbilities {
        let (bytes, other) = (Array("what a store does".utf8), Array("what a store goes".utf8))
        let part = SignedPart(number: 1, bytes: bytes)
        let url = client.partURL(part, of: upload, key, expiresIn: Self.seconds)
        let damaged = try await put(other, as: part, to: url)
        guard try await put(bytes, as: part, to: url) else {
            throw Failure(
                .backendError, "The store refuses the parts that it was asked to take: is it an S3 store?",
                remedy: .askUser, detail: "probe \(key)")
        }
        guard let held = try await client.parts(of: upload, key), held.count == 1, held[0].size == bytes.count else {
            throw Failure(
                .backendError, "The store does not list what it took: is it an S3 store?", remedy: .askUser,
                detail: "probe \(key)")
        }
        _ = try await client.completeMultipart(upload, key, held)
        let late = try await put(bytes, as: part, to: url)
        return StoreAbilities(
            takesLateParts: late, showsMD5: ETag.isSame(held[0].etag, part.md5), checksMD5: !damaged)
    }

    /// Of the URLs.
    private static let seconds = 60.0

    /// - Returns: whether the store took it.
    private func put(_ bytes: [UInt8], as part: SignedPart, to url: String) async throws(Failure) -> Bool {
        let answer = try await client.repeating { () async throws(Failure) in
            try await client.exchange(
                HTTPRequest(.put, url, headers: ["Content-MD5": part.contentMD5], body: .bytes(bytes)))
        }
        // 404 and 400 are answers, a fault is none.
        if answer.response.status >= 500 { try answer.expectSuccess() }
        return answer.code == nil
    }
}

extension SignedPart {
    init(number: Int, bytes: [UInt8]) {
        let digest = Digest(.md5)
        digest.update(bytes)
        self.init(number: number, length: bytes.count, md5: digest.finalize().hexadecimal)
    }
}
