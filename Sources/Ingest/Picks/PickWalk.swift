public import Files
public import Vocabulary

/// Looks through what a person named. Reads folders, never files.
public struct PickWalk: Sendable {
    /// Folders inside each other.
    static let depthMax = 64
    /// Files of one pick.
    static let fileCountMax = 1_000_000

    public private(set) var files: [WalkedFile] = []
    public private(set) var ignored: [IgnoredFile] = []
    // A link may lead back up; each folder is read once.
    private var visited: Set<FileIdentity> = []
    private var found: Set<RawPath> = []
    private let home: FileIdentity?
    private let followsLinksOut: Bool

    /// - Parameters:
    ///   - home: left out, by whatever path it is come across.
    ///   - followsLinksOut: whether a link inside a folder may lead out of it.
    /// - Throws: `source-missing` when one of the paths does not exist, `usage` when one lies in the home; nothing has been done then.
    public init(_ paths: [RawPath], home: String?, followsLinksOut: Bool = true) throws(Failure) {
        self.followsLinksOut = followsLinksOut
        self.home = try home.flatMap { home throws(Failure) in try Files.facts(home) }?.identity
        var roots: [RawPath] = []
        for path in paths {
            let root = try path.resolved()
            if let home = self.home { try Home.refuse(root, in: home) }
            roots.append(root)
        }
        for root in roots { try visit(root, depth: 0, root: root) }
    }

    /// Whether a file is of those that cameras and operating systems leave beside the footage.
    public static func isSystemFile(_ path: RawPath) -> Bool { SystemFiles.isFile(path.name) }

    private mutating func visit(_ path: RawPath, depth: Int, root: RawPath) throws(Failure) {
        let isRoot = depth == 0
        let facts: FileFacts
        do throws(Failure) {
            guard let found = try Files.facts(path) else {
                return ignored.append(IgnoredFile(path: path, reason: .brokenLink))
            }
            facts = found
        } catch {
            if isRoot { throw error }
            return ignored.append(IgnoredFile(path: path, reason: .unreadable(error.message)))
        }
        if !followsLinksOut, !isRoot, let real = try? path.resolved(), !root.holds(real) {
            return ignored.append(IgnoredFile(path: path, reason: .linkOut))
        }
        switch facts.kind {
        case .regular:
            guard files.count < Self.fileCountMax else {
                throw Failure(
                    .usage, "There are more than \(Self.fileCountMax) files: pick fewer folders at once.")
            }
            // A link stands for its file: a move has to take the bytes, not the link, and the same file is taken once.
            let file = (try? path.resolved()) ?? path
            guard found.insert(file).inserted else { return }
            if let home, file != path, (try? Files.lies(file, in: home)) ?? false {
                return ignored.append(IgnoredFile(path: path, reason: .ownFolder))
            }
            files.append(
                WalkedFile(
                    path: file, size: facts.size, modified: facts.modified, card: isRoot ? nil : root,
                    below: path.below(root)))
        case .folder: try visitFolder(path, facts, depth: depth, root: root)
        case .other: ignored.append(IgnoredFile(path: path, reason: .notAFile))
        }
    }

    private mutating func visitFolder(_ path: RawPath, _ facts: FileFacts, depth: Int, root: RawPath) throws(Failure) {
        let isRoot = depth == 0
        if !isRoot, SystemFiles.isFolder(path.name) {
            return ignored.append(IgnoredFile(path: path, reason: .systemFile))
        }
        guard facts.identity != home else { return ignored.append(IgnoredFile(path: path, reason: .ownFolder)) }
        guard depth < Self.depthMax else { return ignored.append(IgnoredFile(path: path, reason: .tooDeep)) }
        guard visited.insert(facts.identity).inserted else { return }
        let names: [[UInt8]]
        do throws(Failure) {
            names = try Files.names(in: path)
        } catch {
            if isRoot { throw error }
            return ignored.append(IgnoredFile(path: path, reason: .unreadable(error.message)))
        }
        guard !Home.isHome(names) else {
            if isRoot { throw Home.isNoSource(path) }
            return ignored.append(IgnoredFile(path: path, reason: .ownFolder))
        }
        for name in names { try visit(path.appending(name), depth: depth + 1, root: root) }
    }
}
