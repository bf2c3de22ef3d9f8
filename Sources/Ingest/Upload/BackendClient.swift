import Curl
import Foundation
import Vocabulary

/// Where the backend is.
public enum ServerAddress: Sendable, Hashable {
    /// A backend on this machine, over its Unix socket; the peer's credentials are enough.
    case socket(path: String)
    /// `https://host[:port]`, with a bearer token.
    case remote(url: String)
}

/// The wire API as functions. One request each; who calls decides about repeating.
struct BackendClient: Sendable {
    let address: ServerAddress
    /// Asked anew for each request, so that a renewed token counts at once. Nil where none is needed.
    let token: @Sendable () throws(Failure) -> String?
    let transport: any UploadTransport

    func open(_ request: OpenUploadRequest) async throws(Failure) -> UploadSession {
        try await call(.post, "/v1/uploads", request, headers: ["Idempotency-Key": request.uploadID.rawValue])
    }
    func reopen(_ id: UploadID, generation: Int) async throws(Failure) -> UploadSession {
        try await call(.post, "/v1/uploads/\(id)/reopen", ReopenUploadRequest(generation: generation))
    }
    func partURLs(_ id: UploadID, _ request: PartURLsRequest) async throws(Failure) -> PartURLs {
        try await call(.post, "/v1/uploads/\(id)/part-urls", request)
    }
    func parts(_ id: UploadID) async throws(Failure) -> StoredParts { try await call(.get, "/v1/uploads/\(id)/parts") }
    func complete(_ id: UploadID, _ request: CompleteUploadRequest) async throws(Failure) {
        _ = try await answer(.post, "/v1/uploads/\(id)/complete", try JSON.encode(request))
    }
    func attach(_ id: ItemID, _ request: AttachRequest) async throws(Failure) {
        _ = try await answer(.put, "/v1/items/\(id)", try JSON.encode(request))
    }
    func item(_ id: ItemID) async throws(Failure) -> ItemDocument { try await call(.get, "/v1/items/\(id)") }

    /// - Returns: false when the backend does not know it (any more).
    @discardableResult
    func remove(_ id: ItemID) async throws(Failure) -> Bool { try await delete("/v1/items/\(id)") }
    /// - Returns: false when the backend does not know it (any more).
    func abort(_ id: UploadID) async throws(Failure) -> Bool { try await delete("/v1/uploads/\(id)") }
    private func delete(_ path: String) async throws(Failure) -> Bool {
        do throws(Failure) { _ = try await answer(.delete, path, nil) } catch {
            guard error.code == .notFound || error.code == .gone else { throw error }
            return false
        }
        return true
    }

    /// Events of all this owner's items, until the backend or `receive` ends it.
    /// - Parameter last: the id of the last thing that was heard.
    /// - Returns: the answer, whatever its status.
    func events(
        after last: String?, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool
    ) async throws(Failure) -> HTTPResponse {
        var request = HTTPRequest(.get, "", headers: ["Accept": "text/event-stream", "Cache-Control": "no-store"])
        resolve(&request, path: "/v1/events")
        if let last { request.headers["Last-Event-ID"] = last }
        if let token = try token() { request.headers["Authorization"] = "Bearer \(token)" }
        // Two heartbeats and some patience.
        request.limits.idleSeconds = 2 * ItemEvent.heartbeatInterval + 10
        return try await transport.stream(request, receive: receive)
    }

    /// Whether the backend says that it is well.
    func isReady() async -> Bool { (try? await answer(.get, "/readyz", nil)) != nil }

    /// Sends one part to its URL, without the token.
    /// - Returns: the store's name for the part; a store that shows none is no error.
    func put(
        _ part: PartRequest, of path: String, offset: Int, to url: String, progress: @escaping @Sendable (Int) -> Void
    ) async throws(Failure) -> String? {
        var request = HTTPRequest(
            .put, url, headers: ["Content-MD5": part.contentMD5],
            body: .file(path: path, offset: offset, length: part.length), progress: progress)
        if !url.hasPrefix("http://") && !url.hasPrefix("https://") { resolve(&request, path: url) }
        let response = try await transport.send(request)
        guard (200..<300).contains(response.status), !Self.isErrorDocument(response) else {
            throw Self.failure(response, isPart: true)
        }
        return response.headers["ETag"]
    }

    // MARK: One exchange

    private func call<Answer: Decodable>(
        _ method: HTTPRequest.Method, _ path: String, _ body: some Encodable, headers: HTTPHeaders = [:]
    ) async throws(Failure) -> Answer {
        try decoded(try await answer(method, path, try JSON.encode(body), headers: headers))
    }
    private func call<Answer: Decodable>(_ method: HTTPRequest.Method, _ path: String) async throws(Failure) -> Answer {
        try decoded(try await answer(method, path, nil))
    }
    private func decoded<Answer: Decodable>(_ response: HTTPResponse) throws(Failure) -> Answer {
        do throws(Failure) { return try JSON.decode(Answer.self, from: Data(response.body)) } catch {
            throw Failure(
                .backendError, "The backend's answer cannot be understood: is it a Rushes of another version?",
                detail: error.detail)
        }
    }

    private func answer(
        _ method: HTTPRequest.Method, _ path: String, _ body: Data?, headers: HTTPHeaders = [:]
    ) async throws(Failure) -> HTTPResponse {
        var request = HTTPRequest(method, "", headers: headers, body: body.map { .bytes(Array($0)) } ?? .none)
        resolve(&request, path: path)
        request.headers["Accept"] = "application/json"
        if body != nil { request.headers["Content-Type"] = "application/json" }
        if let token = try token() { request.headers["Authorization"] = "Bearer \(token)" }
        let response = try await transport.send(request)
        guard (200..<300).contains(response.status) else { throw Self.failure(response, isPart: false) }
        return response
    }

    private func resolve(_ request: inout HTTPRequest, path: String) {
        switch address {
        case .socket(let socket):
            request.url = "http://localhost" + path
            request.socketPath = socket
        case .remote(let url):
            request.url = (url.hasSuffix("/") ? String(url.dropLast()) : url) + path
        }
    }

    // MARK: Errors

    /// S3 answers some failures with 200 and an error document.
    private static func isErrorDocument(_ response: HTTPResponse) -> Bool {
        String(decoding: response.body.prefix(512), as: UTF8.self).contains("<Error>")
    }

    /// Seconds. Dates (RFC 9110, section 10.2.3) are not read: they would make the wait a matter of whose clock is right.
    static func retryAfter(_ response: HTTPResponse) -> Double? {
        response.headers["Retry-After"].flatMap { UInt32($0) }.map(Double.init)
    }

    static func failure(_ response: HTTPResponse, isPart: Bool) -> Failure {
        var failure = failureWithoutTime(response, isPart: isPart)
        failure.retryAfter = retryAfter(response)
        return failure
    }

    private static func failureWithoutTime(_ response: HTTPResponse, isPart: Bool) -> Failure {
        let words = String(decoding: response.body.prefix(512), as: UTF8.self)
        let detail = "HTTP \(response.status) \(words)"
        if let problem = try? JSON.decode(Problem.self, from: Data(response.body)) {
            return Failure(problem.code, problem.title, detail: problem.detail ?? "HTTP \(response.status)")
        }
        // A store, or a proxy on the way, has words of its own.
        switch response.status {
        case 400 where words.contains("BadDigest") || words.contains("InvalidDigest"):
            return Failure(.badDigest, "A part arrived damaged.", detail: detail)
        case 401:
            return Failure(.unauthorized, "The backend does not accept the token: set a valid one.", detail: detail)
        case 403 where isPart:
            return Failure(.urlExpired, "The address for a part is not valid any more.", detail: detail)
        case 403:
            return Failure(.unauthorized, "The backend does not allow this: check the token.", detail: detail)
        case 404: return Failure(.notFound, "The backend does not know this.", detail: detail)
        case 409: return Failure(.conflict, "The backend has something else under this name.", detail: detail)
        case 410: return Failure(.gone, "The backend does not have this any more.", detail: detail)
        case 413: return Failure(.bodyTooLarge, "The backend does not take so much at once.", detail: detail)
        case 429, 503: return Failure(.busy, "The backend is busy.", detail: detail)
        case 507: return Failure(.quotaExceeded, "The quota at the backend is used up.", detail: detail)
        case 400..<500: return Failure(.badRequest, "The backend refused the request.", detail: detail)
        default: return Failure(.backendError, "The backend reported a fault of its own.", detail: detail)
        }
    }
}
