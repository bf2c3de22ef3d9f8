import Vocabulary

extension S3BlobStore {
    /// Opens a store that may be away, or not be up yet: it is tried again until it is there.
    /// - Parameter patience: seconds after which the last failure counts; nil waits for ever.
    /// - Throws: at once what waiting does not mend: a refused key, a bucket that there is not. Of a store that was away these are waited for too:
    ///   whoever starts it may not have made them yet.
    static func openPatiently(
        _ client: S3Client, prefix: String, workFolder: String, patience: Double?, log: @Sendable (String) -> Void,
        isHome: @Sendable (S3BlobStore) async throws(Failure) -> Bool
    ) async throws(Failure) -> S3BlobStore {
        let start = ContinuousClock.now
        let delays = S3RetryPolicy(firstDelay: firstDelay)
        var said: String?
        var attempts = 0
        while true {
            do throws(Failure) {
                let store = try await open(client, prefix: prefix, workFolder: workFolder, log: log, isHome: isHome)
                if said != nil { log("the store is there") }
                return store
            } catch {
                if Task.isCancelled { throw Failure(.cancelled, "Stopped.") }
                let isOverdue = patience.map { ContinuousClock.now - start >= .seconds($0) } ?? false
                guard error.isOfAnAbsentStore || error.code == .backendError && said != nil, !isOverdue else {
                    throw error
                }
                if said != error.message {
                    said = error.message
                    log("waiting for the store at \(client.settings.endpoint): \(error)")
                }
            }
            attempts = min(attempts + 1, doublingsMax)
            var random = SystemRandomNumberGenerator()
            try? await Task.sleep(for: .seconds(delays.delay(after: attempts, using: &random)))
        }
    }

    /// Seconds; grows to eight times as much, so that a store that comes is seen within seconds.
    private static let firstDelay = 0.5
    private static let doublingsMax = 4
}

extension Failure {
    fileprivate var isOfAnAbsentStore: Bool {
        switch code {
        case .backendUnreachable, .busy, .backendError: remedy == .retryLater
        default: false
        }
    }
}
