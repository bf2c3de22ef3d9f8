internal import CCurl

/// One HTTP request.
public struct HTTPRequest: Sendable {
    public enum Method: String, Sendable {
        case get = "GET", head = "HEAD", put = "PUT", post = "POST", delete = "DELETE"
    }

    public enum Body: Sendable {
        case none
        case bytes([UInt8])
        /// A stretch of a file, streamed: it is never in memory as a whole.
        case file(path: String, offset: Int, length: Int)

        public var length: Int {
            switch self {
            case .none: 0
            case .bytes(let bytes): bytes.count
            case .file(_, _, let length): length
            }
        }
    }

    public var method: Method
    /// Absolute, http or https.
    public var url: String
    /// The request goes over this Unix socket instead of the network; the URL's host is then only a name.
    public var socketPath: String?
    public var headers: HTTPHeaders
    public var body: Body
    public var limits: HTTPLimits
    /// Called with the body's bytes that were handed to the network so far, from the connection's thread, at most
    /// `HTTPLimits.progressStep` bytes apart.
    public var progress: (@Sendable (Int) -> Void)?
    /// Bounds how fast the body goes, together with all others that have the same one.
    public var throttle: SendThrottle?

    public init(
        _ method: Method, _ url: String, socketPath: String? = nil, headers: HTTPHeaders = [:], body: Body = .none,
        limits: HTTPLimits = HTTPLimits(), progress: (@Sendable (Int) -> Void)? = nil
    ) {
        self.method = method
        self.url = url
        self.socketPath = socketPath
        self.headers = headers
        self.body = body
        self.limits = limits
        self.progress = progress
    }
}

/// Bounds on one exchange.
public struct HTTPLimits: Sendable, Hashable {
    /// Seconds until a connection must stand.
    public var connectSeconds = 15
    /// A transfer slower than this for `slowSeconds` is given up.
    public var slowBytesPerSecond = 512
    public var slowSeconds = 60
    /// Seconds without a byte after which an answer that comes piece by piece is given up; it has no lowest speed.
    public var idleSeconds = 60.0
    /// Bytes of a response's body; a longer one is a failure.
    public var responseBytesMax = 4 << 20
    /// Headers of one response; more is a failure.
    public var headerCountMax = 200
    static let progressStep = 64 << 10
    public init() {}
}

/// Header fields; names match in any case.
public struct HTTPHeaders: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    public private(set) var fields: [(name: String, value: String)] = []

    public init(dictionaryLiteral elements: (String, String)...) { fields = elements.map { ($0.0, $0.1) } }

    public subscript(name: String) -> String? {
        get { fields.first { $0.name.lowercased() == name.lowercased() }?.value }
        set {
            fields.removeAll { $0.name.lowercased() == name.lowercased() }
            if let newValue { fields.append((name, newValue)) }
        }
    }
    public mutating func removeAll() { fields.removeAll() }
    public var count: Int { fields.count }

    public static func == (left: Self, right: Self) -> Bool {
        left.fields.elementsEqual(right.fields) { $0.name.lowercased() == $1.name.lowercased() && $0.value == $1.value }
    }
    public func hash(into hasher: inout Hasher) {
        for field in fields { hasher.combine(field.name.lowercased()) }
    }
}

/// What came back, whatever its status.
public struct HTTPResponse: Sendable, Hashable {
    public var status: Int
    public var headers: HTTPHeaders
    public var body: [UInt8]
    public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }
}

extension HTTPResponse {
    /// What time it is where the answer was made, in seconds since 1970.
    public var date: Double? { headers["Date"].flatMap(HTTPDate.seconds) }

    /// How a clock that showed `seconds` since 1970 stands to the one over there, in words: “3 hours behind”. Nil where the answer has no date.
    public func standing(ofClock seconds: Double) -> String? {
        guard let theirs = date else { return nil }
        let minutes = Int(abs(seconds - theirs) / 60)
        let size = minutes >= 120 ? "\(minutes / 60) hours" : "\(minutes) minutes"
        return "\(size) \(seconds < theirs ? "behind" : "ahead of")"
    }
}

public enum HTTPDate {
    /// - Parameter text: a date in UTC as HTTP writes it, or `20261130 08:22:00`.
    /// - Returns: seconds since 1970.
    public static func seconds(_ text: String) -> Double? {
        let seconds = curl_getdate(text, nil)
        return seconds < 0 ? nil : Double(seconds)
    }
}
