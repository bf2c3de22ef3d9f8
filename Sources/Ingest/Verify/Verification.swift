public import Files
import SQLite
public import Vocabulary

/// What came of verifying a card.
public struct VerifyReport: Sendable {
    /// In the order of the walk.
    public internal(set) var files: [VerifiedFile] = []
    /// False where the backend could not be asked now: what it confirmed earlier counts then.
    public internal(set) var isBackendAsked = true
    /// There is nothing but what systems leave: an empty card, or the place of one that is not there. No word about its safety then.
    public var hasNothing: Bool { files.allSatisfy { $0.status == .system } }
    public var isSafe: Bool { !hasNothing && !files.contains { $0.status.blocks } }
}

/// Hashes a card again and compares it with what is known. Reads only.
public struct Verification: Sendable {
    private let catalog: Catalog?
    private let client: BackendClient?

    /// A card against nothing: nothing has been taken yet.
    public static let ofNothing = Verification(catalog: nil, client: nil)

    init(catalog: Catalog?, client: BackendClient?) {
        self.catalog = catalog
        self.client = client
    }

    /// - Parameter progress: share of the bytes read.
    /// - Throws: `source-missing` when one of the paths does not exist.
    public func run(
        _ paths: [RawPath], progress: @escaping @Sendable (Double) -> Void
    ) async throws(Failure) -> VerifyReport {
        let plan = VerifyPlan(try await catalog?.known() ?? [])
        let home = catalog.map { Files.folder(of: $0.database.path) }
        let walk = try await FileWork.run { _ throws(Failure) in try PickWalk(paths, home: home) }
        var report = VerifyReport()
        var backend = BackendAnswers(client: client)
        let total = max(1, walk.files.reduce(0) { $0 + $1.size })
        var before = 0
        for file in walk.files {
            if SystemFiles.isFile(file.path.name) {
                report.files.append(VerifiedFile(path: file.path, status: .system))
            } else {
                let start = before
                let (sha256, fault) = try await hash(file) { progress(Double(start + $0) / Double(total)) }
                if let sha256 {
                    for known in plan.items(with: sha256) {
                        try await backend.ask(known.item, of: known.shoot, for: sha256)
                    }
                    report.files.append(
                        plan.status(of: file.path, bytes: file.size, sha256: sha256, answers: backend.answers))
                } else {
                    report.files.append(VerifiedFile(path: file.path, status: .unreadable, words: fault))
                }
            }
            before += file.size
        }
        for ignored in walk.ignored {
            guard let status = ignored.reason.verifyStatus else { continue }
            report.files.append(VerifiedFile(path: ignored.path, status: status, words: ignored.reason.words))
        }
        report.isBackendAsked = backend.isReachable
        return report
    }

    /// - Returns: the hash, or why there is none.
    private func hash(
        _ file: WalkedFile, progress: @escaping @Sendable (Int) -> Void
    ) async throws(Failure) -> (SHA256Digest?, String?) {
        do throws(Failure) {
            let sha256 = try await FileWork.run { stop throws(Failure) in
                let opened = try OpenFile.reading(file.path)
                return try Files.sha256(of: opened) { bytes throws(Failure) in
                    guard bytes <= file.size else {
                        throw Failure(.sourceChanged, "It is being written.")
                    }
                    progress(bytes)
                    try stop.check()
                }
            }
            return (sha256, nil)
        } catch {
            if error.code == .cancelled { throw error }
            return (nil, error.message)
        }
    }
}

extension IgnoredFile.Reason {
    /// Nil where there is nothing that could be lost.
    fileprivate var verifyStatus: VerifyStatus? {
        switch self {
        case .systemFile: .system
        case .sidecarWithoutItem, .sidecarOfMoved: .notTaken
        case .tooDeep, .unreadable: .unreadable
        case .notAFile, .brokenLink, .linkOut, .ownFolder: nil
        }
    }
}

extension Catalog {
    /// Every given file, with what is known of it.
    func known() async throws(Failure) -> [VerifyPlan.Known] {
        try database.rows(
            """
            SELECT file.item, file.source, file.sha256, coalesce(file.bytes, file.source_size), file.state = 'staged',
                coalesce(upload.confirmed_sha256 = file.sha256, 0), coalesce(item.reason_code IN ('empty', 'not-media'), 0), item.shoot
            FROM file JOIN item ON item.id = file.item
                LEFT JOIN upload ON upload.item = file.item AND upload.role = file.role AND upload.name = file.name
            WHERE file.role IN ('original', 'sidecar') AND file.state <> 'discarded' ORDER BY item.rowid
            """
        ).map { row throws(Failure) in
            VerifyPlan.Known(
                item: try row.required(0, as: ItemID.self), shoot: try row.required(7, SQLRow.text),
                source: row.blob(1).map { RawPath($0) },
                sha256: row.text(2).flatMap { SHA256Digest(rawValue: $0) }, bytes: row.int(3), isStaged: row.bool(4),
                isConfirmed: row.bool(5), isNoMedia: row.bool(6))
        }
    }
}

extension Box {
    /// - Parameter asks: false where it is known that the backend will not answer.
    public nonisolated func verification(asks: Bool) -> Verification {
        Verification(catalog: catalog, client: asks ? client : nil)
    }
}
