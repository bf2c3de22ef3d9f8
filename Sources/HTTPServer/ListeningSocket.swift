internal import CMicrohttpd
import Glibc
import Vocabulary

/// Where a server listens.
public enum ListenAddress: Sendable, Hashable, CustomStringConvertible {
    case unix(path: String)
    /// Port 0: the system chooses one.
    case tcp(host: String, port: Int)

    /// `sun_path` has 108 bytes with its closing zero (unix(7)).
    public static let unixPathBytesMax = 107

    /// `unix:PATH`, or `ADDR:PORT` where an IPv6 address stands in brackets.
    public init?(_ text: String) {
        if text.hasPrefix("unix:") {
            self = .unix(path: String(text.dropFirst(5)))
            return
        }
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port), colon != text.startIndex
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        self = .tcp(host: String(host), port: port)
    }

    public var description: String {
        switch self {
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        }
    }
}

/// A socket that listens already, so that the server library has no say in where.
final class ListeningSocket {
    private(set) var descriptor: Int32
    /// With the port that the system chose.
    let address: ListenAddress
    private let inode: UInt64?
    private static let backlog: Int32 = 128

    private init(descriptor: Int32, address: ListenAddress, inode: UInt64? = nil) {
        self.descriptor = descriptor
        self.address = address
        self.inode = inode
    }

    static func open(_ address: ListenAddress) throws(Failure) -> ListeningSocket {
        switch address {
        case .unix(let path): try openUnix(path)
        case .tcp(let host, let port): try openTCP(host, port)
        }
    }

    // The socket's file is no durable state: after a power cut nobody listens, and the next server replaces it.

    /// Closes the socket and removes its file, unless another server has put its own there meanwhile.
    func close() {
        if descriptor >= 0 { Glibc.close(descriptor) }
        descriptor = -1
        removeFile()
    }

    func removeFile() {
        guard case .unix(let path) = address, let inode else { return }
        var status = stat()
        if stat(path, &status) == 0, UInt64(status.st_ino) == inode { unlink(path) }
    }

    // MARK: Unix

    private static func openUnix(_ path: String) throws(Failure) -> ListeningSocket {
        guard path.utf8.count <= ListenAddress.unixPathBytesMax, !path.isEmpty, !path.utf8.contains(0) else {
            throw Failure(
                .socketPathTooLong,
                "The path of the socket has \(path.utf8.count) bytes, 1 to \(ListenAddress.unixPathBytesMax) are possible: name a shorter one with --listen, or a shorter folder with RUSHES_HOME or --data.",
                detail: path)
        }
        try clearStale(path)
        let descriptor = try made(AF_UNIX, path)
        // Linux takes the mode of a socket file from the socket itself at bind: no moment at which others could connect.
        fchmod(descriptor, 0o600)
        var result: Int32 = -1
        withUnixAddress(path) { result = bind(descriptor, $0, $1) }
        guard result == 0, listen(descriptor, backlog) == 0 else { throw closing(descriptor, "bind", path) }
        var status = stat()
        let inode = stat(path, &status) == 0 ? UInt64(status.st_ino) : nil
        return ListeningSocket(descriptor: descriptor, address: .unix(path: path), inode: inode)
    }

    /// A socket file whose server is gone refuses connections; it is in the way of ours.
    private static func clearStale(_ path: String) throws(Failure) {
        var status = stat()
        guard stat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw Failure(
                .conflict, "A file that is no socket stands where the server is to listen: choose another path.",
                remedy: .askUser, detail: path)
        }
        let probe = try made(AF_UNIX, path)
        defer { Glibc.close(probe) }
        var result: Int32 = -1
        withUnixAddress(path) { result = connect(probe, $0, $1) }
        if result == 0 || errno == EAGAIN {
            throw Failure(
                .alreadyRunning, "Another Rushes is serving this folder already: use it, or stop it first.",
                detail: path)
        }
        unlink(path)
    }

    private static func withUnixAddress(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Void) {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
        }
    }

    // MARK: TCP

    private static func openTCP(_ host: String, _ port: Int) throws(Failure) -> ListeningSocket {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        let result = getaddrinfo(host, String(port), &hints, &found)
        guard result == 0, let first = found else {
            throw Failure(
                .usage, "“\(host)” is no address of this machine: give --listen ADDR:PORT.",
                detail: String(cString: gai_strerror(result)))
        }
        defer { freeaddrinfo(found) }
        let descriptor = try made(first.pointee.ai_family, host)
        var one: Int32 = 1
        setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        guard bind(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0, listen(descriptor, backlog) == 0
        else { throw closing(descriptor, "bind", "\(host):\(port)") }
        return ListeningSocket(
            descriptor: descriptor, address: .tcp(host: host, port: try boundPort(descriptor)))
    }

    private static func boundPort(_ descriptor: Int32) throws(Failure) -> Int {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let port: Int? = withUnsafeMutablePointer(to: &storage) { storage in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                guard getsockname(descriptor, address, &length) == 0 else { return nil }
                // The port is at the same place in both families (netinet/in.h).
                return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    Int(UInt16(bigEndian: $0.pointee.sin_port))
                }
            }
        }
        guard let port else { throw closing(descriptor, "getsockname", "") }
        return port
    }

    // MARK: Both

    private static func made(_ family: Int32, _ what: String) throws(Failure) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(family, type, 0)
        guard descriptor >= 0 else { throw failure("socket", what) }
        return descriptor
    }

    private static func closing(_ descriptor: Int32, _ call: String, _ what: String) -> Failure {
        let failure = failure(call, what)
        Glibc.close(descriptor)
        return failure
    }

    private static func failure(_ call: String, _ what: String) -> Failure {
        let code = errno
        let detail = "\(call) \(what): \(String(cString: strerror(code)))"
        switch code {
        case EADDRINUSE:
            return Failure(
                .alreadyRunning, "Something is listening there already: stop it, or choose another address.",
                detail: detail)
        case EACCES, EPERM, EROFS:
            return Failure(.readOnly, "The server may not listen there: choose another address.", detail: detail)
        case ENOENT:
            return Failure(.sourceMissing, "The folder for the socket does not exist.", detail: detail)
        default:
            return Failure(.ioError, "The server cannot listen there.", detail: detail)
        }
    }
}
