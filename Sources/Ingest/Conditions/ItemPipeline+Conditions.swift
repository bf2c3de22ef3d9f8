import SQLite
import Vocabulary

extension ItemPipeline {
    /// Seconds between two looks whether a file may (still) be sent.
    static let conditionInterval = 5.0

    /// Why a file is not to be sent now; nil when it may.
    private func waitingReason(_ id: ItemID, bytes: Int) async -> String? {
        let isUrgent = (try? catalog.isUrgent(id)) ?? false
        return settings.conditions.waitingReason(await settings.surroundings(), bytes: bytes, isUrgent: isUrgent)
    }

    /// Sends a file while its conditions hold. What was sent when they end is not lost: the upload goes on from there.
    /// - Returns: nil when all of it is at the backend, else how the item goes on.
    func send(_ uploader: Uploader, of item: ItemRow, bytes: Int) async throws(Failure) -> Outcome? {
        if let reason = await waitingReason(item.id, bytes: bytes) { return try await waits(item, reason) }
        let upload = Task { () -> Result<Void, Failure> in
            do throws(Failure) { return .success(try await uploader.run()) } catch { return .failure(error) }
        }
        let clock = settings.clock
        let watch = Task { () -> String? in
            while true {
                await clock.sleep(Self.conditionInterval)
                if Task.isCancelled { return nil }
                guard let reason = await waitingReason(item.id, bytes: bytes) else { continue }
                upload.cancel()
                return reason
            }
        }
        let result = await withTaskCancellationHandler {
            await upload.value
        } onCancel: {
            upload.cancel()
        }
        watch.cancel()
        let reason = await watch.value
        if case .success = result { return nil }
        if let reason, !Task.isCancelled, await weather.verdict == nil { return try await waits(item, reason) }
        try result.get()
        return nil
    }

    func waits(_ item: ItemRow, _ reason: String) async throws(Failure) -> Outcome {
        try await catalog.waits(item, reason)
        board.state(item, item.state, waiting: reason)
        return .later(Self.conditionInterval)
    }
}

extension Catalog {
    func isAsked(_ id: ItemID) throws(Failure) -> Bool {
        try database.row("SELECT is_asked OR is_urgent FROM item WHERE id = ?1", [SQLValue(id)])?.bool(0) ?? false
    }
    func isUrgent(_ id: ItemID) throws(Failure) -> Bool {
        try database.row("SELECT is_urgent FROM item WHERE id = ?1", [SQLValue(id)])?.bool(0) ?? false
    }
}
