import Files
import Vocabulary

/// Carrying a cancellation out (safekeeping rule 3). Every step can be repeated: whoever is killed in between begins again.
extension ItemPipeline {
    /// Seconds until a cancellation that failed for the item's own reasons is tried again.
    private static let cancelRetryInterval = 5.0

    func cancel(_ item: ItemRow) async throws(Failure) -> Outcome {
        do throws(Failure) {
            if let why = try await refusal(item) {
                try await catalog.cancelRefused(item, why)
                board.state(item, item.state, waiting: why)
                return .moved
            }
            try await leaveBackend(item)
            try await leaveStaging(item)
            let reason = Reason(.cancelled, "Cancelled on request.")
            try await catalog.cancelled(item, reason)
            board.state(item, .cancelled, reason: reason)
            return .finished
        } catch {
            if await weather.verdict != nil || Task.isCancelled { return .stopped }
            if retries.blame(error, faults: retries.lonelyFaultMax, othersSucceeded: true) == .everybody {
                await weather.giveUp(error)
                return .stopped
            }
            try await catalog.cancelling(item, waiting: "Cancelling: \(error.message)")
            return .later(Self.cancelRetryInterval)
        }
    }

    /// Why an item must not be cancelled now; in words.
    private func refusal(_ item: ItemRow) async throws(Failure) -> String? {
        // Another backend knows nothing of it, which would look as if nothing were left to delete.
        let uploads = try catalog.uploads(of: item.id)
        if let server = item.server, server != settings.serverName, !uploads.isEmpty, try await !isKnown(uploads) {
            return server == IngestSettings.ownServerName
                ? "Not cancelled: it went to the backend in the home: leave --server and RUSHES_SERVER out"
                : "Not cancelled: it went to \(server): give that as --server"
        }
        return try await hasBytesWithoutBackend(item)
            ? nil : "Not cancelled: the backend has the only copy by now, and deleting it there would lose it"
    }

    /// Whether this backend has heard of the item: the one that its bytes went to may be reached by another name.
    private func isKnown(_ uploads: [UploadRow]) async throws(Failure) -> Bool {
        for upload in uploads {
            do throws(Failure) {
                _ = try await weather.persist { () throws(Failure) in try await client.parts(upload.id) }
                return true
            } catch {
                if error.code == .gone { return true }
                guard error.code == .notFound else { throw error }
            }
        }
        return false
    }

    /// What left staging because the backend had it may only go there if its source still has it.
    private func hasBytesWithoutBackend(_ item: ItemRow) async throws(Failure) -> Bool {
        for file in try catalog.files(of: item.id) where file.role.isGiven && file.state == .released {
            guard try await sourceHas(file) else { return false }
        }
        return true
    }

    /// Whether the source still has the same bytes. One that cannot be read is as good as none.
    func sourceHas(_ file: FileRow) async throws(Failure) -> Bool {
        guard let source = file.source else { return false }
        let staging = staging
        do throws(Failure) {
            return try await FileWork.run { stop throws(Failure) in
                try staging.hasSameBytes(source, as: file, stop: stop)
            }
        } catch {
            if error.code == .cancelled { throw error }
            return false
        }
    }

    /// No item, no object, no open session.
    private func leaveBackend(_ item: ItemRow) async throws(Failure) {
        let uploads = try catalog.uploads(of: item.id)
        // Without these nothing has ever been sent.
        guard !uploads.isEmpty else { return }
        try await catalog.cancelling(item, waiting: "Cancelling: waiting for the backend")
        _ = try await weather.persist { () throws(Failure) in try await client.remove(item.id) }
        let files = try catalog.files(of: item.id)
        for upload in uploads {
            let isKnown = try await weather.persist { () throws(Failure) in try await client.abort(upload.id) }
            guard !isKnown, let file = files.first(where: { $0.role == upload.role && $0.name == upload.name }) else {
                continue
            }
            try await close(upload, file, item)
        }
    }

    /// A request to open it may still be on its way: it has to find the upload known, and ended.
    private func close(_ upload: UploadRow, _ file: FileRow, _ item: ItemRow) async throws(Failure) {
        let request = Uploader.openRequest(item, file, upload, partSize: upload.partSize, [])
        do throws(Failure) {
            _ = try await weather.persist { () throws(Failure) in try await client.open(request) }
        } catch {
            // There is a tombstone, against which nothing can be opened.
            if error.code == .gone { return }
            throw error
        }
        _ = try await weather.persist { () throws(Failure) in try await client.abort(upload.id) }
    }

    /// Nothing derived, nothing half written, and no copy of what its source still has.
    private func leaveStaging(_ item: ItemRow) async throws(Failure) {
        let staging = staging
        try await FileWork.run { _ throws(Failure) in try staging.removeUnfinished(of: item.id, keepsDerived: false) }
        for file in try catalog.files(of: item.id) where file.role.isGiven {
            var file = file
            if file.state == .wanted {
                guard try Files.facts(staging.path(of: file)) != nil else { continue }
                // Whole in staging, but not written down: after a move these may be the only bytes.
                let found = file
                file = try await FileWork.run { stop throws(Failure) in
                    try staging.adopt(found, isMoved: item.isMoved, stop: stop)
                }
                try await catalog.staged(file, of: item)
            }
            guard file.state == .staged, !item.isMoved, try await sourceHas(file) else { continue }
            try await catalog.leftToItsSource(file)
            let path = file.path
            try await FileWork.run { _ throws(Failure) in try staging.remove(below: path) }
        }
        // The last act here: once the catalog says cancelled, nobody comes back for what is left.
        try await FileWork.run { _ throws(Failure) in try staging.removeFolderIfEmpty(of: item.id) }
    }
}
