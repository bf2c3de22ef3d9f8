import Curl
import Files
import Synchronization
import Vocabulary

/// Blobs in a bucket of an S3-compatible store. Parts go from the client to the store; here they are only signed, listed and put together.
///
///     <prefix>/u-<upload>.<generation>    the object of an upload, put together by the store from its parts
///     <prefix>/c-<upload>.<generation>    its copy, where the store takes parts after the end
///     <prefix>/d-<item>.<epoch>.<name>    what was made here
///     <prefix>/t-<upload>.<generation>.…  the beginning of a part of a foreign client's upload, as far as it has come
///     <prefix>/p-<id>                     with which the store is tried at the start
///     <prefix>/.home                      says that this is the bucket
struct S3BlobStore: BlobStore {
    let client: S3Client
    /// One ledger's objects; the bucket may hold others.
    let prefix: String
    let abilities: StoreAbilities
    /// On this machine, for what jobs fetch and make.
    let workFolder: String
    /// Hashing and writing of what was fetched.
    let bulk = DiskQueue(width: 2)
    /// What is being stored in several requests.
    let writing = NamesInUse()

    /// Looks at the store before anything is trusted to it.
    /// - Parameter isHome: asked where nothing says so: whether this can be the bucket in which the ledger's objects lie.
    static func open(
        _ client: S3Client, prefix: String, workFolder: String, log: @Sendable (String) -> Void,
        isHome: @Sendable (S3BlobStore) async throws(Failure) -> Bool = { _ throws(Failure) in true }
    ) async throws(Failure) -> S3BlobStore {
        try Files.makeFolder(workFolder)
        let abilities = try await StoreProbe(client: client, prefix: prefix).run()
        if !abilities.checksMD5 {
            log("the store does not check Content-MD5: what arrives damaged shows only when it is read back")
        }
        if abilities.takesLateParts { log("the store takes parts after the end of an upload: objects are copied") }
        let store = S3BlobStore(client: client, prefix: prefix, abilities: abilities, workFolder: workFolder)
        try await store.expectHome(isHome)
        return store
    }

    /// In another bucket, or at another store, everything that the ledger names would seem lost.
    /// - Throws: when this is not the bucket in which the ledger's objects lie.
    private func expectHome(_ isHome: (S3BlobStore) async throws(Failure) -> Bool) async throws(Failure) {
        let mark = prefix + "/.home"
        guard try await client.head(mark) == nil else { return }
        guard try await isHome(self) else {
            throw Failure(
                .backendError,
                "This backend's files are not in the bucket “\(client.settings.bucket)” at \(client.settings.endpoint): correct RUSHES_S3_BUCKET or RUSHES_S3_ENDPOINT. Where they were lost, an object named \(mark) lets it start without them.",
                remedy: .askUser)
        }
        let bytes = Array("Files of Rushes lie beside this. Leave it here.\n".utf8)
        try await client.put(mark, .bytes(bytes), contentMD5: SignedPart(number: 1, bytes: bytes).contentMD5)
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
        let bytes = parts.reduce(0) { $0 + $1.size }
        // Stores are not safe to be asked twice for the same object: MinIO and Ceph have let its bytes go.
        if let head = try await client.head(key, isCertain: false), isMade(head, of: parts) {
            return try await sealed(session, bytes: bytes, isSpent: false)
        }
        do throws(Failure) {
            let etag = try await client.completeMultipart(
                upload, key, parts.map { S3Part(number: $0.number, size: $0.size, etag: $0.etag) })
            // An empty ETag says nothing, so the object itself is asked.
            if !isComposite(etag, of: parts) { try await expect(parts, at: key) }
        } catch {
            // Whatever was heard: only what is there counts. Stores say NoSuchUpload, or InternalError, of an upload that was completed.
            do throws(Failure) { try await expect(parts, at: key) } catch let doubt {
                throw doubt.code == .incomplete && error.code == .backendError && error.remedy == .retryLater
                    ? Self.unfinished(error) : error
            }
            return try await sealed(session, bytes: bytes, isSpent: false)
        }
        return try await sealed(session, bytes: bytes, isSpent: true)
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
        guard let head = try await client.head(key), isMade(head, of: parts) else {
            throw Failure(.incomplete, "The store has not put the parts together: ask for them and send the rest.")
        }
    }

    private func isMade(_ head: S3Client.Head, of parts: [StoredPart]) -> Bool {
        head.size == parts.reduce(0) { $0 + $1.size }
            && (isComposite(head.etag, of: parts) || !isTelling(head.etag, of: parts))
    }

    private func isComposite(_ etag: String?, of parts: [StoredPart]) -> Bool {
        guard let etag, let composite = ETag.composite(parts.map(\.md5)) else { return false }
        return ETag.isSame(etag, composite)
    }

    /// Those of other stores' own making say nothing about the parts.
    private func isTelling(_ etag: String, of parts: [StoredPart]) -> Bool {
        abilities.showsMD5 && etag.isCompositeMD5 && parts.allSatisfy { $0.md5 != nil }
    }

    func assembled(_ parts: [SignedPart], of session: StoreSession) async throws(Failure) -> BlobKey? {
        guard !parts.isEmpty, session.storeName != nil else { return nil }
        do throws(Failure) { try await expect(parts.map(StoredPart.init), at: name(session)) } catch {
            guard error.code == .incomplete else { throw error }
            return nil
        }
        return try await sealed(session, bytes: parts.reduce(0) { $0 + $1.length }, isSpent: true)
    }

    /// Where late parts could still change the object, it gets a key for which no URL was ever signed. And where the upload is still there, since
    /// the end of the store's process cut its completion short: Ceph would take the object's bytes with the upload's when that is ended, by us or
    /// by a lifecycle rule; a copy's stay.
    /// - Parameter isSpent: the upload is known to be gone.
    private func sealed(_ session: StoreSession, bytes: Int, isSpent: Bool) async throws(Failure) -> BlobKey {
        var isSafe = isSpent
        if !isSafe, let upload = session.storeName {
            isSafe = try await client.parts(of: upload, name(session)) == nil
        }
        guard abilities.takesLateParts || !isSafe else { return .upload(session) }
        let copy = BlobKey.copied(session)
        if bytes > S3Client.copyBytesMax {
            // One that was made in parts may be cut short in the same way.
            for write in try await client.multiparts(prefix: name(copy)) where write.key == name(copy) {
                try await end(StoreWrite(name: write.key, key: copy, storeName: write.upload))
            }
        }
        if try await client.head(name(copy))?.size != bytes {
            try await self.copy(name(session), to: name(copy), bytes: bytes)
        }
        return copy
    }

    /// The object is made of them.
    func settle(_ session: StoreSession) async throws(Failure) {}

    func end(_ session: StoreSession, hasObject: Bool) async throws(Failure) {
        // One that is still listed beside its object: see `sealed`.
        guard !hasObject else { return }
        let key = name(session)
        if let upload = session.storeName { return try await client.abortMultipart(upload, key) }
        // One whose name was never kept.
        for found in try await client.multiparts(prefix: key) where found.key == key {
            try await client.abortMultipart(found.upload, key)
        }
    }

    // MARK: Housekeeping

    func removeLeftovers() async throws(Failure) {
        let folder = workFolder
        try await bulk.run { () throws(Failure) in
            for name in try Files.names(in: folder) { try Files.removeTree(folder + "/" + name) }
        }
    }

    func underway() async throws(Failure) -> Underway {
        var underway = Underway()
        for found in try await client.multiparts(prefix: prefix + "/") {
            let key = key(found.key)
            if case .upload(var session) = key?.origin {
                session.storeName = found.upload
                underway.sessions.append(session)
            } else if !writing.contains(found.key) {
                underway.writes.append(StoreWrite(name: found.key, key: key, storeName: found.upload))
            }
        }
        return underway
    }

    func end(_ write: StoreWrite) async throws(Failure) {
        // Cut short in the end, it lies there, and its bytes go with the upload.
        if write.key != nil { try await client.delete(write.name) }
        try await client.abortMultipart(write.storeName, write.name)
    }

    func eachObject(_ body: (BlobKey) async throws(Failure) -> Void) async throws(Failure) {
        try await client.eachPage(prefix: prefix + "/") { page throws(Failure) in
            for key in page.compactMap(key) { try await body(key) }
        }
    }

    private func key(_ name: String) -> BlobKey? { BlobKey(rawValue: String(name.dropFirst(prefix.utf8.count + 1))) }
}

/// Names of objects that somebody of this process is writing.
final class NamesInUse: Sendable {
    private let names = Mutex<Set<String>>([])
    func insert(_ name: String) { names.withLock { _ = $0.insert(name) } }
    func remove(_ name: String) { names.withLock { _ = $0.remove(name) } }
    func contains(_ name: String) -> Bool { names.withLock { $0.contains(name) } }
}
