import Curl
import Digests
import Vocabulary
import XML

/// Requests to one bucket, signed in their headers, repeated while that can help.
struct S3Client: Sendable {
    let settings: S3Settings
    let http: HTTPClient
    let clock: @Sendable () -> Timestamp
    var policy = S3RetryPolicy()

    struct Request: Sendable {
        var method: HTTPRequest.Method
        /// Nil: the bucket itself.
        var key: String?
        var query: [SignatureV4.Parameter] = []
        /// Signed, beside the host.
        var headers: [SignatureV4.Parameter] = []
        var body = HTTPRequest.Body.none
        /// False where a second one is not the same as one.
        var isRepeatable = true
        /// Bytes of the answer's body.
        var answerBytesMax = 4 << 20
        /// Seconds in which at least something has to come: a store may accept a request and then hang.
        var silenceMax = 20
    }

    /// - Returns: the answer, whatever it says, of the first attempt that did not meet a fault of the store's or the network's own; or the last.
    /// - Throws: when there was no answer.
    func send(_ request: Request) async throws(Failure) -> S3Answer {
        try await repeating(attemptMax: request.isRepeatable ? nil : 1) { () async throws(Failure) in
            try await exchange(request)
        }
    }

    /// - Parameter attemptMax: nil: as many as usual.
    func repeating(attemptMax: Int? = nil, _ body: () async throws(Failure) -> S3Answer) async throws(Failure)
        -> S3Answer
    {
        let attemptMax = attemptMax ?? policy.attemptMax
        var attempt = 1
        while true {
            let result: Result<S3Answer, Failure>
            do throws(Failure) { result = .success(try await body()) } catch { result = .failure(error) }
            guard attempt < attemptMax, !Task.isCancelled, policy.isWorthRepeating(result) else {
                return try result.get()
            }
            var random = SystemRandomNumberGenerator()
            try? await Task.sleep(for: .seconds(policy.delay(after: attempt, using: &random)))
            attempt += 1
        }
    }

    private func exchange(_ request: Request) async throws(Failure) -> S3Answer {
        let now = clock()
        let path = Self.path(settings.bucket, request.key)
        var headers = [SignatureV4.Parameter("Host", settings.host)] + request.headers
        // What is streamed from a file carries its Content-MD5 among the signed headers instead.
        var hash = SignatureV4.unsignedPayload
        switch request.body {
        case .none: hash = Digest.sha256([]).rawValue
        case .bytes(let bytes): hash = Digest.sha256(bytes).rawValue
        case .file: break
        }
        headers += [
            SignatureV4.Parameter("x-amz-content-sha256", hash), SignatureV4.Parameter("x-amz-date", now.basicISO8601),
        ]
        let authorization = signature.authorization(
            SignatureV4.Request(
                method: request.method.rawValue, path: path, query: request.query, headers: headers, payloadHash: hash),
            at: now)
        var limits = HTTPLimits()
        limits.connectSeconds = 10
        limits.slowSeconds = request.silenceMax
        limits.slowBytesPerSecond = 1
        limits.responseBytesMax = request.answerBytesMax
        var message = HTTPRequest(
            request.method, url(path, SignatureV4.canonicalQuery(request.query)),
            headers: ["Authorization": authorization],
            body: request.body, limits: limits)
        for header in headers where header.name != "Host" { message.headers[header.name] = header.value }
        return try await exchange(message, sentAt: now)
    }

    /// As it is; what it needs for the store to take it stands in its URL or its headers.
    func exchange(_ message: HTTPRequest, sentAt: Timestamp? = nil) async throws(Failure) -> S3Answer {
        do throws(Failure) {
            return S3Answer(try await http.send(message), sentAt: sentAt ?? clock())
        } catch {
            guard error.code == .backendUnreachable else { throw error }
            throw S3Fault.unreachable(error)
        }
    }

    /// A URL that lets whoever has it do this one thing.
    /// - Parameter headers: that have to be sent as they are here.
    func presigned(
        _ method: HTTPRequest.Method, _ key: String, query: [SignatureV4.Parameter] = [],
        headers: [SignatureV4.Parameter] = [], expiresIn seconds: Double
    ) -> String {
        let path = Self.path(settings.bucket, key)
        let request = SignatureV4.Request(
            method: method.rawValue, path: path, query: query,
            headers: [SignatureV4.Parameter("Host", settings.host)] + headers,
            payloadHash: SignatureV4.unsignedPayload)
        return url(
            path,
            signature.presignedQuery(
                request, at: clock(), expiresIn: min(max(1, Int(seconds)), Self.presignedSecondsMax)))
    }
    /// A week (S3's documentation of `X-Amz-Expires`).
    private static let presignedSecondsMax = 604_800

    private var signature: SignatureV4 {
        SignatureV4(accessKey: settings.accessKey, secretKey: settings.secretKey, region: settings.region)
    }
    private static func path(_ bucket: String, _ key: String?) -> String { "/\(bucket)" + (key.map { "/\($0)" } ?? "") }
    private func url(_ path: String, _ query: String) -> String {
        settings.endpoint + SignatureV4.encoded(path, keeping: [UInt8(ascii: "/")]) + (query.isEmpty ? "" : "?\(query)")
    }
}

/// What a store answered.
struct S3Answer: Sendable {
    let response: HTTPResponse
    /// What went wrong in the store's words: `NoSuchUpload`; from the status where it said nothing. Nil when nothing did.
    let code: String?
    private let sentAt: Timestamp

    init(_ response: HTTPResponse, sentAt: Timestamp) {
        self.response = response
        self.sentAt = sentAt
        // Swift calls answers without a body HTML too.
        let isForeign =
            !response.body.isEmpty && response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") ?? false
        // An error may come with status 200, after white space that kept the connection alive.
        let error = response.body.isEmpty ? nil : try? XMLDocument.parse(response.body)
        if isForeign {
            code = Self.foreign
        } else if error?.name == "Error" {
            code = error?.text("Code") ?? "Unknown"
        } else {
            code = (200..<300).contains(response.status) ? nil : "HTTP \(response.status)"
        }
    }

    /// Something between here and the store has answered in its place: stores never speak HTML.
    static let foreign = "HTML"

    /// The session or object is not there, in the store's own words. Ceph says NoSuchKey of a session.
    var isGone: Bool { code == "NoSuchUpload" || code == "NoSuchKey" }
    /// Not found, and nothing says who or what was not.
    var isNaked404: Bool { code == "HTTP 404" }

    /// - Throws: what the error means, for who asked.
    @discardableResult
    func expectSuccess() throws(Failure) -> HTTPResponse {
        guard let code else { return response }
        throw S3Fault.failure(code, response, sentAt: sentAt)
    }

    func document(_ name: String) throws(Failure) -> XMLElement {
        let root = try XMLDocument.parse(try expectSuccess().body)
        guard root.name == name else {
            throw Failure(
                .backendError, "The store's answer cannot be understood.", detail: "\(root.name) instead of \(name)")
        }
        return root
    }
}

/// Which requests to a store are made again, and when. Pure.
struct S3RetryPolicy: Sendable, Hashable {
    var attemptMax = 4
    /// Seconds; doubles with each attempt.
    var firstDelay = 0.2

    func isWorthRepeating(_ result: Result<S3Answer, Failure>) -> Bool {
        switch result {
        case .failure(let failure): return failure.code == .backendUnreachable
        case .success(let answer):
            guard let code = answer.code else { return false }
            return answer.response.status >= 500 || answer.response.status == 429 || code == S3Answer.foreign
                || ["InternalError", "SlowDown", "ServiceUnavailable", "RequestTimeout", "OperationAborted"].contains(
                    code)
        }
    }

    /// Seconds, with jitter over the upper half.
    func delay(after attempt: Int, using random: inout some RandomNumberGenerator) -> Double {
        let ceiling = firstDelay * Double(1 << min(attempt - 1, 6))
        return Double.random(in: (ceiling / 2)...ceiling, using: &random)
    }
}
