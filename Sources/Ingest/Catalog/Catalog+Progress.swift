import Files
import SQLite
import Vocabulary

/// From staged bytes to the end. Every function takes the item's generation: what comes late from an older one changes nothing.
extension Catalog {
    /// What probing found. The verdict stands in the report.
    func probed(_ item: ItemRow, _ report: ProbeReport?, contentType: String?) async throws(Failure) {
        let text = try report.map { report throws(Failure) in try JSON.text(report) }
        try await database.write("catalog.facts") { database throws(Failure) -> Void in
            guard try database.advance(item.id, generation: item.generation, to: .preparing) else { return }
            try database.run(
                "UPDATE item SET kind = ?2, probe = ?3 WHERE id = ?1",
                [SQLValue(item.id), SQLValue(report?.facts?.kind.rawValue), SQLValue(text)])
            if let contentType {
                try database.run(
                    "UPDATE file SET content_type = ?2 WHERE item = ?1 AND role = 'original'",
                    [SQLValue(item.id), SQLValue(contentType)])
            }
            let kind = report?.facts?.kind.rawValue
            try remember(
                item.id, HistoryEntry(.probed, reason: report?.reason, words: report == nil ? "not probed" : kind),
                in: database)
        }
    }

    /// All that will be sent, in one transaction: the item is never half planned.
    /// - Parameter server: where it will be sent.
    func prepared(
        _ item: ItemRow, derived: [FileRow], uploads: [UploadRow], server: String? = nil
    ) async throws(Failure) {
        try await database.write("catalog.uploads") { database throws(Failure) -> Void in
            guard try database.advance(item.id, generation: item.generation, to: .uploading) else { return }
            try database.run("UPDATE item SET server = ?2 WHERE id = ?1", [SQLValue(item.id), SQLValue(server)])
            for file in derived {
                try database.insert(file)
                try remember(
                    item.id, HistoryEntry(.made, file: file.label, bytes: file.bytes, sha256: file.sha256), in: database
                )
            }
            for upload in uploads {
                try database.run(
                    "INSERT INTO upload(id, item, role, name, state, part_size) VALUES(?1, ?2, ?3, ?4, 'queued', ?5)",
                    [
                        SQLValue(upload.id), SQLValue(upload.item), SQLValue(upload.role), SQLValue(upload.name),
                        SQLValue(upload.partSize),
                    ])
            }
            guard !uploads.isEmpty else { return }
            let files = uploads.map { Self.label($0.role, $0.name) }.joined(separator: ", ")
            try remember(
                item.id, HistoryEntry(.planned, words: "\(files)\(server.map { " to \($0)" } ?? "")"), in: database)
        }
    }

    /// It goes to another backend from here on.
    func redirected(_ item: ItemRow, to server: String) async throws(Failure) {
        try await database.write("catalog.redirected") { database throws(Failure) -> Void in
            try database.run("UPDATE item SET server = ?2 WHERE id = ?1", [SQLValue(item.id), SQLValue(server)])
            try remember(item.id, HistoryEntry(.planned, words: "to \(server) from here on"), in: database)
        }
    }

    /// A session is open; its generation is stored before the first byte goes. Parts of an older generation are forgotten with it.
    func sessionOpened(_ upload: UploadID, generation: Int, partSize: Int) async throws(Failure) {
        try await database.write("catalog.session") { database throws(Failure) -> Void in
            let present = try database.row("SELECT generation FROM upload WHERE id = ?1", [SQLValue(upload)])?.int(0)
            var forgotten = 0
            if present != generation {
                forgotten = try database.run("DELETE FROM part WHERE upload = ?1", [SQLValue(upload)])
            }
            let changed = try database.run(
                """
                UPDATE upload SET state = 'uploading', generation = ?2, part_size = ?3
                WHERE id = ?1 AND (generation <> ?2 OR part_size <> ?3 OR state IN ('queued', 'completed'))
                """, [SQLValue(upload), SQLValue(generation), SQLValue(partSize)])
            guard changed > 0, let subject = try database.subject(of: upload) else { return }
            let words = forgotten > 0 ? "\(forgotten) parts of the one before are lost" : nil
            try remember(
                subject.item,
                HistoryEntry(.session, file: subject.file, upload: upload, generation: generation, words: words),
                in: database)
        }
    }

    /// The store holds these parts: it said so in an answer or in its listing.
    func stored(_ parts: [PartRow], of upload: UploadID, generation: Int) async throws(Failure) {
        try await database.write("catalog.part") { database throws(Failure) -> Void in
            let present = try database.row("SELECT generation FROM upload WHERE id = ?1", [SQLValue(upload)])?.int(0)
            guard present == generation else { return }
            var changed = 0
            for part in parts {
                changed += try database.run(
                    """
                    INSERT INTO part(upload, number, bytes, etag, at) VALUES(?1, ?2, ?3, ?4, ?5)
                    ON CONFLICT(upload, number) DO UPDATE SET bytes = ?3, etag = ?4
                    """,
                    [
                        SQLValue(upload), SQLValue(part.number), SQLValue(part.bytes), SQLValue(part.etag),
                        SQLValue(notes.now()),
                    ])
            }
            // What was noted of it goes along; the part's own time stands in its row.
            if changed > 0, let subject = try database.subject(of: upload) { try remember(subject.item, in: database) }
        }
    }

    func completing(_ upload: UploadID) async throws(Failure) {
        try await database.write("catalog.completing") { database throws(Failure) -> Void in
            let changed = try database.run(
                "UPDATE upload SET state = 'completing' WHERE id = ?1 AND state IN ('queued', 'uploading')",
                [SQLValue(upload)])
            guard changed > 0, let subject = try database.subject(of: upload) else { return }
            try remember(
                subject.item, HistoryEntry(.completing, file: subject.file, upload: upload), in: database)
        }
    }

    func completed(_ upload: UploadID, generation: Int) async throws(Failure) {
        try await database.write("catalog.completed") { database throws(Failure) -> Void in
            let changed = try database.run(
                "UPDATE upload SET state = 'completed', generation = ?2 WHERE id = ?1 AND state <> 'completed'",
                [SQLValue(upload), SQLValue(generation)])
            guard changed > 0, let subject = try database.subject(of: upload) else { return }
            try remember(
                subject.item,
                HistoryEntry(.completed, file: subject.file, upload: upload, generation: generation), in: database)
        }
    }

    /// The backend has tied the uploads to the item and works on it.
    func attached(_ item: ItemRow) async throws(Failure) {
        try await database.write("catalog.attached") { database throws(Failure) -> Void in
            guard item.state != .processing,
                try database.advance(item.id, generation: item.generation, to: .processing)
            else { return }
            try remember(item.id, HistoryEntry(.attached), in: database)
        }
    }

    /// The backend has read all given files of the item itself and shows their hashes: from here on they may leave staging, whatever the item's
    /// state. All of them in one step, so that the number of steps does not depend on when it was asked.
    func confirmed(_ item: ItemRow, _ document: ItemDocument) async throws(Failure) {
        try await database.write("catalog.confirmed") { database throws(Failure) -> Void in
            try confirm(document.uploads.filter(\.role.isGiven), of: item.id, in: database)
        }
    }

    /// The backend is done with the item.
    func settled(
        _ item: ItemRow, _ document: ItemDocument, as state: ItemState, _ reason: Reason?
    ) async throws(Failure) {
        let text = try JSON.text(document)
        try await database.write("catalog.settled") { database throws(Failure) -> Void in
            guard try database.advance(item.id, generation: item.generation, to: state) else { return }
            try confirm(document.uploads, of: item.id, in: database)
            try database.run(
                "UPDATE item SET reason_code = ?2, reason_message = ?3, document = ?4, is_retryable = ?5 WHERE id = ?1",
                [
                    SQLValue(item.id), SQLValue(reason?.code.rawValue), SQLValue(reason?.message), SQLValue(text),
                    SQLValue(state == .failed),
                ])
            try remember(item.id, HistoryEntry(.state, state: state, reason: reason), in: database)
        }
    }

    /// Bytes that the backend holds differ from ours, or are gone: these uploads start over.
    /// - Parameter unheardOf: those of which the backend has never heard.
    func vanished(_ uploads: [UploadID], unheardOf: Set<UploadID> = [], of item: ItemRow) async throws(Failure) {
        try await database.write("catalog.vanished") { database throws(Failure) -> Void in
            guard try database.goBack(item, to: .uploading) else { return }
            for upload in uploads {
                try database.run(
                    "UPDATE upload SET state = 'queued', confirmed_sha256 = NULL WHERE id = ?1", [SQLValue(upload)])
                if unheardOf.contains(upload) {
                    try database.run(
                        "UPDATE upload SET generation = ?2 WHERE id = ?1",
                        [SQLValue(upload), .int(UploadRow.unheardOf)])
                }
                try remember(
                    item.id,
                    HistoryEntry(.vanished, file: try database.subject(of: upload)?.file, upload: upload), in: database)
            }
            if uploads.isEmpty { try remember(item.id, HistoryEntry(.vanished, words: "the item"), in: database) }
        }
    }

    /// Staged bytes are gone or damaged, but the source still has them.
    func restage(_ files: [FileRow], of item: ItemRow) async throws(Failure) {
        try await database.write("catalog.restage") { database throws(Failure) -> Void in
            guard try database.goBack(item, to: .picked) else { return }
            for file in files {
                try database.run(
                    "UPDATE file SET state = 'wanted' WHERE item = ?1 AND role = ?2 AND name = ?3",
                    [SQLValue(file.item), SQLValue(file.role), SQLValue(file.name)])
                try remember(item.id, HistoryEntry(.restaged, file: file.label), in: database)
            }
        }
    }

    /// The item ends here.
    func ended(_ item: ItemRow, _ state: ItemState, _ reason: Reason?, isRetryable: Bool = false) async throws(Failure)
    {
        try await database.write("catalog.ended") { database throws(Failure) -> Void in
            guard try database.advance(item.id, generation: item.generation, to: state) else { return }
            try database.run(
                "UPDATE item SET reason_code = ?2, reason_message = ?3, is_retryable = ?4 WHERE id = ?1",
                [
                    SQLValue(item.id), SQLValue(reason?.code.rawValue), SQLValue(reason?.message),
                    SQLValue(isRetryable),
                ])
            try remember(item.id, HistoryEntry(.state, state: state, reason: reason), in: database)
        }
    }

    /// One attempt is used up.
    /// - Returns: attempts of this generation so far.
    func attemptFailed(_ item: ItemRow, _ failure: Failure) async throws(Failure) -> Int {
        try await database.write("catalog.attempt") { database throws(Failure) in
            let row = try database.row(
                """
                UPDATE item SET attempts = attempts + 1, waiting = ?3 WHERE id = ?1 AND generation = ?2 RETURNING attempts
                """, [SQLValue(item.id), SQLValue(item.generation), SQLValue("Trying again: \(failure.message)")])
            try remember(item.id, HistoryEntry(.attempt, reason: Reason(failure)), in: database)
            return row?.int(0) ?? 0
        }
    }

    /// Why this item does not move; for people.
    func waits(_ item: ItemRow, _ reason: String) async throws(Failure) {
        try await database.write("catalog.waits") { database throws(Failure) -> Void in
            let changed = try database.run(
                "UPDATE item SET waiting = ?2 WHERE id = ?1 AND intent = 'run' AND waiting IS NOT ?2",
                [SQLValue(item.id), SQLValue(reason)])
            if changed > 0 { try remember(item.id, HistoryEntry(.waiting, words: reason), in: database) }
        }
    }

    /// Says for all items on their way why nothing moves; nil when it does again. Only for people: nothing depends on it.
    func waiting(_ reason: String?) async throws(Failure) {
        try await database.write("catalog.waiting") { database throws(Failure) -> Void in
            let condition = """
                state IN (\(Self.unfinishedStates)) AND intent = 'run'
                    AND waiting IS NOT ?1 AND (?1 IS NULL OR state IN ('picked', 'uploading', 'processing'))
                """
            try rememberAll(
                where: condition, [SQLValue(reason)], HistoryEntry(reason == nil ? .goesOn : .waiting, words: reason),
                in: database)
            try database.run("UPDATE item SET waiting = ?1 WHERE \(condition)", [SQLValue(reason)])
        }
    }

    /// Those of the files that are staged may go; what is left of the work is to remove them.
    /// - Returns: the files as they are now.
    func released(_ files: [FileRow]) async throws(Failure) -> [FileRow] {
        let staged = files.filter { $0.state == .staged }
        guard !staged.isEmpty else { return files }
        try await database.write("catalog.released") { database throws(Failure) -> Void in
            for file in staged {
                try database.run(
                    "UPDATE file SET state = 'released' WHERE item = ?1 AND role = ?2 AND name = ?3",
                    [SQLValue(file.item), SQLValue(file.role), SQLValue(file.name)])
                try remember(file.item, HistoryEntry(.released, file: file.label), in: database)
            }
        }
        return files.map { file in
            var file = file
            if file.state == .staged { file.state = .released }
            return file
        }
    }
}

extension Catalog {
    fileprivate func confirm(
        _ uploads: [ItemDocument.Upload], of item: ItemID, in database: Connection
    ) throws(Failure) {
        for upload in uploads {
            guard let hash = upload.sha256Recomputed else { continue }
            let changed = try database.run(
                "UPDATE upload SET confirmed_sha256 = ?3 WHERE id = ?1 AND item = ?2 AND confirmed_sha256 IS NOT ?3",
                [SQLValue(upload.uploadID), SQLValue(item), SQLValue(hash)])
            guard changed > 0 else { continue }
            let file = Self.label(upload.role, upload.name)
            try remember(
                item, HistoryEntry(.confirmed, file: file, upload: upload.uploadID, sha256: hash), in: database)
        }
    }
}
