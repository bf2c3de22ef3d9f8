public import Files
import Foundation
import Glibc
import SQLite
public import Vocabulary

/// Writes down what a shoot consists of, for others to check: an ASC MHL history of the files as they came off the card, and the backend's
/// receipt.
public struct Proof: Sendable {
    let catalog: Catalog
    private let now: @Sendable () -> Int64

    public struct Report: Sendable {
        /// Paths of what was written, the new manifest first.
        public var written: [String]
        public var manifest: String { written[0] }
        public var fileCount: Int
        public var confirmedCount: Int
        /// Files whose hash is not the one that the folder's history has.
        public var differing: [String]
        /// Files that are not in it, in words for people.
        public var gaps: [String]
        public var isWhole: Bool { gaps.isEmpty && differing.isEmpty }
    }

    /// - Returns: nil where nothing has been taken yet.
    public static func open(
        home: String, now: @escaping @Sendable () -> Int64 = BoxClock.system.now
    ) async throws(Failure) -> Proof? {
        guard try Home.isInUse(home) else { return nil }
        return Proof(catalog: try await Catalog.open(home: home, isLooking: true), now: now)
    }

    /// - Parameters:
    ///   - folder: where the list is to lie: a copy of the card, or one to be.
    ///   - toolVersion: for the list.
    /// - Throws: `not-found` for a shoot that nobody has picked, `source-missing` for a folder that is not there, `conflict` where its history
    ///   cannot be read.
    public func write(shoot: String, into folder: RawPath, toolVersion: String) async throws(Failure) -> Report {
        let plan = ProofPlan(try await catalog.given(of: shoot))
        guard !plan.files.isEmpty || !plan.gaps.isEmpty else {
            throw Failure(.notFound, "There is no shoot “\(shoot)” here: rushes status lists them.")
        }
        let now = now()
        return try await FileWork.run { _ throws(Failure) in
            let folder = try folder.resolved()
            guard try Files.facts(folder)?.kind == .folder else {
                throw Failure(.sourceMissing, "“\(folder)” is not a folder: name one for the list.")
            }
            return try write(plan, shoot, folder, toolVersion, Date(timeIntervalSince1970: Double(now) / 1000))
        }
    }

    private func write(
        _ plan: ProofPlan, _ shoot: String, _ folder: RawPath, _ toolVersion: String, _ date: Date
    ) throws(Failure) -> Report {
        let root = folder.description
        let place = root + "/" + MHLManifest.folderName
        let history = try MHLHistory.read(place)
        let files = plan.files.map { file in
            (file: file, action: Self.action(file.xxh128, before: history.hashes[Array(file.path.utf8)]))
        }
        let manifest = MHLManifest(
            files: files, creationDate: date, hostName: Self.hostName(), toolVersion: toolVersion,
            ignored: [".DS_Store", MHLManifest.folderName, MHLManifest.folderName + "/", Receipt.name]
                + SystemFiles.patterns
        ).text
        let generation = history.lastGeneration + 1
        let name = MHLManifest.name(
            generation: generation, folder: String(decoding: folder.name, as: UTF8.self), date: date)
        guard
            let chain = MHLManifest.chain(
                history.chain, appending: name, generation: generation, manifest: manifest)
        else { throw MHLHistory.unreadable(place + "/" + MHLManifest.chainName) }
        let receipt = Receipt(
            shoot: shoot, writtenAt: date.formatted(.iso8601), files: plan.files.map(Receipt.File.init))
        try Files.makeFolder(place)
        // The chain names only what is there.
        let outputs = [
            (place + "/" + name, Array(manifest.utf8)), (place + "/" + MHLManifest.chainName, Array(chain.utf8)),
            (root + "/" + Receipt.name, [UInt8](try JSON.encode(receipt)) + [UInt8(ascii: "\n")]),
        ]
        for (path, bytes) in outputs { try Files.write(bytes, to: path) }
        return Report(
            written: outputs.map(\.0), fileCount: plan.files.count, confirmedCount: receipt.confirmedFiles,
            differing: files.filter { $0.action == .failed }.map(\.file.path),
            gaps: plan.gaps.sorted { $0.key.rawValue < $1.key.rawValue }.map { Self.words($0.key, $0.value) })
    }

    private static func action(_ hash: XXH128Digest, before: XXH128Digest?) -> MHLManifest.Action {
        guard let before else { return .original }
        return before == hash ? .verified : .failed
    }

    private static func words(_ gap: ProofPlan.Gap, _ count: Int) -> String {
        switch gap {
        case .notHashed: "\(count) files were not read, or were cancelled"
        case .takenBefore: "\(count) files were taken by an earlier version, which did not note their XXH128"
        case .unnameable: "\(count) files have names that a list cannot hold"
        }
    }

    private static func hostName() -> String {
        var buffer = [CChar](repeating: 0, count: 256)
        guard gethostname(&buffer, buffer.count - 1) == 0 else { return "unknown" }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

extension Catalog {
    /// The given files of a shoot, in the order in which they were taken.
    fileprivate func given(of shoot: String) async throws(Failure) -> [ProofPlan.Known] {
        let rows = try database.rows(
            """
            SELECT file.item, file.role, item.state, item.server, file.card, file.below, file.bytes,
                file.source_modified, file.sha256, file.xxh128, file.hashed_at, upload.id, upload.confirmed_sha256,
                item.document
            FROM file JOIN item ON item.id = file.item
                LEFT JOIN upload ON upload.item = file.item AND upload.role = file.role AND upload.name = file.name
            WHERE item.shoot = ?1 AND file.role IN ('original', 'sidecar') ORDER BY item.rowid, file.path
            """, [SQLValue(shoot)])
        return try rows.map { row throws(Failure) in
            let upload = row.text(11).flatMap { UploadID(rawValue: $0) }
            let document = try row.text(13).map(StoredMessage<ItemDocument>.init)?.read()
            return ProofPlan.Known(
                item: try row.required(0, as: ItemID.self), role: try row.required(1, as: FileRole.self),
                state: try row.required(2, as: ItemState.self), server: row.text(3),
                card: row.blob(4).map { RawPath($0) }, below: row.blob(5).map { RawPath($0) }, bytes: row.int(6),
                modified: Int64(row.int(7) ?? 0), sha256: row.text(8).flatMap { SHA256Digest(rawValue: $0) },
                xxh128: row.text(9).flatMap { XXH128Digest(rawValue: $0) }, hashedAt: row.int(10).map { Int64($0) },
                upload: upload, confirmed: row.text(12).flatMap { SHA256Digest(rawValue: $0) },
                verifiedAt: document?.uploads.first { $0.uploadID == upload }?.verifiedAt)
        }
    }
}
