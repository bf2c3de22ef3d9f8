public import Files
public import Vocabulary

/// What a home is before anything in it is opened.
public enum Home {
    static let catalogName = "catalog.db"

    /// Refuses a folder from which nothing may be taken: the home itself, or one in it. A move would take the catalog away.
    /// - Throws: `usage`.
    static func refuse(_ path: RawPath, in home: FileIdentity) throws(Failure) {
        if try Files.lies(path, in: home) { throw isNoSource(path) }
    }

    static func isNoSource(_ path: RawPath) -> Failure {
        Failure(
            .usage,
            "“\(path)” is a folder in which Rushes itself works, or lies in one: name the folder of the footage."
        )
    }

    /// Refuses a folder as an inbox: one in the home, or one that holds it.
    /// - Throws: `usage`.
    public static func refuseInbox(_ path: RawPath, home: String) throws(Failure) {
        guard let own = try Files.facts(home)?.identity else { return }
        try refuse(path, in: own)
        guard let inbox = try Files.facts(path)?.identity, try Files.lies(RawPath(home).resolved(), in: inbox) else {
            return
        }
        throw Failure(.usage, "The inbox “\(path)” holds the home of Rushes: name a folder of its own.")
    }

    /// Whether these names are what a home, or a backend's folder, has in it: somebody else's then, and no footage either.
    static func isHome(_ names: some Sequence<[UInt8]>) -> Bool {
        let names = Set(names)
        return [[catalogName, "staging"], ["ledger.sqlite", "signing-key"]].contains { marks in
            marks.allSatisfy { names.contains(Array($0.utf8)) }
        }
    }

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
