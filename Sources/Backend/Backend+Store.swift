import Curl
import Files
import Vocabulary

extension Backend {
    /// In the data folder, or where the settings say.
    static func openStore(_ settings: BackendSettings, _ ledger: SQLiteLedger) async throws(Failure) -> any BlobStore {
        guard let bucket = settings.store else {
            let store = try DirectoryBlobStore.open(settings.dataFolder)
            // Here, what lies in a bucket would seem lost.
            if try await ledger.storePrefix(orMake: nil) != nil, try await !isHome(store, ledger) {
                throw Failure(
                    .backendError,
                    "This backend's files are in a bucket: give RUSHES_S3_ENDPOINT, RUSHES_S3_BUCKET and the keys.",
                    remedy: .askUser)
            }
            return store
        }
        var random = SystemRandomNumberGenerator()
        let proposal = String(UInt64.random(in: .min ... .max, using: &random), radix: 36)
        guard let prefix = try await ledger.storePrefix(orMake: proposal) else { throw LedgerFault.vanished }
        return try await S3BlobStore.openPatiently(
            S3Client(settings: bucket, http: HTTPClient(), clock: settings.clock), prefix: prefix,
            workFolder: settings.dataFolder + "/" + workName, patience: settings.storePatience, log: settings.log,
            isHome: { store throws(Failure) in try await isHome(store, ledger) })
    }

    /// Whether what the ledger names lies there, or it names nothing yet.
    private static func isHome(_ store: any BlobStore, _ ledger: any Ledger) async throws(Failure) -> Bool {
        let blobs = try await ledger.blobs(after: nil, limit: samplesMax)
        let open = try await ledger.openUploads(after: nil, limit: samplesMax)
        for blob in blobs where try await store.size(blob.key) == blob.size { return true }
        for row in open where try await store.parts(row.session) != nil { return true }
        return blobs.isEmpty && open.isEmpty
    }
    private static let samplesMax = 16
}
