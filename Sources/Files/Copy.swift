internal import CFiles
import Digests
import Glibc
public import Vocabulary

extension Files {
    /// Bytes read and hashed at a time.
    static let copyBufferBytes = 1 << 20

    public struct Copied: Sendable, Hashable {
        public let bytes: Int
        public let hashes: FileHashes
        public var sha256: SHA256Digest { hashes.sha256 }
        /// The extents are shared: no byte was written.
        public let isReflink: Bool
    }

    /// Copies `source` into the draft with its hashes in the same pass; where the file system can share extents, nothing is written and the
    /// pass only hashes.
    /// - Parameter progress: bytes so far; throws to stop.
    public static func copy(
        _ source: OpenFile, into draft: Draft, progress: (Int) throws(Failure) -> Void = { _ in }
    ) throws(Failure) -> Copied {
        let isReflink = rushes_reflink(draft.file.descriptor, source.descriptor) == 0
        if !isReflink { try draft.reserve(try source.facts().size) }
        var total = 0
        let running = RunningHashes()
        try pass(over: source, progress: progress) { bytes, offset throws(Failure) in
            running.update(bytes)
            total = offset + bytes.count
            if !isReflink { try draft.file.write(bytes, at: offset) }
        }
        return Copied(bytes: total, hashes: running.finalize(), isReflink: isReflink)
    }

    /// The SHA-256 of a file as it stands.
    public static func sha256(
        of file: OpenFile, progress: (Int) throws(Failure) -> Void = { _ in }
    ) throws(Failure) -> SHA256Digest {
        let digest = Digest(.sha256)
        try pass(over: file, progress: progress) { bytes, _ throws(Failure) in digest.update(bytes) }
        return digest.finalizeSHA256()
    }

    /// Both hashes of a file as it stands, in one pass.
    public static func hashes(
        of file: OpenFile, progress: (Int) throws(Failure) -> Void = { _ in }
    ) throws(Failure) -> FileHashes {
        let running = RunningHashes()
        try pass(over: file, progress: progress) { bytes, _ throws(Failure) in running.update(bytes) }
        return running.finalize()
    }

    /// Reads a file from its beginning.
    /// - Parameters:
    ///   - limit: bytes; what follows is left out.
    ///   - progress: bytes so far; throws to stop.
    ///   - body: takes a piece and its offset.
    public static func pass(
        over file: OpenFile, limit: Int = .max, progress: (Int) throws(Failure) -> Void = { _ in },
        each body: (UnsafeRawBufferPointer, Int) throws(Failure) -> Void
    ) throws(Failure) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: copyBufferBytes, alignment: 4096)
        defer { buffer.deallocate() }
        posix_fadvise(file.descriptor, 0, 0, Int32(POSIX_FADV_SEQUENTIAL))
        var offset = 0
        while true {
            let wanted = UnsafeMutableRawBufferPointer(rebasing: buffer.prefix(limit - offset))
            let got = try file.read(into: wanted, at: offset)
            guard got > 0 else { break }
            let bytes = UnsafeRawBufferPointer(rebasing: buffer[..<got])
            try body(bytes, offset)
            offset += got
            try progress(offset)
        }
    }
}

private struct RunningHashes {
    private let sha256 = Digest(.sha256)
    private let xxh128 = XXH128()

    func update(_ bytes: UnsafeRawBufferPointer) {
        sha256.update(bytes)
        xxh128.update(bytes)
    }
    func finalize() -> FileHashes { FileHashes(sha256: sha256.finalizeSHA256(), xxh128: xxh128.finalize()) }
}

/// What one pass over a file's bytes tells.
public struct FileHashes: Sendable, Hashable {
    public let sha256: SHA256Digest
    /// For hash lists that others read.
    public let xxh128: XXH128Digest
}

/// A lock on a folder or file that dies with its holder (flock). What stands in the file is for people, and need not survive a power cut.
public final class FileLock: Sendable {
    private let file: OpenFile
    private init(file: OpenFile) { self.file = file }

    /// - Parameter words: for whoever finds it held: one line.
    /// - Returns: nil when another process holds it. The holder's process number stands in the file.
    public static func acquire(_ path: String, saying words: String = "") throws(Failure) -> FileLock? {
        let file = OpenFile(
            owning: try checked("create", path, open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)), path: path)
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else {
            if errno == EWOULDBLOCK { return nil }
            throw FileFault.failure(errno, "flock", path)
        }
        ftruncate(file.descriptor, 0)
        try Files.bytesOf(Array("\(getpid())\n\(words)\n".utf8)) { bytes throws(Failure) in try file.write(bytes, at: 0)
        }
        return FileLock(file: file)
    }

    /// Not where nobody has ever held it.
    public static func isHeld(_ path: String) throws(Failure) -> Bool {
        guard try Files.facts(path) != nil else { return false }
        let file = try OpenFile.reading(path)
        if flock(file.descriptor, LOCK_SH | LOCK_NB) == 0 { return false }
        guard errno == EWOULDBLOCK else { throw FileFault.failure(errno, "flock", path) }
        return true
    }

    /// Who holds it, as far as the file says.
    public static func holder(_ path: String) -> Int? { lines(path).first.flatMap { Int($0) } }

    /// What the holder says of itself; nil where it says nothing, or not yet.
    public static func words(_ path: String) -> String? {
        let lines = lines(path)
        return lines.count > 2 && !lines[1].isEmpty ? lines[1] : nil
    }

    private static func lines(_ path: String) -> [String] {
        guard let file = try? OpenFile.reading(path), let bytes = try? file.read(count: bytesMax, at: 0) else {
            return []
        }
        return bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map {
            String(decoding: $0, as: UTF8.self)
        }
    }
    private static let bytesMax = 4096
}
