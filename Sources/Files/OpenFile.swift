public import Vocabulary
import Glibc

/// An open descriptor, closed exactly once, when the last owner lets go.
public final class OpenFile: Sendable {
    public let descriptor: Int32
    public let path: String

    public init(owning descriptor: Int32, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    deinit { close(descriptor) }

    public static func reading(_ path: String) throws(Failure) -> OpenFile {
        OpenFile(owning: try checked("open for reading", path, open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY)), path: path)
    }

    /// Creates the file, which must not exist, for reading and writing by this user only.
    public static func creating(_ path: String) throws(Failure) -> OpenFile {
        OpenFile(
            owning: try checked("create", path, open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)),
            path: path)
    }

    /// Cuts off what lies behind so many bytes.
    public func truncate(to bytes: Int) throws(Failure) {
        try checked("ftruncate", path, ftruncate(descriptor, off_t(bytes)))
    }

    public func facts() throws(Failure) -> FileFacts {
        var status = stat()
        try checked("fstat", path, fstat(descriptor, &status))
        return FileFacts(status)
    }

    /// Fills the buffer from `offset` on as far as the file goes.
    /// - Returns: bytes read; less than the buffer's size only at the end of the file.
    public func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(Failure) -> Int {
        var done = 0
        while done < buffer.count {
            let got = pread(descriptor, buffer.baseAddress?.advanced(by: done), buffer.count - done, offset + done)
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else {
                throw FileFault.failure(errno, "pread", path, offset: offset + done)
            }
            if got == 0 { break }
            done += got
        }
        return done
    }

    public func read(count: Int, at offset: Int) throws(Failure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var got = 0
        do {
            got = try bytes.withUnsafeMutableBytes { try read(into: $0, at: offset) }
        } catch let failure as Failure { throw failure } catch {
            throw Failure(.internalError, "A read ended in an unknown way.", detail: "\(error)")
        }
        bytes.removeSubrange(got...)
        return bytes
    }

    /// Writes all of the bytes at `offset`.
    public func write(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let put = pwrite(descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done, offset + done)
            if put < 0, errno == EINTR { continue }
            guard put > 0 else { throw FileFault.failure(put == 0 ? ENOSPC : errno, "pwrite", path) }
            done += put
        }
    }

    public func synchronize() throws(Failure) { try checked("fsync", path, fsync(descriptor)) }
}

/// What the file system says of a file.
public struct FileFacts: Sendable, Hashable {
    public enum Kind: Sendable { case regular, folder, other }
    public let kind: Kind
    /// Bytes.
    public let size: Int
    /// Nanoseconds since 1970.
    public let modified: Int64
    public let device: UInt64
    public let inode: UInt64
    public var identity: FileIdentity { FileIdentity(device: device, inode: inode) }

    /// Of `modified`.
    private static let secondsMax = Int64.max / 1_000_000_000 - 1

    init(_ status: stat) {
        kind =
            switch status.st_mode & S_IFMT {
            case S_IFREG: .regular
            case S_IFDIR: .folder
            default: .other
            }
        size = Int(status.st_size)
        // File systems keep times of 584 years and more; what does not fit is as good as the nearest that does.
        let seconds = min(max(Int64(status.st_mtim.tv_sec), -Self.secondsMax), Self.secondsMax)
        modified = seconds * 1_000_000_000 + Int64(status.st_mtim.tv_nsec)
        device = UInt64(status.st_dev)
        inode = UInt64(status.st_ino)
    }
}

/// A file or folder itself, whatever path, link or mount leads to it.
public struct FileIdentity: Sendable, Hashable {
    let device, inode: UInt64
}
