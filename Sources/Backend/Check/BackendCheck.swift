import Curl
import Digests
import Files
public import Vocabulary

/// The backend's side of `rushes check`: reads everything, changes nothing, and may run beside a backend at work.
public enum BackendCheck {
    /// Rows read at a time.
    private static let pageSize = 500

    /// - Returns: what is wrong; nothing for a folder in which no backend has been.
    /// - Throws: when the folder cannot be examined.
    /// - Parameter store: as the backend has it; nil: in the folder.
    public static func run(dataFolder: String, store settings: S3Settings? = nil) async throws(Failure) -> [Finding] {
        let path = dataFolder + "/" + Backend.ledgerName
        guard try Files.facts(path) != nil else { return [] }
        let ledger = try await SQLiteLedger.looking(path)
        var findings = try await ledger.selfCheck(RetryPolicy())
        if let settings {
            guard let store = try await bucket(settings, ledger, dataFolder) else { return findings }
            findings += try await checkObjects(ledger, store)
            findings += try await checkSessions(ledger, store) { _, _ in true }
            findings += try await TusCheck(ledger: ledger, store: store).run()
            return findings
        }
        let store = DirectoryBlobStore.looking(dataFolder)
        findings += try await checkObjects(ledger, store)
        findings += try await checkSessions(ledger, store) { part, session async throws(Failure) in
            try await store.isIntact(part, of: session)
        }
        findings += try await TusCheck(ledger: ledger, store: store).run()
        findings += try await checkStrangers(ledger, store)
        return findings
    }

    /// What is no fault, and good to know: files in the store that belong to no upload of this ledger.
    public static func observations(
        dataFolder: String, store settings: S3Settings? = nil
    ) async throws(Failure) -> [Finding] {
        let path = dataFolder + "/" + Backend.ledgerName
        guard try Files.facts(path) != nil else { return [] }
        let ledger = try await SQLiteLedger.looking(path)
        let store: any BlobStore
        if let settings {
            guard let bucket = try await bucket(settings, ledger, dataFolder) else { return [] }
            store = bucket
        } else {
            store = DirectoryBlobStore.looking(dataFolder)
        }
        let strays = Strays(ledger: ledger)
        var observations: [Finding] = []
        try await store.eachObject { key throws(Failure) in
            guard observations.count < observationsMax, try await ledger.blob(key) == nil,
                try await strays.standing(of: key) == .unknown
            else { return }
            observations.append(
                Finding(
                    "blob-unknown", invariant: 5,
                    "A stored file belongs to no upload of this ledger, as if that were an older one: nothing is removed from the store while it is there.",
                    subject: key.rawValue))
        }
        return observations
    }
    private static let observationsMax = 1000

    /// Nil where there is no prefix yet: nothing was ever stored.
    private static func bucket(
        _ settings: S3Settings, _ ledger: SQLiteLedger, _ dataFolder: String
    ) async throws(Failure) -> S3BlobStore? {
        guard let prefix = try await ledger.storePrefix(orMake: nil) else { return nil }
        return S3BlobStore(
            client: S3Client(settings: settings, http: HTTPClient(), clock: Timestamp.system), prefix: prefix,
            abilities: .usual, workFolder: dataFolder + "/" + Backend.workName)
    }

    /// For the check of a box that has its backend in this folder.
    /// - Returns: whether the backend has bytes of this hash for an item, or has deleted the item on request.
    public static func holdings(
        dataFolder: String
    ) async throws(Failure) -> @Sendable (ItemID, SHA256Digest) throws(Failure) -> Bool {
        let path = dataFolder + "/" + Backend.ledgerName
        guard try Files.facts(path) != nil else { return { _, _ throws(Failure) in false } }
        let ledger = try await SQLiteLedger.looking(path)
        return { item, sha256 throws(Failure) in try ledger.holds(item, sha256) }
    }

    /// Invariants 1, 3 and 5: what a row names is there, with the recorded size and hash.
    private static func checkObjects(_ ledger: any Ledger, _ store: any BlobStore) async throws(Failure)
        -> [Finding]
    {
        var findings: [Finding] = []
        var last: BlobKey?
        while true {
            let page = try await ledger.blobs(after: last, limit: pageSize)
            guard !page.isEmpty else { return findings }
            for blob in page {
                // A backend at work may have removed it since the page was read.
                if let finding = try await check(blob, store), try await ledger.blob(blob.key) != nil {
                    findings.append(finding)
                }
            }
            last = page.last?.key
        }
    }

    private static func check(_ blob: BlobRow, _ store: any BlobStore) async throws(Failure) -> Finding? {
        guard let size = try await store.size(blob.key) else {
            return Finding("blob-missing", invariant: 1, "A stored object is gone.", subject: blob.key.rawValue)
        }
        guard size == blob.size else {
            return Finding(
                "blob-size", invariant: 1, "A stored object has \(size) bytes instead of \(blob.size).",
                subject: blob.key.rawValue)
        }
        guard let expected = blob.sha256 else { return nil }
        do throws(Failure) {
            guard try await store.sha256(blob.key, keptIn: nil, progress: { _ throws(Failure) in }) == expected else {
                return Finding(
                    "blob-damaged", invariant: 3, "A stored object no longer has its recorded hash.",
                    subject: blob.key.rawValue)
            }
        } catch {
            return Finding(
                "blob-unreadable", invariant: 1, "A stored object cannot be read.", subject: blob.key.rawValue)
        }
        return nil
    }

    /// Invariant 1: an acknowledged part has what its name says.
    /// - Parameter isIntact: whether a part's bytes are what was acknowledged, where that can be read.
    private static func checkSessions(
        _ ledger: any Ledger, _ store: any BlobStore,
        _ isIntact: (StoredPart, StoreSession) async throws(Failure) -> Bool
    ) async throws(Failure) -> [Finding] {
        var findings: [Finding] = []
        let underway = try await store.underway()
        let strays = Strays(ledger: ledger)
        for write in underway.writes where try await !strays.hasWriter(write) {
            findings.append(
                Finding(
                    "write-unknown", invariant: 9, "The store holds parts of an object that nobody is writing.",
                    subject: "\(write.name) \(write.storeName)"))
        }
        for session in underway.sessions {
            guard try await strays.standing(of: session) != .unknown else {
                findings.append(
                    Finding(
                        "session-unknown", invariant: 9, "Parts lie in a folder that belongs to no upload.",
                        subject: [session.folderName, session.storeName].compactMap(\.self).joined(separator: " ")))
                continue
            }
            for part in try await store.parts(session) ?? [] {
                if try await !isIntact(part, session), try await ledger.isOpen(session) {
                    findings.append(
                        Finding(
                            "part-damaged", invariant: 1,
                            "A part does not have the size and MD5 that were acknowledged.",
                            subject: "\(session.folderName)/\(part.fileName)"))
                }
            }
        }
        return findings
    }

    /// Invariant 9: every name in the folders of the store says whose bytes it holds.
    private static func checkStrangers(_ ledger: any Ledger, _ store: DirectoryBlobStore) async throws(Failure)
        -> [Finding]
    {
        var findings: [Finding] = []
        for path in try await store.strangers() {
            findings.append(
                Finding(
                    "stranger", invariant: 9, "A file or folder lies in the store that nothing here would make.",
                    subject: path))
        }
        for name in try await store.workNames() {
            let owner = String(name.prefix { $0 != "." })
            if let id = ItemID(rawValue: owner), try await ledger.knows(id) { continue }
            if let id = UploadID(rawValue: owner), name == TusDoor.folderName(id), try await ledger.knows(id) {
                continue
            }
            findings.append(Finding("work-unknown", invariant: 9, "A work folder belongs to no item.", subject: name))
        }
        return findings
    }
}
