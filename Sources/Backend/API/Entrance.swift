import HTTPServer
import Synchronization
import Vocabulary

/// Stands where the API will be, until the store is there: tells clients to come back, and that the program itself lives.
final class Entrance: HTTPHandler {
    private let api = Mutex<API?>(nil)
    /// Seconds.
    private static let retryAfter = 2

    func open(_ api: API) { self.api.withLock { $0 = api } }

    /// What is planned here is answered here: a body that was to be streamed must not reach the API collected, once that has come.
    func plan(for request: HTTPRequest) -> BodyPlan {
        if let api = api.withLock({ $0 }) { return api.plan(for: request) }
        if Self.isHealth(request) { return .collect(bytesMax: APIBounds.bodyBytesMax) }
        return .refuse(
            Failure(.busy, "The backend waits for its store: it goes on by itself when that is there."),
            headers: [("Retry-After", String(Self.retryAfter))])
    }

    func respond(to request: HTTPRequest, body: ReceivedBody) async -> HTTPResponse {
        if Self.isHealth(request) { return API.alive }
        guard let api = api.withLock({ $0 }) else { preconditionFailure("everything else was refused by its head") }
        return await api.respond(to: request, body: body)
    }

    private static func isHealth(_ request: HTTPRequest) -> Bool {
        if case .success(.health) = Route.parse(method: request.method, path: request.path) { true } else { false }
    }
}
