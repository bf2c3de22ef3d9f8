internal import CFiles
import Glibc
public import Vocabulary

/// A file in the making, under a temporary name in the folder where it will live. Whole under its name after `commit`, gone otherwise.
public final class Draft: @unchecked Sendable {
    // Unchecked: one owner at a time writes, commits or lets go; nothing here is shared while it changes.
    public let file: OpenFile
    public let path: String
    /// It has no name yet.
    public private(set) var isPending = true

    private init(file: OpenFile, path: String) {
        self.file = file
        self.path = path
    }

    public static func begin(for path: String) throws(Failure) -> Draft {
        var random = SystemRandomNumberGenerator()
        let name = namePrefix(for: path) + String(UInt64.random(in: .min ... .max, using: &random), radix: 36)
        let draft = Draft(file: try .creating(Files.folder(of: path) + "/" + name), path: path)
        // Ends with us, however that comes: `removeAbandoned` sees by it whether anybody is still at the draft.
        _ = flock(draft.file.descriptor, LOCK_EX | LOCK_NB)
        return draft
    }

    /// The same for all drafts of one name: FNV-1a (Fowler, Noll, Vo), since the name itself may be as long as names may be.
    private static func namePrefix(for path: String) -> String {
        let name = path.split(separator: "/").last ?? ""
        let hash = name.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        return Files.temporaryPrefix + String(hash, radix: 36) + "-"
    }

    /// Removes what killed processes left of earlier tries at this path, in a folder that nobody else clears. Drafts at which somebody still
    /// is stay.
    public static func removeAbandoned(for path: String) throws(Failure) {
        let folder = Files.folder(of: path)
        let prefix = namePrefix(for: path)
        for name in try Files.names(in: folder) where name.hasPrefix(prefix) {
            guard let file = try? OpenFile.reading(folder + "/" + name),
                flock(file.descriptor, LOCK_EX | LOCK_NB) == 0
            else { continue }
            unlink(file.path)
        }
    }

    /// Makes room for the whole, so that a full disk shows at the start.
    public func reserve(_ bytes: Int) throws(Failure) {
        guard bytes > 0 else { return }
        let result = rushes_fallocate(file.descriptor, off_t(bytes))
        // Not every file system can reserve; the write itself will tell then.
        if result == -ENOSPC || result == -EFBIG || result == -EDQUOT {
            throw FileFault.failure(-result, "fallocate", path)
        }
    }

    /// fsync, rename, fsync the folder: one durable step.
    /// - Throws: `conflict` when the name is taken and `replacing` is false.
    public func commit(replacing: Bool = false) throws(Failure) { try Self.commit([self], replacing: replacing) }

    /// All of them get their names: one durable step. Where it fails, some may have theirs.
    public static func commit(_ drafts: [Draft], replacing: Bool) throws(Failure) {
        for draft in drafts { try draft.file.synchronize() }
        for draft in drafts { try draft.takeName(replacing: replacing) }
        for folder in Set(drafts.map { Files.folder(of: $0.path) }) { try Files.synchronizeFolder(folder) }
        if !drafts.isEmpty { DurableSteps.passed("files.commit") }
    }

    private func takeName(replacing: Bool) throws(Failure) {
        if replacing {
            try checked("rename", path, rename(file.path, path))
        } else {
            let result = rushes_rename_noreplace(file.path, path)
            if result == -EEXIST {
                throw Failure(.conflict, "“\(path.split(separator: "/").last ?? "")” exists already.", detail: path)
            }
            guard result == 0 else { throw FileFault.failure(-result, "renameat2", path) }
        }
        isPending = false
    }

    /// A descriptor of its own for somebody else to write to.
    public func openAgain() throws(Failure) -> OpenFile {
        OpenFile(
            owning: try checked("open", file.path, open(file.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW)), path: file.path)
    }

    /// Not made durable: what comes back after a power cut is a temporary name, which recovery removes.
    public func discard() {
        if isPending { unlink(file.path) }
        isPending = false
    }

    deinit { discard() }
}
