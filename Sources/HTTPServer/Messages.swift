public import Vocabulary

/// Who is at the other end.
public enum Peer: Sendable, Hashable {
    /// Over a Unix socket: the user number that the kernel vouches for.
    case local(user: UInt32)
    case remote
}

/// A request without its body.
public struct HTTPRequest: Sendable {
    public let method: String
    /// Percent-decoded, without the query.
    public let path: String
    public let query: [String: String]
    /// By lower-case name.
    public let headers: [String: String]
    public let peer: Peer

    public init(method: String, path: String, query: [String: String], headers: [String: String], peer: Peer) {
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.peer = peer
    }

    /// Nil where the length is not announced (chunked) or the header is no number.
    public var contentLength: Int? { headers["content-length"].flatMap { Int($0) } }
    public var hasBody: Bool { (contentLength ?? 0) > 0 || headers["transfer-encoding"] != nil }
}

/// Where a body is to go, decided when only the head is known.
public enum BodyPlan: Sendable {
    /// Into memory, at most so many bytes; more is 413.
    case collect(bytesMax: Int)
    /// Piece by piece to a sink.
    case stream(any BodySink)
    /// The request is refused; a short body is read and dropped, so that the client gets to see the answer.
    /// - Parameters:
    ///   - status: where it is not the one that the failure's code stands for.
    ///   - headers: that the answer has besides its own.
    case refuse(Failure, status: Int? = nil, headers: [(name: String, value: String)] = [])
}

/// Takes a body piece by piece, on the server's thread: no waiting on anything but the page cache here. A sink that is not ready keeps its client
/// waiting, and nobody else.
public protocol BodySink: AnyObject, Sendable {
    /// After a throw the rest of the body is dropped.
    /// - Returns: bytes taken; the rest comes again when the sink is ready.
    func receive(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int
    /// Asked before each piece.
    var isReady: Bool { get }
    /// Calls back once, when the sink is ready: at once where it is already.
    func whenReady(_ resume: @escaping @Sendable () -> Void)
    /// The connection is lost, or the server stops: the body ends here, and nobody waits for an answer.
    func breakOff()
}

extension BodySink {
    public var isReady: Bool { true }
    public func whenReady(_ resume: @escaping @Sendable () -> Void) { resume() }
    public func breakOff() {}
}

/// A body that has arrived.
public enum ReceivedBody: Sendable {
    case bytes([UInt8])
    case sink(any BodySink)
    /// The sink has thrown this.
    case failed(Failure, any BodySink)
}

public struct HTTPResponse: Sendable {
    public enum Body: Sendable {
        case bytes([UInt8])
        case file(FileBody)
        case stream(BodyStream)
    }
    public var status: Int
    public var headers: [(name: String, value: String)]
    public var body: Body

    public init(status: Int, headers: [(name: String, value: String)] = [], body: Body = .bytes([])) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    public static func json(_ value: some Encodable, status: Int = 200) -> HTTPResponse {
        do throws(Failure) {
            return HTTPResponse(
                status: status, headers: [("Content-Type", "application/json")],
                body: .bytes([UInt8](try JSON.encode(value))))
        } catch { return .problem(error) }
    }

    /// `application/problem+json` (RFC 9457). What operators are told stays out of the answer.
    /// - Parameter retryAfter: seconds.
    public static func problem(_ failure: Failure, status: Int? = nil, retryAfter: Int? = nil) -> HTTPResponse {
        var shown = failure
        if (status ?? failure.code.row?.status ?? 500) >= 500 { shown.detail = nil }
        let problem = Problem(shown, status: status, retryAfter: retryAfter)
        var headers = [(name: "Content-Type", value: "application/problem+json")]
        if problem.status == 401 { headers.append(("WWW-Authenticate", "Bearer")) }
        if let retryAfter { headers.append(("Retry-After", String(retryAfter))) }
        let body = (try? JSON.encode(problem)).map { [UInt8]($0) } ?? []
        return HTTPResponse(status: problem.status, headers: headers, body: .bytes(body))
    }
}

/// A file as an answer: ranges and conditions are worked out by the server.
public struct FileBody: Sendable, Hashable {
    public var path: String
    public var contentType: String
    /// Strong, with its quotation marks.
    public var etag: String

    public init(path: String, contentType: String, etag: String) {
        self.path = path
        self.contentType = contentType
        self.etag = etag
    }
}

/// What answers requests.
public protocol HTTPHandler: Sendable {
    /// Looks at the head, on the server's thread: must not wait.
    func plan(for request: HTTPRequest) -> BodyPlan
    func respond(to request: HTTPRequest, body: ReceivedBody) async -> HTTPResponse
}

/// The server's bounds, each for the whole server unless it says otherwise.
public struct HTTPBounds: Sendable {
    public var threads: Int
    public var connectionsMax: Int
    /// Bytes a connection: the request head has to fit, and a body arrives in pieces of at most so much.
    public var connectionMemory: Int
    /// Seconds without a byte.
    public var idleTimeout: Int
    /// Seconds that requests under way get to end when the server stops.
    public var drainTimeout: Int

    public init(
        threads: Int = 2, connectionsMax: Int = 512, connectionMemory: Int = 64 << 10, idleTimeout: Int = 75,
        drainTimeout: Int = 10
    ) {
        self.threads = threads
        self.connectionsMax = connectionsMax
        self.connectionMemory = connectionMemory
        self.idleTimeout = idleTimeout
        self.drainTimeout = drainTimeout
    }
}
