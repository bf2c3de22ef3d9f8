internal import CFiles
import Glibc
public import Vocabulary

/// The only door for durable changes to files: temp → write → fsync → rename → fsync the folder. Every change that has become durable is one
/// step of `DurableSteps`. A test holds the rest of the code to it, and another one records everything below the libc calls and cuts the
/// power at any of them.
public enum Files {
    /// Files of this name prefix are unfinished writes; recovery may remove those of its own folder.
    public static let temporaryPrefix = ".rushes-tmp-"

    // MARK: Looking

    /// Nil when nothing is there. Links are followed.
    public static func facts(_ path: String) throws(Failure) -> FileFacts? {
        var status = stat()
        if stat(path, &status) != 0 {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw FileFault.failure(errno, "stat", path)
        }
        return FileFacts(status)
    }

    /// Names in a folder, sorted by their bytes, without `.` and `..`.
    public static func names(in folder: String) throws(Failure) -> [String] {
        guard let stream = opendir(folder) else { throw FileFault.failure(errno, "opendir", folder) }
        defer { closedir(stream) }
        var names: [String] = []
        errno = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: Int(NAME_MAX) + 1) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw FileFault.failure(errno, "readdir", folder) }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Bytes that this user may still write to the file system of `path`.
    public static func freeBytes(at path: String) throws(Failure) -> Int {
        var status = statvfs()
        try checked("statvfs", path, statvfs(path, &status))
        let bytes = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize))
        return bytes.overflow ? .max : Int(clamping: bytes.partialValue)
    }

    public static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    // MARK: Changing

    /// Makes the folder and those above it, for this user only, and makes that durable.
    public static func makeFolder(_ path: String) throws(Failure) {
        if let facts = try facts(path) {
            guard facts.kind == .folder else { throw FileFault.failure(EEXIST, "mkdir", path) }
            // Whoever made it, another thread or a process that was killed, may not have come to make its name durable. Those above it were
            // durable before it was made.
            try synchronizeFolderIfAllowed(folder(of: path))
            return
        }
        let parent = folder(of: path)
        if parent != path { try makeFolder(parent) }
        if mkdir(path, 0o700) != 0, errno != EEXIST { throw FileFault.failure(errno, "mkdir", path) }
        try synchronizeFolder(parent)
    }

    /// Makes a folder, for this user only, in one whose own name is durable already.
    /// - Returns: its path.
    @discardableResult
    public static func makeFolder(_ name: String, in folder: String) throws(Failure) -> String {
        let path = folder + "/" + name
        if mkdir(path, 0o700) != 0 {
            guard errno == EEXIST else { throw FileFault.failure(errno, "mkdir", path) }
            guard try facts(path)?.kind == .folder else { throw FileFault.failure(EEXIST, "mkdir", path) }
        }
        // Where it was there: whoever made it may not have come to make its name durable.
        try synchronizeFolder(folder)
        return path
    }

    /// Writes a small file whole. Replaces an older one.
    public static func write(_ bytes: [UInt8], to path: String) throws(Failure) {
        let draft = try Draft.begin(for: path)
        try bytesOf(bytes) { buffer throws(Failure) in try draft.file.write(buffer, at: 0) }
        try draft.commit(replacing: true)
    }

    /// Moves within one file system. The target must not exist.
    public static func move(_ from: String, to: String) throws(Failure) {
        let result = rushes_rename_noreplace(from, to)
        guard result == 0 else { throw FileFault.failure(-result, "renameat2", to) }
        try synchronizeFolder(folder(of: to))
        if folder(of: from) != folder(of: to) { try synchronizeFolder(folder(of: from)) }
        DurableSteps.passed("files.move")
    }

    /// A second name for a file.
    /// - Returns: false where the file system has no second names, or no more for this file.
    /// - Throws: `conflict` when the name is taken, `source-missing`.
    public static func link(_ from: String, to: String) throws(Failure) -> Bool {
        if Glibc.link(from, to) != 0 {
            switch errno {
            case EPERM, EOPNOTSUPP, EMLINK, EXDEV, ENOSYS: return false
            case EEXIST:
                throw Failure(.conflict, "“\(to.split(separator: "/").last ?? "")” exists already.", detail: to)
            default: throw FileFault.failure(errno, "link", errno == ENOENT ? from : to)
            }
        }
        try synchronizeFolder(folder(of: to))
        DurableSteps.passed("files.link")
        return true
    }

    /// Removes files, and then those of the folders in which nothing is left: durable together, as one step. What is not there is no error.
    /// - Parameter folders: inner ones first.
    public static func remove(_ paths: [String], andIfEmpty folders: [String] = []) throws(Failure) {
        var changed: Set<String> = []
        // Whoever removed what is not found may have been killed before that was durable.
        var unchanged: Set<String> = []
        for path in paths {
            if unlink(path) == 0 {
                changed.insert(folder(of: path))
            } else if errno == ENOENT || errno == ENOTDIR {
                unchanged.insert(folder(of: path))
            } else {
                throw FileFault.failure(errno, "unlink", path)
            }
        }
        for path in folders {
            if rmdir(path) == 0 {
                changed.insert(folder(of: path))
            } else if errno == ENOENT {
                unchanged.insert(folder(of: path))
            } else if errno != ENOTEMPTY && errno != EEXIST {
                throw FileFault.failure(errno, "rmdir", path)
            }
        }
        for folder in changed where try facts(folder) != nil { try synchronizeFolder(folder) }
        for folder in unchanged.subtracting(changed) where try facts(folder) != nil {
            try synchronizeFolderIfAllowed(folder)
        }
        if !changed.isEmpty { DurableSteps.passed("files.remove") }
    }

    /// Removes a file; one that is not there is no error.
    public static func remove(_ path: String) throws(Failure) { try remove([path]) }

    /// Removes a folder with all in it; one that is not there is no error. Links inside are removed, not followed.
    public static func removeTree(_ path: String) throws(Failure) {
        guard try facts(path) != nil else { return }
        try removeEntries(of: path, depth: 0)
        if rmdir(path) != 0, errno != ENOENT { throw FileFault.failure(errno, "rmdir", path) }
        // The names inside went with the folder: only its own has to be gone for good.
        try synchronizeFolder(folder(of: path))
        DurableSteps.passed("files.removeTree")
    }

    /// Folders in folders that are gone into; ours are three deep.
    private static let depthMax = 64

    private static func removeEntries(of folder: String, depth: Int) throws(Failure) {
        guard depth < depthMax else {
            throw Failure(.ioError, "A folder could not be removed: it is too deep.", detail: folder)
        }
        let names: [String]
        do throws(Failure) { names = try self.names(in: folder) } catch {
            if error.code == .sourceMissing { return }
            throw error
        }
        for name in names {
            let path = folder + "/" + name
            if unlink(path) == 0 || errno == ENOENT { continue }
            guard errno == EISDIR || errno == EPERM else { throw FileFault.failure(errno, "unlink", path) }
            try removeEntries(of: path, depth: depth + 1)
            if rmdir(path) != 0, errno != ENOENT { throw FileFault.failure(errno, "rmdir", path) }
        }
    }

    /// Without this a rename, a new name or a removal may itself be lost in a power cut.
    public static func synchronizeFolder(_ path: String) throws(Failure) {
        let opened = try checked("open for reading", path, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC))
        defer { close(opened) }
        // Some network file systems refuse to sync a folder; they promise nothing then, and there is no more to do.
        if fsync(opened) != 0, errno != EINVAL, errno != ENOTSUP { throw FileFault.failure(errno, "fsync", path) }
    }

    /// For a folder of somebody else's, which we may be allowed to pass through but not to open.
    static func synchronizeFolderIfAllowed(_ path: String) throws(Failure) {
        if access(path, R_OK) != 0 { return }
        try synchronizeFolder(path)
    }

    /// Keeps a folder of ours out of backups: `CACHEDIR.TAG` (bford.info/cachedir) and the nodump flag where there is one.
    public static func excludeFromBackups(_ folder: String) throws(Failure) {
        let tag = folder + "/CACHEDIR.TAG"
        if try facts(tag) == nil {
            try write(Array("Signature: 8a477f597d28d172789f06886806bc55\n# Staging of rushes.\n".utf8), to: tag)
        }
        let opened = OpenFile(
            owning: try checked("open for reading", folder, open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
            path: folder)
        _ = rushes_set_nodump(opened.descriptor)
    }

    static func bytesOf(_ bytes: [UInt8], _ body: (UnsafeRawBufferPointer) throws(Failure) -> Void) throws(Failure) {
        let result: Result<Void, Failure> = bytes.withUnsafeBytes { buffer in
            do throws(Failure) {
                try body(buffer)
                return .success(())
            } catch { return .failure(error) }
        }
        try result.get()
    }
}
