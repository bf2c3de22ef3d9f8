import Files
import Vocabulary

/// One item's way, a stage at a time. Each stage reads the catalog, does its work, and leaves a durable step behind: a process that dies in
/// between finds the item where it was.
struct ItemPipeline: Sendable {
    let catalog: Catalog
    let staging: Staging
    let media: MediaWork
    let client: BackendClient
    let weather: Weather
    let board: TransferBoard
    let presence: InboxPresence
    let gate: PartGate
    let settings: IngestSettings
    let retries: RetryPolicy

    /// How a stage ended.
    enum Outcome: Sendable, Equatable {
        /// The item has a new state: look at it again at once.
        case moved
        /// Nothing to do for so many seconds.
        case later(Double)
        /// The backend is at work on it: look again after so many seconds, unless an event tells when.
        case watched(Double)
        /// The item is at its end.
        case finished
        /// There is no room for it at present.
        case noRoom(Failure)
        /// The whole run has to stop, or somebody has paused or cancelled the item.
        case stopped
    }

    /// Does the next stage of an item.
    func advance(_ id: ItemID, pollCount: Int) async -> Outcome {
        do throws(Failure) {
            guard let item = try catalog.item(id) else { return .finished }
            guard !item.isOver else { return .finished }
            switch item.intent {
            case .run: break
            case .paused: return .stopped
            case .cancelled: return try await cancel(item)
            }
            do throws(Failure) {
                board.state(item, item.state)
                switch item.state {
                case .picked: return try await stage(item)
                case .staged, .preparing: return try await prepare(item)
                case .uploading: return try await upload(item)
                case .processing: return try await poll(item, count: pollCount)
                case .ready, .rejected, .failed, .cancelled, .missing: return .finished
                }
            } catch { return try await failed(item, error) }
        } catch {
            // The catalog itself does not work: nothing can be kept safe any more.
            await weather.giveUp(error)
            return .stopped
        }
    }

    // MARK: What went wrong

    func failed(_ item: ItemRow, _ failure: Failure) async throws(Failure) -> Outcome {
        if await weather.verdict != nil || Task.isCancelled { return .stopped }
        if item.state == .picked, let inbox = presence.awayInbox(of: item.source), Self.isSourceFault(failure) {
            // A card that was pulled out: one reason for all of its items, and nobody's attempt.
            let reason = "Waiting for the inbox “\(String(decoding: inbox.name, as: UTF8.self))” to come back"
            try await catalog.waits(item, reason)
            board.state(item, item.state, waiting: reason)
            return .later(Self.awayInterval)
        }
        switch retries.blame(failure, faults: retries.lonelyFaultMax, othersSucceeded: true) {
        case .nobody: return .stopped
        case .everybody:
            if failure.code == .diskFull, item.state == .picked { return .noRoom(failure) }
            await weather.giveUp(failure)
            return .stopped
        case .final: return try await end(item, .failed, Reason(failure), isRetryable: true)
        case .item: break
        }
        switch failure.code {
        case .sourceMissing where item.state == .picked:
            return try await end(item, .missing, Reason(failure), isRetryable: true)
        case .sourceUnreadable where item.state == .picked:
            return try await end(item, .failed, Reason(failure), isRetryable: true)
        case .stagingMissing, .stagingDamaged:
            do throws(Failure) { return try await recoverStaged(item, failure) } catch {
                guard error.code != .stagingMissing, error.code != .stagingDamaged else { throw error }
                return try await failed(item, error)
            }
        default: break
        }
        let attempts = try await catalog.attemptFailed(item, failure)
        if attempts >= retries.attemptMax { return try await end(item, .failed, Reason(failure), isRetryable: true) }
        board.state(item, item.state, waiting: failure.message)
        var random = settings.random
        return .later(retries.backoff.delay(faults: attempts, using: &random))
    }

    /// Seconds between two looks for an inbox that is away.
    private static let awayInterval = 2.0

    private static func isSourceFault(_ failure: Failure) -> Bool {
        switch failure.code {
        case .sourceMissing, .sourceUnreadable, .sourceChanged, .ioError, .readOnly: true
        default: false
        }
    }

    /// Of a staged file: what is there is not, or no longer, what was staged.
    private static func isLoss(_ failure: Failure) -> Bool {
        switch failure.code {
        case .stagingMissing, .stagingDamaged, .sourceMissing, .sourceUnreadable: true
        default: false
        }
    }

    /// Staged bytes are gone: taken again where the source still is what it was, else the item is missing.
    private func recoverStaged(_ item: ItemRow, _ failure: Failure) async throws(Failure) -> Outcome {
        guard item.attempts + 1 < retries.attemptMax else {
            return try await end(item, .missing, Reason(failure), isRetryable: true)
        }
        var damaged: [FileRow] = []
        for file in try catalog.files(of: item.id) where file.state == .staged && file.role.isGiven {
            let staging = staging
            let isWhole = try await FileWork.run { stop throws(Failure) in
                do throws(Failure) { try staging.verify(file, stop: stop) } catch {
                    // Whatever else went wrong says nothing of the file.
                    guard Self.isLoss(error) else { throw error }
                    return false
                }
                return true
            }
            if isWhole { continue }
            guard try await sourceHas(file) else {
                return try await end(item, .missing, Reason(failure), isRetryable: true)
            }
            // What is left there is not the file any more.
            try staging.remove(below: file.path)
            damaged.append(file)
        }
        if damaged.isEmpty {
            let attempts = try await catalog.attemptFailed(item, failure)
            return attempts >= retries.attemptMax
                ? try await end(item, .missing, Reason(failure), isRetryable: true) : .moved
        }
        for file in damaged { try await discardSession(of: file) }
        try await catalog.restage(damaged, of: item)
        return .moved
    }

    /// Parts that were sent already may be of the damaged bytes. The backend forgets them, and the upload begins its next generation.
    private func discardSession(of file: FileRow) async throws(Failure) {
        let uploads = try catalog.uploads(of: file.item)
        guard let upload = uploads.first(where: { $0.role == file.role && $0.name == file.name }),
            upload.generation > 0, upload.state != .completed
        else { return }
        do throws(Failure) {
            _ = try await weather.persist { () throws(Failure) in try await client.abort(upload.id) }
        } catch {
            // Sealed and tied to its item: what the backend reads of it decides.
            guard error.code == .conflict else { throw error }
        }
    }

    func end(
        _ item: ItemRow, _ state: ItemState, _ reason: Reason?, isRetryable: Bool = false
    ) async throws(Failure) -> Outcome {
        try await catalog.ended(item, state, reason, isRetryable: isRetryable)
        board.state(item, state, reason: reason)
        return .finished
    }
}
