import Files
import SQLite
public import Vocabulary

/// The box's side of `rushes check`: reads everything, changes nothing. The numbers are those of the invariants in ARCHITECTURE.md.
public enum BoxCheck {
    /// - Parameter isHeld: whether the backend in the home has bytes of this hash for an item; nil where that is not to be looked at.
    /// - Returns: what is wrong; nothing for a home in which nothing was ever taken.
    /// - Throws: when the home cannot be examined.
    public static func run(
        home: String, isHeld: (@Sendable (ItemID, SHA256Digest) throws(Failure) -> Bool)? = nil
    ) async throws(Failure) -> [Finding] {
        guard try Home.isInUse(home) else { return [] }
        let catalog = try await Catalog.open(home: home, isLooking: true)
        let staging = Staging(root: home + "/staging")
        var findings = try checkRows(catalog)
        for item in try catalog.items() { findings += try await check(item, catalog, staging, isHeld) }
        findings += try await checkStrangers(catalog, staging)
        return findings
    }

    // MARK: Rows

    /// Invariant 5: every row belongs to one that is there, and every item has what it was made for.
    private static func checkRows(_ catalog: Catalog) throws(Failure) -> [Finding] {
        try catalog.database.read { database throws(Failure) in
            var findings: [Finding] = []
            for (code, message, sql) in rowChecks {
                for row in try database.rows(sql, limit: rowFindingsMax) {
                    findings.append(
                        Finding(code, invariant: 5, message, subject: try row.required(0, SQLRow.text)))
                }
            }
            return findings
        }
    }

    /// Of each kind.
    private static let rowFindingsMax = 1000
    private static let rowChecks = [
        (
            code: "row-orphaned", message: "A row belongs to something that has none.",
            sql: """
            SELECT 'file ' || path FROM file WHERE item NOT IN (SELECT id FROM item)
            UNION ALL SELECT 'upload ' || id FROM upload WHERE item NOT IN (SELECT id FROM item)
            UNION ALL SELECT 'part ' || number || ' of ' || upload FROM part WHERE upload NOT IN (SELECT id FROM upload)
            UNION ALL SELECT DISTINCT 'history of ' || item FROM history WHERE item NOT IN (SELECT id FROM item)
            """
        ),
        (
            code: "original-missing", message: "An item has no original.",
            sql: """
            SELECT id FROM item WHERE NOT EXISTS(SELECT 1 FROM file WHERE file.item = item.id AND role = 'original')
            """
        ),
        (
            code: "picked-with-bytes", message: "An item is still to be taken, but no file of it is.",
            sql: """
            SELECT id FROM item WHERE state = 'picked' AND intent <> 'cancelled'
                AND EXISTS(SELECT 1 FROM file WHERE file.item = item.id AND role = 'original')
                AND NOT EXISTS(SELECT 1 FROM file WHERE file.item = item.id AND state = 'wanted')
            """
        ),
    ]

    // MARK: One item

    private static func check(
        _ item: ItemRow, _ catalog: Catalog, _ staging: Staging,
        _ isHeld: (@Sendable (ItemID, SHA256Digest) throws(Failure) -> Bool)?
    ) async throws(Failure) -> [Finding] {
        let files = try catalog.files(of: item.id)
        let uploads = try catalog.uploads(of: item.id)
        var findings: [Finding] = []
        if item.attempts > RetryPolicy().attemptMax {
            findings.append(
                Finding(
                    "attempts-over-limit", invariant: 6, "An item was tried \(item.attempts) times in one generation.",
                    subject: item.id.rawValue))
        }
        for file in files {
            let upload = uploads.first { $0.role == file.role && $0.name == file.name }
            findings += checkState(file, of: item, upload)
            // Invariant 1, across both sides: the backend said that it had these, and so nobody else needs to.
            if let isHeld, item.server == IngestSettings.ownServerName, file.role.isGiven, file.state == .released,
                let confirmed = upload?.confirmedSHA256, try !isHeld(item.id, confirmed)
            {
                findings.append(
                    Finding(
                        "released-unheld", invariant: 1,
                        "The backend has confirmed a file and does not have it any more: pick it again.",
                        subject: file.path))
            }
            if file.state == .staged, let finding = try await checkBytes(file, of: item, staging) {
                findings.append(finding)
            }
        }
        for upload in uploads { findings += try await check(upload, files, catalog) }
        return findings
    }

    /// Invariant 4, from what is written down: where a file is allowed to be, given what the backend has confirmed of it.
    private static func checkState(_ file: FileRow, of item: ItemRow, _ upload: UploadRow?) -> [Finding] {
        guard file.role.isGiven else { return [] }
        let confirmed = upload?.confirmedSHA256
        var findings: [Finding] = []
        if file.state == .released {
            let allowed = ReleasePolicy.decide(
                role: file.role, sha256: file.sha256, state: item.state, reason: item.reason?.code,
                isMoved: item.isMoved, confirmed: confirmed)
            if allowed == .stay {
                findings.append(
                    Finding(
                        "released-unconfirmed", invariant: 4,
                        "A file left staging although the backend had not confirmed its hash.", subject: file.path))
            }
        }
        if file.state == .wanted, item.intent != .cancelled, item.state.rank > ItemState.picked.rank,
            !item.state.isFinal
        {
            findings.append(
                Finding(
                    "staged-without-bytes", invariant: 1, "An item counts as staged, but a file of it was never taken.",
                    subject: file.path))
        }
        if item.state == .ready, let upload, upload.confirmedSHA256 != file.sha256 {
            findings.append(
                Finding(
                    "ready-unconfirmed", invariant: 4,
                    "An item is ready although the backend has not confirmed all of it.",
                    subject: file.path))
        }
        return findings
    }

    /// Invariant 1: what is staged is there, with its hash. An item that is known to be missing says so itself.
    private static func checkBytes(
        _ file: FileRow, of item: ItemRow, _ staging: Staging
    ) async throws(Failure) -> Finding? {
        guard item.state != .missing else { return nil }
        // A cancellation that was cut short removes these again.
        if !file.role.isGiven, item.intent == .cancelled { return nil }
        let path = staging.path(of: file)
        guard let sha256 = file.sha256, let bytes = file.bytes else {
            return Finding("staged-unhashed", invariant: 1, "A staged file has no hash.", subject: file.path)
        }
        guard let facts = try Files.facts(path), facts.kind == .regular else {
            return Finding("staged-missing", invariant: 1, "A staged file is gone.", subject: file.path)
        }
        guard facts.size == bytes else {
            return Finding(
                "staged-size", invariant: 1, "A staged file has \(facts.size) bytes instead of \(bytes).",
                subject: file.path)
        }
        let actual = try await FileWork.run { stop throws(Failure) in
            try Files.sha256(of: .reading(path)) { _ throws(Failure) in try stop.check() }
        }
        guard actual == sha256 else {
            return Finding(
                "staged-damaged", invariant: 1, "A staged file no longer has its recorded hash.", subject: file.path)
        }
        return nil
    }

    /// Invariant 10: what counts as acknowledged is a part of the file, once.
    private static func check(
        _ upload: UploadRow, _ files: [FileRow], _ catalog: Catalog
    ) async throws(Failure) -> [Finding] {
        guard let file = files.first(where: { $0.role == upload.role && $0.name == upload.name }),
            let bytes = file.bytes
        else {
            return [
                Finding("upload-without-file", invariant: 5, "An upload has no file.", subject: upload.id.rawValue)
            ]
        }
        guard let grid = try? PartGrid(size: bytes, partSize: upload.partSize) else {
            return [Finding("upload-grid", invariant: 5, "An upload has no valid grid.", subject: upload.id.rawValue)]
        }
        var findings: [Finding] = []
        for part in try catalog.parts(of: upload.id) where !grid.contains(number: part.number, length: part.bytes) {
            findings.append(
                Finding(
                    "part-off-grid", invariant: 10, "An acknowledged part is none of its file.",
                    subject: "\(upload.id) part \(part.number)"))
        }
        return findings
    }

    // MARK: Staging

    /// Invariant 9: every file in staging belongs to an item of the catalog that knows it.
    private static func checkStrangers(_ catalog: Catalog, _ staging: Staging) async throws(Failure) -> [Finding] {
        guard try Files.facts(staging.root) != nil else { return [] }
        var findings: [Finding] = []
        func stranger(_ path: String, _ message: String) {
            findings.append(Finding("staging-stranger", invariant: 9, message, subject: path))
        }
        for name in try Files.names(in: staging.root) where name != "CACHEDIR.TAG" {
            // The tag itself may have been half written.
            if name.hasPrefix(Files.temporaryPrefix) { continue }
            guard let id = ItemID(rawValue: name), let item = try catalog.item(id) else {
                stranger(name, "A folder in staging belongs to no item: its bytes may be the only ones.")
                continue
            }
            let known = Set(try catalog.files(of: id).map(\.path))
            for path in try paths(below: name, staging) where !known.contains(path) {
                // Half-written files and what is being made belong to the item as long as it is worked on.
                let isTemporary = path.split(separator: "/").last?.hasPrefix(Files.temporaryPrefix) ?? false
                let isBeingMade =
                    path.hasPrefix("\(name)/\(Staging.derivedFolder)/") && item.state.rank < ItemState.uploading.rank
                if isTemporary && !item.state.isFinal || isBeingMade { continue }
                stranger(path, "A file in staging is unknown to its item.")
            }
        }
        return findings
    }

    private static func paths(below folder: String, _ staging: Staging) throws(Failure) -> [String] {
        var paths: [String] = []
        for name in try Files.names(in: staging.root + "/" + folder) {
            let path = folder + "/" + name
            if try Files.facts(staging.root + "/" + path)?.kind == .folder {
                paths += try Files.names(in: staging.root + "/" + path).map { path + "/" + $0 }
            } else {
                paths.append(path)
            }
        }
        return paths
    }
}
