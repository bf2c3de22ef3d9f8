import Curl
import Digests
import Files
import Foundation
import Vocabulary

/// Blobs in a bucket of an S3-compatible store. Parts go from the client to the store; here they are only signed, listed and put together.
///
///     <prefix>/u-<upload>.<generation>    the object of an upload, put together by the store from its parts
///     <prefix>/c-<upload>.<generation>    its copy, where the store takes parts after the end
///     <prefix>/d-<item>.<epoch>.<name>    what was made here
struct S3BlobStore: BlobStore {
    let client: S3Client
    /// One ledger's objects; the bucket may hold others.
    let prefix: String
    let abilities: StoreAbilities
    /// On this machine, for what jobs fetch and make.
    let workFolder: String
    /// Hashing and writing of what was fetched.
    let bulk = DiskQueue(width: 2)

    /// Looks at the store before anything is trusted to it.
    static func open(
        _ client: S3Client, prefix: String, workFolder: String, log: @Sendable (String) -> Void
    ) async throws(Failure) -> S3BlobStore {
        try Files.makeFolder(workFolder)
        let abilities = try await StoreProbe(client: client, prefix: prefix).run()
        if !abilities.checksMD5 {
            log("the store does not check Content-MD5: what arrives damaged shows only when it is read back")
        }
        if abilities.takesLateParts { log("the store takes parts after the end of an upload: objects are copied") }
        return S3BlobStore(client: client, prefix: prefix, abilities: abilities, workFolder: workFolder)
    }

    func name(_ key: BlobKey) -> String { "\(prefix)/\(key)" }
    private func name(_ session: StoreSession) -> String { name(.upload(session)) }

    // MARK: Parts

    func begin(_ session: StoreSession) async throws(Failure) -> String? {
        if let known = session.storeName { return known }
        return try await client.createMultipart(name(session))
    }

    func partURL(_ part: SignedPart, of session: StoreSession, seconds: Double) -> String? {
        guard let upload = session.storeName else { return nil }
        return client.partURL(part, of: upload, name(session), expiresIn: seconds)
    }

    func take(_ path: String, as part: SignedPart, of session: StoreSession) async throws(Failure) {
        guard let upload = session.storeName else { throw Self.unbound(session) }
        _ = try await client.putPart(part, of: upload, name(session), from: path, at: 0)
    }

    func parts(_ session: StoreSession) async throws(Failure) -> [StoredPart]? {
        guard let upload = session.storeName else { return nil }
        return try await client.parts(of: upload, name(session))?.map { part in
            StoredPart(
                number: part.number, size: part.size, etag: part.etag,
                md5: abilities.showsMD5 && part.etag.isMD5 ? part.etag.lowercased() : nil)
        }
    }

    func assemble(_ parts: [StoredPart], of session: StoreSession) async throws(Failure) -> BlobKey {
        guard let upload = session.storeName else { throw Self.unbound(session) }
        let key = name(session)
        do throws(Failure) {
            let etag = try await client.completeMultipart(
                upload, key, parts.map { S3Part(number: $0.number, size: $0.size, etag: $0.etag) })
            // An empty ETag says nothing, so the object itself is asked.
            if etag == nil || etag != ETag.composite(parts.map(\.md5)) { try await expect(parts, at: key) }
        } catch {
            // Whatever was heard: only what is there counts. Stores say NoSuchUpload, or InternalError, of an upload that was completed.
            do throws(Failure) { try await expect(parts, at: key) } catch let doubt {
                throw doubt.code == .incomplete && error.code == .backendError && error.remedy == .retryLater
                    ? Self.unfinished(error) : error
            }
        }
        return try await sealed(session, bytes: parts.reduce(0) { $0 + $1.size })
    }

    /// Ceph keeps an upload locked whose completion was cut short by the end of its own process, for ten minutes (`rgw_mp_lock_max_time`), and
    /// answers InternalError till then. To wait costs less than to send the file again.
    private static func unfinished(_ failure: Failure) -> Failure {
        Failure(
            .busy, "The store is not done with putting this file together: it is asked again.", detail: failure.detail)
    }

    private static func unbound(_ session: StoreSession) -> Failure {
        Failure(.incomplete, "No part of this upload has been sent.", detail: "\(session.folderName) has no name")
    }

    /// - Throws: `incomplete` when the object is not there or is not made of these parts.
    private func expect(_ parts: [StoredPart], at key: String) async throws(Failure) {
        guard let head = try await client.head(key), head.size == parts.reduce(0, { $0 + $1.size }),
            agrees(head.etag, parts.map(\.md5))
        else {
            throw Failure(.incomplete, "The store has not put the parts together: ask for them and send the rest.")
        }
    }

    /// Whether an object's ETag may be that of these parts; those of other stores' own making say nothing.
    private func agrees(_ etag: String, _ md5s: [String?]) -> Bool {
        guard abilities.showsMD5, let composite = ETag.composite(md5s), etag.isCompositeMD5 else { return true }
        return etag == composite
    }

    func assembled(_ parts: [SignedPart], of session: StoreSession) async throws(Failure) -> BlobKey? {
        guard !parts.isEmpty, session.storeName != nil else { return nil }
        do throws(Failure) { try await expect(parts.map(StoredPart.init), at: name(session)) } catch {
            guard error.code == .incomplete else { throw error }
            return nil
        }
        return try await sealed(session, bytes: parts.reduce(0) { $0 + $1.length })
    }

    /// Where late parts could still change the object, it gets a key for which no URL was ever signed.
    private func sealed(_ session: StoreSession, bytes: Int) async throws(Failure) -> BlobKey {
        guard abilities.takesLateParts else { return .upload(session) }
        let copy = BlobKey.copied(session)
        if try await client.head(name(copy))?.size != bytes {
            try await self.copy(name(session), to: name(copy), bytes: bytes)
        }
        return copy
    }

    func settle(_ session: StoreSession) async throws(Failure) {
        if abilities.takesLateParts { try await client.delete(name(session)) }
    }

    func end(_ session: StoreSession) async throws(Failure) {
        var names = [session.storeName].compactMap { $0 }
        // One whose name was never kept.
        if names.isEmpty { names = try await client.multiparts(prefix: name(session)).map(\.upload) }
        for upload in names { try await client.abortMultipart(upload, name(session)) }
    }

    // MARK: Housekeeping

    func removeLeftovers() async throws(Failure) {
        let folder = workFolder
        try await bulk.run { () throws(Failure) in
            for name in try Files.names(in: folder) { try Files.removeTree(folder + "/" + name) }
        }
    }

    func sessions() async throws(Failure) -> [StoreSession] {
        try await client.multiparts(prefix: prefix + "/u-").compactMap { found in
            StoreSession(folderName: String(found.key.dropFirst(prefix.utf8.count + 3)), storeName: found.upload)
        }
    }

    func keys() async throws(Failure) -> [BlobKey] {
        try await client.keys(prefix: prefix + "/").compactMap {
            BlobKey(rawValue: String($0.dropFirst(prefix.utf8.count + 1)))
        }
    }
}

/// What is known of ETags.
enum ETag {
    /// Of an object that was put together: the MD5 of its parts' MD5s, and their number. Nil when one is not known.
    static func composite(_ md5s: [String?]) -> String? {
        let digest = Digest(.md5)
        for md5 in md5s {
            guard
                let bytes = md5.flatMap({ Data(base64Encoded: SignedPart(number: 0, length: 0, md5: $0).contentMD5) }),
                bytes.count == 16
            else { return nil }
            digest.update(bytes)
        }
        return "\(digest.finalize().hexadecimal)-\(md5s.count)"
    }
}

extension String {
    var isMD5: Bool { utf8.count == 32 && allSatisfy(\.isHexDigit) }
    var isCompositeMD5: Bool {
        let halves = split(separator: "-")
        return halves.count == 2 && String(halves[0]).isMD5 && Int(halves[1]) != nil
    }
}
