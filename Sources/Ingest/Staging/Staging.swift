import Files
import Vocabulary

/// The private folder that holds an item's bytes until they are safe: `<home>/staging/<item id>/<file>`. A staged file names its item by
/// its folder, so that it is found again without the catalog.
struct Staging: Sendable {
    let root: String
    var home: String { Files.folder(of: root) }

    /// Makes the folder: for this user only, kept out of backups.
    static func open(home: String) throws(Failure) -> Staging {
        let staging = Staging(root: home + "/staging")
        try Files.makeFolder(staging.root)
        try Files.excludeFromBackups(staging.root)
        return staging
    }

    static let originalName = "original"
    /// Where what is made from an item lies, below its folder.
    static let derivedFolder = "made"
    /// Paths of given files below the staging folder.
    static func path(of item: ItemID, sidecar index: Int?) -> String {
        item.rawValue + "/" + (index.map { "sidecar-\($0)" } ?? originalName)
    }

    func folder(of item: ItemID) -> String { root + "/" + item.rawValue }
    func path(of file: FileRow) -> String { root + "/" + file.path }

    // MARK: Recovery

    /// Removes what a killed process left half written for an item. Whole files are never touched: they are adopted.
    func removeUnfinished(of item: ItemID, keepsDerived: Bool) throws(Failure) {
        let folder = folder(of: item)
        guard try Files.facts(folder) != nil else { return }
        for name in try Files.names(in: folder) where name.hasPrefix(Files.temporaryPrefix) {
            try Files.remove(folder + "/" + name)
        }
        if !keepsDerived { try Files.removeTree(folder + "/" + Self.derivedFolder) }
    }

    // MARK: Use

    /// A staged file is looked at before each use.
    /// - Throws: `staging-missing`, `staging-damaged`.
    @discardableResult
    func check(_ file: FileRow) throws(Failure) -> FileFacts {
        guard let facts = try Files.facts(path(of: file)), facts.kind == .regular else {
            throw Failure(.stagingMissing, "“\(file.name)” is no longer in staging: pick it again.", detail: file.path)
        }
        guard facts.size == file.bytes else {
            throw Failure(
                .stagingDamaged, "“\(file.name)” has changed in staging: pick it again.",
                detail: "\(file.path): \(facts.size) bytes instead of \(file.bytes.map(String.init) ?? "?")")
        }
        return facts
    }

    /// Reads the file whole and compares its hash.
    /// - Throws: `staging-missing`, `staging-damaged`.
    func verify(_ file: FileRow, stop: StopFlag) throws(Failure) {
        try check(file)
        let opened = try OpenFile.reading(path(of: file))
        let actual = try Files.sha256(of: opened) { _ throws(Failure) in try stop.check() }
        guard actual == file.sha256 else {
            throw Failure(
                .stagingDamaged, "“\(file.name)” has changed in staging: pick it again.",
                detail: "\(file.path): \(actual) instead of \(file.sha256?.rawValue ?? "?")")
        }
    }

    // MARK: Release

    /// Removes staged files of an item of which the catalog says that they may go. Refuses whatever is not inside the staging folder.
    /// - Parameter withFolder: its folder goes too when nothing else is in it.
    func remove(_ files: [FileRow], of item: ItemID, withFolder: Bool) throws(Failure) {
        for file in files where file.state != .released && file.state != .discarded {
            throw Failure(.internalError, "A file was to leave staging before it was safe.", detail: file.path)
        }
        var paths: [String] = []
        for file in files {
            if let path = try removable(below: file.path) { paths.append(path) }
        }
        let folder = folder(of: item)
        try Files.remove(paths, andIfEmpty: withFolder ? [folder + "/" + Self.derivedFolder, folder] : [])
    }

    func remove(below path: String) throws(Failure) {
        if let path = try removable(below: path) { try Files.remove(path) }
    }

    /// - Returns: nil where the folder is not there.
    private func removable(below path: String) throws(Failure) -> String? {
        let components = path.split(separator: "/", omittingEmptySubsequences: false)
        guard components.count >= 2, components.allSatisfy({ !$0.isEmpty && $0 != "." && $0 != ".." }),
            ItemID(rawValue: String(components[0])) != nil
        else { throw Failure(.internalError, "A path outside staging was to be removed.", detail: path) }
        // A link in the place of a folder would lead out.
        var folder = root
        for component in components.dropLast() {
            folder += "/" + component
            guard let resolved = try? RawPath(folder).resolved(), let base = try? RawPath(root).resolved() else {
                return nil
            }
            guard resolved.bytes.starts(with: base.bytes + [UInt8(ascii: "/")]) else {
                throw Failure(.internalError, "A path outside staging was to be removed.", detail: folder)
            }
        }
        return root + "/" + path
    }

    /// Removes an item's folder once nothing is in it.
    func removeFolderIfEmpty(of item: ItemID) throws(Failure) { try remove([], of: item, withFolder: true) }
}
