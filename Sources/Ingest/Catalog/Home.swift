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
        // Staging first: whoever works here writes an item's row before its first byte comes there.
        let holdsItems = try holdsItems(home)
        // SQLite takes an empty file for a new database, and throws the log beside it away.
        let size = try Files.facts(home + "/" + catalogName)?.size ?? 0
        if size == 0, holdsItems { throw catalogIsGone(home) }
        return size > 0
    }

    /// Whether bytes of any item lie in staging. To be asked before the catalog is.
    static func holdsItems(_ home: String) throws(Failure) -> Bool {
        let staging = home + "/staging"
        guard try Files.facts(staging)?.kind == .folder else { return false }
        for name in try Files.names(in: staging) where ItemID(rawValue: name) != nil {
            // Gone since: somebody works here.
            guard let names = try? Files.names(in: staging + "/" + name) else { continue }
            if !names.isEmpty { return true }
        }
        return false
    }

    static func catalogIsGone(_ home: String) -> Failure {
        Failure(
            .databaseError,
            "The catalog of “\(home)” is gone, but items lie in its staging: bring \(catalogName) back from a backup, or move that folder away and pick what is in it again.",
            remedy: .askUser, detail: home + "/staging")
    }
}
