import Vocabulary
import Glibc

/// Failed system calls on files as sentences.
enum FileFault {
    /// Calls that only look. Any of them can be refused for one file alone; that something cannot be written concerns all.
    private static let reading: Set<String> = [
        "open for reading", "opendir", "readdir", "stat", "fstat", "statvfs", "realpath", "pread",
    ]

    /// - Parameters:
    ///   - code: errno.
    ///   - call: the system call, for operators.
    ///   - path: named by its last component to people, whole to operators.
    ///   - offset: the byte at which a read failed.
    static func failure(_ code: Int32, _ call: String, _ path: String, offset: Int? = nil) -> Failure {
        let name = "“\(path.split(separator: "/").last.map(String.init) ?? path)”"
        let place = offset.map { " at byte \($0)" } ?? ""
        let detail = "\(call) \(path): \(String(cString: strerror(code)))\(place)"
        switch code {
        case ENOSPC, EDQUOT:
            return Failure(
                .diskFull, "The disk is full: free some space and start again; nothing was lost.", detail: detail)
        case EFBIG:
            return Failure(
                .diskFull, "\(name) would be larger than this file system or limit allows: use another folder.",
                detail: detail)
        case EROFS, EACCES, EPERM:
            return reading.contains(call)
                ? Failure(
                    .sourceUnreadable, "\(name) may not be read by this user: change its permissions.", detail: detail)
                : Failure(
                    .readOnly, "\(name) cannot be written: choose another folder or change its permissions.",
                    detail: detail)
        case ENOENT, ENOTDIR:
            return Failure(.sourceMissing, "\(name) does not exist.", detail: detail)
        case EIO:
            return Failure(
                .sourceUnreadable,
                "\(name) could not be read\(place) from its disk or card: clean the contacts or try another reader, and pick it again.",
                detail: detail)
        case EMFILE, ENFILE:
            return Failure(
                .busy, "Too many files are open: raise the limit (ulimit -n) or start again later.", detail: detail)
        default:
            return Failure(.ioError, "The file system reported an error on \(name).", detail: detail)
        }
    }
}

/// The only door for a call that answers -1 and sets errno.
@discardableResult
func checked(_ call: String, _ path: String, _ result: @autoclosure () -> Int32) throws(Failure) -> Int32 {
    // A signal may interrupt any slow call; nothing was done then.
    var answer = result()
    while answer < 0, errno == EINTR { answer = result() }
    guard answer >= 0 else { throw FileFault.failure(errno, call, path) }
    return answer
}
