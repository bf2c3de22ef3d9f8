import Vocabulary

/// One generation of an upload, as the store knows it.
struct StoreSession: Sendable, Hashable {
    let upload: UploadID
    let generation: Int

    /// `<upload>.<generation>`; an id has no dot.
    var folderName: String { "\(upload).\(generation)" }

    init(upload: UploadID, generation: Int) {
        self.upload = upload
        self.generation = generation
    }

    init?(folderName: String) {
        let pieces = folderName.split(separator: ".", omittingEmptySubsequences: false)
        guard pieces.count == 2, let upload = UploadID(rawValue: String(pieces[0])), let generation = Int(pieces[1]),
            generation > 0
        else { return nil }
        self.init(upload: upload, generation: generation)
    }
}

/// A part that the store holds.
struct StoredPart: Sendable, Hashable {
    var number: Int
    /// Bytes.
    var size: Int
    /// Hexadecimal.
    var md5: String

    /// As HTTP shows it.
    var etag: String { "\"\(md5)\"" }
    func matches(_ signed: SignedPart) -> Bool { number == signed.number && size == signed.length && md5 == signed.md5 }
}

/// Where bytes lie. Objects never change once they have a row in the ledger.
protocol BlobStore: Sendable {
    /// Makes ready to take parts. Repeatable.
    func begin(_ session: StoreSession) async throws(Failure)
    /// What is held, sorted by number; nil when the session is not there (never begun, completed or aborted).
    func parts(_ session: StoreSession) async throws(Failure) -> [StoredPart]?
    /// Puts the parts together under the key, durably; the parts stay until `end`. Repeatable.
    func assemble(_ parts: [StoredPart], of session: StoreSession, as key: BlobKey) async throws(Failure)
    /// The session takes no more parts and its bytes go. Repeatable.
    func end(_ session: StoreSession) async throws(Failure)

    /// Bytes of an object; nil when it is not there.
    func size(_ key: BlobKey) async throws(Failure) -> Int?
    /// Moves a finished file of the work folder in, durably.
    func adopt(_ path: String, as key: BlobKey) async throws(Failure)
    /// A path under which the object can be read on this machine.
    func path(_ key: BlobKey) async throws(Failure) -> String
    func sha256(_ key: BlobKey, progress: @escaping @Sendable (Int) throws(Failure) -> Void) async throws(Failure)
        -> SHA256Digest
    /// Repeatable.
    func remove(_ key: BlobKey) async throws(Failure)

    /// Unfinished writes of an earlier process go. Only while no other one can be writing.
    func removeLeftovers() async throws(Failure)
    /// Everything that is there, for sweeps and checks.
    func sessions() async throws(Failure) -> [StoreSession]
    func keys() async throws(Failure) -> [BlobKey]
}
