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
        let session: UploadSession = try await call(.post, "/v1/uploads/\(id)/complete", request)
        guard session.uploadID == id, session.state == .complete else { throw Self.odd("\(session)") }
    }
    func attach(_ id: ItemID, _ request: AttachRequest) async throws(Failure) -> ItemDocument {
        let document: ItemDocument = try await call(.put, "/v1/items/\(id)", request)
        guard document.itemID == id else { throw Self.odd("\(document.itemID)") }
        return document
    }
    func item(_ id: ItemID) async throws(Failure) -> ItemDocument { try await call(.get, "/v1/items/\(id)") }

    /// A page of a shoot's items, without those that were deleted.
    func items(of shoot: String, after cursor: String?) async throws(Failure) -> ItemPage {
        let from = cursor.map { "&cursor=\(Self.escaped($0))" } ?? ""
        return try await call(.get, "/v1/items?shoot=\(Self.escaped(shoot))&limit=\(Self.pageSize)\(from)")
    }
    /// Items: as many as are surely less than an answer may have bytes.
    private static let pageSize = 200
    /// All but what means nothing in a query (RFC 3986, 2.3).
    private static func escaped(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? text
    }
    private static let unreserved = CharacterSet(
        charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

    /// - Returns: false when the backend does not know it (any more).
    @discardableResult
    func remove(_ id: ItemID) async throws(Failure) -> Bool { try await delete("/v1/items/\(id)") }
    /// - Returns: false when the backend does not know it (any more).
    func abort(_ id: UploadID) async throws(Failure) -> Bool { try await delete("/v1/uploads/\(id)") }
    private func delete(_ path: String) async throws(Failure) -> Bool {
        do throws(Failure) {
            let answer = try await answer(.delete, path, nil)
            guard answer.status == 204 else { throw Self.odd("HTTP \(answer.status)") }
        } catch {
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
    func isReady() async -> Bool { (try? await answer(.get, "/readyz", nil))?.body == Array("ready\n".utf8) }

    /// Sends one part to its URL, without the token.
    /// - Parameter wasRefused: as `AnswerPolicy.part` says.
    /// - Returns: the store's name for the part; a store that shows none is no error.
    func put(
        _ part: PartRequest, of path: String, offset: Int, to url: String, wasRefused: Bool,
        progress: @escaping @Sendable (Int) -> Void
    ) async throws(Failure) -> String? {
        var request = HTTPRequest(
            .put, url, headers: ["Content-MD5": part.contentMD5],
            body: .file(path: path, offset: offset, length: part.length), progress: progress)
        let isElsewhere = url.hasPrefix("http://") || url.hasPrefix("https://")
        if !isElsewhere { resolve(&request, path: url) }
        let response: HTTPResponse
        do throws(Failure) { response = try await transport.send(request) } catch {
            throw isElsewhere ? AnswerPolicy.unreachable(error) : error
        }
        return try AnswerPolicy.part(response, url: url, wasRefused: wasRefused)
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
            throw Self.odd(error.detail)
        }
    }
    private static func odd(_ detail: String?) -> Failure {
        Failure(
            .backendError, "The backend's answer cannot be understood: is it a Rushes of another version?",
            detail: detail)
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
        try AnswerPolicy.expectSuccess(response)
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
}
