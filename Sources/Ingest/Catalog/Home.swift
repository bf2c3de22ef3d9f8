import Files
public import Vocabulary

/// What a home is before anything in it is opened.
public enum Home {
    static let catalogName = "catalog.db"

    /// Whether anything was ever taken here.
    /// - Throws: `read-only` where the home is no folder; `database-error` where staging holds bytes of which no catalog knows. That is no new
    ///   home: they may be the only ones, and nothing says what they are.
    public static func isInUse(_ home: String) throws(Failure) -> Bool {
        if let facts = try Files.facts(home), facts.kind != .folder {
            throw Failure(.readOnly, "The home “\(home)” is not a folder: name another one with RUSHES_HOME.")
        }
        // SQLite takes an empty file for a new database, and throws the log beside it away.
        let size = try Files.facts(home + "/" + catalogName)?.size ?? 0
        if size == 0 { try requireNothingStaged(home) }
        return size > 0
    }

    /// To be asked where the catalog has no item: each has its row before its first byte is staged.
    static func requireNothingStaged(_ home: String) throws(Failure) {
        let staging = home + "/staging"
        guard try Files.facts(staging)?.kind == .folder else { return }
        var lost: [String] = []
        for name in try Files.names(in: staging) where ItemID(rawValue: name) != nil {
            if try !Files.names(in: staging + "/" + name).isEmpty { lost.append(name) }
        }
        guard !lost.isEmpty else { return }
        throw Failure(
            .databaseError,
            "The catalog of “\(home)” is gone, but \(lost.count) items lie in “\(staging)”: bring \(catalogName) back from a backup, or move that folder away and pick what is in it again.",
            remedy: .askUser, detail: lost.prefix(5).joined(separator: " "))
    }
}
