import HTTPServer
import Synchronization
import Vocabulary

/// Stands where the API will be, until the store is there: tells clients to come back, and that the program itself lives.
final class Entrance: HTTPHandler {
    private let api = Mutex<API?>(nil)
    /// Seconds.
    private static let retryAfter = 2

    func open(_ api: API) { self.api.withLock { $0 = api } }

    func plan(for request: HTTPRequest) -> BodyPlan {
        api.withLock { $0 }?.plan(for: request) ?? .collect(bytesMax: APIBounds.bodyBytesMax)
    }

    func respond(to request: HTTPRequest, body: ReceivedBody) async -> HTTPResponse {
        if let api = api.withLock({ $0 }) { return await api.respond(to: request, body: body) }
        if case .success(.health) = Route.parse(method: request.method, path: request.path) { return API.alive }
        return .problem(
            Failure(.busy, "The backend waits for its store: it goes on by itself when that is there."),
            retryAfter: Self.retryAfter)
    }
}
