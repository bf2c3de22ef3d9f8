import Vocabulary

/// One generation of an upload, as the store knows it.
struct StoreSession: Sendable, Hashable {
    let upload: UploadID
    let generation: Int
    /// What the store itself calls it, where it gives names (S3's UploadId).
    var storeName: String?

    /// `<upload>.<generation>`; an id has no dot.
    var folderName: String { "\(upload).\(generation)" }

    init(upload: UploadID, generation: Int, storeName: String? = nil) {
        self.upload = upload
        self.generation = generation
        self.storeName = storeName
    }

    init?(folderName: String, storeName: String? = nil) {
        let pieces = folderName.split(separator: ".", omittingEmptySubsequences: false)
        guard pieces.count == 2, let upload = UploadID(rawValue: String(pieces[0])), let generation = Int(pieces[1]),
            generation > 0
        else { return nil }
        self.init(upload: upload, generation: generation, storeName: storeName)
    }
}

/// A part that the store holds.
struct StoredPart: Sendable, Hashable {
    var number: Int
    /// Bytes.
    var size: Int
    /// Without quotes. Opaque: not every store shows the part's MD5.
    var etag: String
    /// Hexadecimal; nil where the store does not tell.
    var md5: String?

    /// As HTTP shows it.
    var quotedETag: String { "\"\(etag)\"" }
    func matches(_ signed: SignedPart) -> Bool {
        number == signed.number && size == signed.length && (md5 == nil || md5 == signed.md5)
    }
}

extension [SignedPart] {
    /// Of one session, which has one signature for each part.
    var byNumber: [Int: SignedPart] { Dictionary(map { ($0.number, $0) }, uniquingKeysWith: { first, _ in first }) }
}

extension StoredPart {
    init(number: Int, size: Int, md5: String) { self.init(number: number, size: size, etag: md5, md5: md5) }
    /// One that is part of an object already: what it was is what was signed.
    init(_ signed: SignedPart) { self.init(number: signed.number, size: signed.length, md5: signed.md5) }
}

/// An object on its way into a store in several requests, as the store knows it.
struct StoreWrite: Sendable, Hashable {
    /// In the store's spelling.
    var name: String
    /// Nil for one that is not given here.
    var key: BlobKey?
    /// The store's name for it.
    var storeName: String
}

/// What a store has begun to take and not finished.
struct Underway: Sendable, Hashable {
    /// Of uploads.
    var sessions: [StoreSession] = []
    /// Anything else that this process is not writing at the moment.
    var writes: [StoreWrite] = []
}

/// Where bytes lie. Objects never change once they have a row in the ledger.
protocol BlobStore: Sendable {
    // MARK: Parts

    /// Makes ready to take parts. Repeatable.
    /// - Returns: the store's name for the session, to be kept with it; nil where the store needs none.
    func begin(_ session: StoreSession) async throws(Failure) -> String?
    /// Where the part is to be sent; nil when it comes in through this server.
    func partURL(_ part: SignedPart, of session: StoreSession, seconds: Double) -> String?
    /// Takes a finished file of the work folder as a part: one that came in through this server. Durable when it returns.
    /// - Throws: `gone` when the session takes no parts (any more).
    func take(_ path: String, as part: SignedPart, of session: StoreSession) async throws(Failure)
    /// What is held, sorted by number; nil when the session is not there (never begun, completed or aborted).
    func parts(_ session: StoreSession) async throws(Failure) -> [StoredPart]?
    /// Puts the parts together, durably. Repeatable, until `settle`. - Returns: the key of the object.
    func assemble(_ parts: [StoredPart], of session: StoreSession) async throws(Failure) -> BlobKey
    /// The object that an earlier `assemble` has made of exactly these parts, when the session itself is no longer there.
    func assembled(_ parts: [SignedPart], of session: StoreSession) async throws(Failure) -> BlobKey?
    /// The object has its row: parts that lie apart from it go. Repeatable.
    func settle(_ session: StoreSession) async throws(Failure)
    /// The session takes no more parts and its bytes go. Repeatable.
    /// - Parameter hasObject: a row names the object that was made of it, whose bytes stay.
    func end(_ session: StoreSession, hasObject: Bool) async throws(Failure)

    // MARK: Objects

    /// Bytes of an object; nil when it is not there.
    func size(_ key: BlobKey) async throws(Failure) -> Int?
    /// Takes a finished and durable file of the work folder over. - Returns: what was stored, hashed on the way.
    func adopt(_ path: String, as key: BlobKey) async throws(Failure) -> (bytes: Int, sha256: SHA256Digest)
    /// A path under which the object can be read on this machine. A store elsewhere fetches it into the folder, once.
    func path(_ key: BlobKey, in folder: String) async throws(Failure) -> String
    /// Reads the whole object.
    /// - Parameters:
    ///   - folder: where a store elsewhere leaves what it had to fetch, so that `path` finds it; nil: nowhere.
    ///   - progress: bytes so far; throws to stop.
    func sha256(
        _ key: BlobKey, keptIn folder: String?, progress: @escaping @Sendable (Int) throws(Failure) -> Void
    ) async throws(Failure) -> SHA256Digest
    /// Where anyone who has the URL can read the object; nil when this server has to serve it.
    func url(_ key: BlobKey, contentType: String, seconds: Double) -> String?
    /// Repeatable.
    func remove(_ key: BlobKey) async throws(Failure)

    // MARK: Housekeeping

    /// Unfinished writes of an earlier process go. Only while no other one can be writing.
    func removeLeftovers() async throws(Failure)
    /// As far as the store lists it; not every one does.
    func underway() async throws(Failure) -> Underway
    /// Also what may already lie under its key. Repeatable.
    func end(_ write: StoreWrite) async throws(Failure)
    /// Everything that is there, page by page.
    func eachObject(_ body: (BlobKey) async throws(Failure) -> Void) async throws(Failure)
}
