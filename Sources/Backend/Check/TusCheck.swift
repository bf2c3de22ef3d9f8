import Vocabulary

/// Invariant 1 for uploads of foreign clients: every byte below an acknowledged offset is in the store.
struct TusCheck: Sendable {
    let ledger: any Ledger
    let store: any BlobStore

    private static let pageSize = 500

    func run() async throws(Failure) -> [Finding] {
        var findings: [Finding] = []
        var last: UploadID?
        while true {
            let page = try await ledger.openTusUploads(after: last, limit: Self.pageSize)
            for row in page { if let finding = try await check(row) { findings.append(finding) } }
            guard let end = page.last, page.count == Self.pageSize else { return findings }
            last = end.id
        }
    }

    private func check(_ row: UploadRow) async throws(Failure) -> Finding? {
        let recorded = try await ledger.signedParts(row.session)
        // Killed before its session was begun, an upload has nothing, and was promised nothing.
        guard !recorded.isEmpty, try await !isHeld(recorded, of: row) else { return nil }
        // A backend at work may have gone on since.
        guard try await ledger.isOpen(row.session), try await ledger.signedParts(row.session) == recorded else {
            return nil
        }
        return Finding(
            "received-missing", invariant: 1, "Bytes whose arrival was acknowledged are not in the store.",
            subject: row.id.rawValue)
    }

    private func isHeld(_ recorded: [SignedPart], of row: UploadRow) async throws(Failure) -> Bool {
        let sealing = Sealing(ledger: ledger, store: store, clock: Timestamp.system)
        return try await sealing.hasAll(recorded, of: row) { tail, part throws(Failure) in
            guard try await store.size(tail) == part.length else { return false }
            // What lies elsewhere would have to be fetched for it.
            guard let store = store as? DirectoryBlobStore else { return true }
            return try await store.isIntact(store.blobPath(tail), part)
        }
    }
}
