internal import CFiles
import Glibc
public import Vocabulary

/// A path as the bytes that the file system has. Linux names are any bytes but `/` and zero: a `String` would repair what is not UTF-8 and
/// then name another file.
public struct RawPath: Sendable, Hashable, ExpressibleByStringLiteral, CustomStringConvertible {
    /// Without the closing zero.
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ path: String) { bytes = Array(path.utf8) }
    public init(stringLiteral value: String) { self.init(value) }

    /// For people: bytes that are not UTF-8 are replaced.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
    /// What follows the last slash.
    public var name: [UInt8] { Array(bytes.drop { $0 == 0 }.split(separator: UInt8(ascii: "/")).last ?? []) }
    /// The folder that holds it, as written.
    public var folder: RawPath {
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == 0 ? "/" : RawPath(Array(bytes[..<slash]))
    }

    public func appending(_ name: [UInt8]) -> RawPath {
        RawPath(bytes + (bytes.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]) + name)
    }

    /// Whether the path is this one or below it. Both absolute.
    public func holds(_ path: RawPath) -> Bool {
        path.bytes == bytes
            || path.bytes.starts(with: bytes.last == UInt8(ascii: "/") ? bytes : bytes + [UInt8(ascii: "/")])
    }

    /// What leads from a folder to this path; nil where it is not below it. Both absolute.
    public func below(_ folder: RawPath) -> RawPath? {
        guard folder.holds(self), folder != self else { return nil }
        return RawPath(Array(bytes.dropFirst(folder.bytes.count).drop { $0 == UInt8(ascii: "/") }))
    }

    func withCString<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
        (bytes + [0]).withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { text in
                guard let base = text.baseAddress else { preconditionFailure("a closing zero is always there") }
                return body(base)
            }
        }
    }

    /// Absolute, with links resolved.
    /// - Throws: `source-missing` when nothing is there.
    public func resolved() throws(Failure) -> RawPath {
        guard let resolved = withCString({ realpath($0, nil) }) else {
            // Somebody has named this path: said back whole, it shows the slip.
            if errno == ENOENT || errno == ENOTDIR {
                throw Failure(
                    .sourceMissing, "“\(self)” does not exist: look for a slip in the name, or mount its card.",
                    detail: "realpath \(self)")
            }
            throw FileFault.failure(errno, "realpath", description)
        }
        defer { free(resolved) }
        let bytes = UnsafeRawBufferPointer(start: resolved, count: strlen(resolved))
        return RawPath(Array(bytes))
    }
}

extension Files {
    /// Nil when nothing is there. Links are followed.
    public static func facts(_ path: RawPath) throws(Failure) -> FileFacts? {
        var status = stat()
        if path.withCString({ stat($0, &status) }) != 0 {
            if errno == ENOENT || errno == ENOTDIR || errno == ELOOP { return nil }
            throw FileFault.failure(errno, "stat", path.description)
        }
        return FileFacts(status)
    }

    /// Whether the path leads to this folder or into it. What is not there yet lies where its name would.
    /// - Parameter path: resolved.
    public static func lies(_ path: RawPath, in folder: FileIdentity) throws(Failure) -> Bool {
        var place = path
        while try facts(place)?.identity != folder {
            if place.folder == place || place.folder == "." { return false }
            place = place.folder
        }
        return true
    }

    /// Names in a folder, sorted by their bytes, without `.` and `..`.
    /// - Parameter countMax: more names than these are not read.
    public static func names(in folder: RawPath, countMax: Int = .max) throws(Failure) -> [[UInt8]] {
        guard let stream = folder.withCString({ opendir($0) }) else {
            throw FileFault.failure(errno, "opendir", folder.description)
        }
        defer { closedir(stream) }
        var names: [[UInt8]] = []
        errno = 0
        while names.count < countMax, let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { Array($0.prefix { $0 != 0 }) }
            if name != Array(".".utf8) && name != Array("..".utf8) { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw FileFault.failure(errno, "readdir", folder.description) }
        return names.sorted { $0.lexicographicallyPrecedes($1) }
    }

    /// Moves within one file system. The target must not exist.
    /// - Returns: false when the two are on different file systems; nothing was done then.
    public static func move(_ from: RawPath, to: String) throws(Failure) -> Bool {
        let result = from.withCString { rushes_rename_noreplace($0, to) }
        if result == -EXDEV { return false }
        guard result == 0 else { throw FileFault.failure(-result, "renameat2", from.description) }
        try synchronizeFolder(folder(of: to))
        try synchronizeFolder(from.folder)
        DurableSteps.passed("files.move")
        return true
    }

    /// Whether this user may change the folder that the path lies in: else what is there cannot be removed.
    public static func mayChangeFolder(of path: RawPath) -> Bool {
        path.folder.withCString { access($0, W_OK | X_OK) } == 0
    }

    /// Removes a file; one that is not there is no error.
    public static func remove(_ path: RawPath) throws(Failure) {
        if path.withCString({ unlink($0) }) != 0 {
            guard errno == ENOENT else { throw FileFault.failure(errno, "unlink", path.description) }
            // Whoever removed it may have been killed before that was durable.
            if try facts(path.folder) != nil { try synchronizeFolder(path.folder) }
            return
        }
        try synchronizeFolder(path.folder)
        DurableSteps.passed("files.remove")
    }

    private static func synchronizeFolder(_ path: RawPath) throws(Failure) {
        let name = path.description
        let opened = OpenFile(
            owning: try checked(
                "open for reading", name, path.withCString { open($0, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }), path: name
        )
        // Some network file systems refuse to sync a folder; they promise nothing then, and there is no more to do.
        if fsync(opened.descriptor) != 0, errno != EINVAL, errno != ENOTSUP {
            throw FileFault.failure(errno, "fsync", name)
        }
    }
}

extension OpenFile {
    public static func reading(_ path: RawPath) throws(Failure) -> OpenFile {
        // A pipe or device among the picks must not hold everything up.
        OpenFile(
            owning: try checked(
                "open for reading", path.description,
                path.withCString { open($0, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) }), path: path.description)
    }

    /// Whether somebody has the file open for writing: then the kernel refuses a read lease (fcntl(2), F_SETLEASE), which is let go at once.
    /// - Returns: nil where the file is not ours or its file system knows no leases.
    public func isOpenForWriting() -> Bool? {
        // Whoever opens the file in that moment has us told of it by a signal that would end the process.
        _ = Self.ignoresLeaseSignal
        if fcntl(descriptor, Self.setLease, F_RDLCK) == 0 {
            _ = fcntl(descriptor, Self.setLease, F_UNLCK)
            return false
        }
        return errno == EAGAIN ? true : nil
    }
    /// F_SETLEASE of linux/fcntl.h, which needs _GNU_SOURCE.
    private static let setLease: Int32 = 1024
    private static let ignoresLeaseSignal: Void = { _ = signal(SIGIO, SIG_IGN) }()

    /// Asks the kernel to forget its copy of the file, so that the next read comes from the disk.
    public func dropFromCache() { posix_fadvise(descriptor, 0, 0, Int32(POSIX_FADV_DONTNEED)) }
}
