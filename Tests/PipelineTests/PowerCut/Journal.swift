import Foundation

/// What the recorder wrote down, in order. Paths are relative to the recorded root.
struct Journal: Sendable {
    enum Entry: Equatable, Sendable {
        case create(inode: UInt64, path: String)
        case makeFolder(inode: UInt64, path: String)
        case rename(from: String, to: String)
        case link(from: String, to: String)
        case remove(path: String)
        /// The number of the copy that holds the file's contents.
        case syncFile(inode: UInt64, copy: Int)
        case syncFolder(inode: UInt64)
        /// `DurableSteps` says by name that something has become durable.
        case step(String)
    }
    struct Malformed: Error { var line: String }

    var entries: [Entry]
    init(entries: [Entry]) { self.entries = entries }

    init(_ path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        entries = try text.split(separator: "\n").map { line in
            guard let entry = Self.entry(String(line)) else { throw Malformed(line: String(line)) }
            return entry
        }
    }

    private static func entry(_ line: String) -> Entry? {
        let fields = line.split(separator: "\t").map(String.init)
        switch (fields[0], fields.count) {
        case ("create", 3): return UInt64(fields[1]).map { .create(inode: $0, path: fields[2]) }
        case ("mkdir", 3): return UInt64(fields[1]).map { .makeFolder(inode: $0, path: fields[2]) }
        case ("rename", 3): return .rename(from: fields[1], to: fields[2])
        case ("link", 3): return .link(from: fields[1], to: fields[2])
        case ("unlink", 2), ("rmdir", 2): return .remove(path: fields[1])
        case ("fsync", 3):
            guard let inode = UInt64(fields[1]), let copy = Int(fields[2]) else { return nil }
            return .syncFile(inode: inode, copy: copy)
        case ("fsyncdir", 2): return UInt64(fields[1]).map { .syncFolder(inode: $0) }
        // `DurableSteps` counts before it: "17 files.commit".
        case (_, 1):
            let words = line.split(separator: " ")
            return words.count == 2 && Int(words[0]) != nil ? .step(String(words[1])) : nil
        default: return nil
        }
    }
}

extension Journal {
    /// What the program could have forgotten to ask of the disk. `RUSHES_POWER_MUTANT` sets one, and the test has to fail: the record is then
    /// that of a program without these calls, since no call's success depends on them.
    enum Mutant: String {
        /// `Draft.commit` without the fsync of the folder.
        case noFolderSyncAfterCommit
        /// `Draft.commit` without the fsync of the file.
        case noFileSyncBeforeCommit
        /// `Files.move` without the fsync of the folders. On the box that alone does no harm: adopting syncs again.
        case noFolderSyncAfterMove
        /// `PRAGMA synchronous=OFF`.
        case noDatabaseSync
        /// `Files.makeFolder` without the fsync of the folder above.
        case noFolderSyncAfterMakeFolder

        struct Unknown: Error { var name: String }
        static func ofEnvironment() throws -> Mutant? {
            guard let name = ProcessInfo.processInfo.environment["RUSHES_POWER_MUTANT"] else { return nil }
            guard let mutant = Mutant(rawValue: name) else { throw Unknown(name: name) }
            print("power cuts: MUTANT \(name), this run has to fail")
            return mutant
        }
    }

    mutating func forget(_ mutant: Mutant?) {
        guard let mutant else { return }
        var kept: [Entry] = []
        var drafts: Set<UInt64> = []
        var databases: Set<UInt64> = []
        // Folder syncs that the last change still asks for.
        var toSkip = 0
        for entry in entries {
            switch entry {
            case .create(let inode, let path):
                drafts.remove(inode)
                databases.remove(inode)
                if path.contains("/.rushes-tmp-") { drafts.insert(inode) }
                if path.contains(".db") || path.contains(".sqlite") { databases.insert(inode) }
            case .rename(let from, _):
                let isCommit = from.contains("/.rushes-tmp-")
                if mutant == .noFolderSyncAfterCommit && isCommit { toSkip = 1 }
                if mutant == .noFolderSyncAfterMove && !isCommit { toSkip = 2 }
            case .makeFolder where mutant == .noFolderSyncAfterMakeFolder: toSkip = 1
            case .syncFile(let inode, _):
                if mutant == .noFileSyncBeforeCommit && drafts.contains(inode) { continue }
                if mutant == .noDatabaseSync && databases.contains(inode) { continue }
            case .syncFolder where toSkip > 0:
                toSkip -= 1
                continue
            default: break
            }
            kept.append(entry)
        }
        entries = kept
    }
}
