import Vocabulary

/// What goes wrong on the way is part of the item's story, also where the next try mends it.
extension Uploader {
    /// As `Weather.persist`.
    func persist<Value: Sendable>(
        _ way: Weather.Way = .backend, part: Int? = nil, _ operation: @Sendable () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        try await weather.persist(way) { () throws(Failure) in
            do throws(Failure) { return try await operation() } catch {
                note(error, part: part)
                throw error
            }
        }
    }

    private func note(_ failure: Failure, part: Int?) {
        guard failure.code != .cancelled else { return }
        catalog.notes.note(
            item.id,
            HistoryEntry(.retry, file: file.label, upload: upload.id, part: part, reason: Reason(failure)))
    }
}
