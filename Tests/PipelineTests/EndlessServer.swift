import HTTPServer
import Vocabulary

/// A server whose one answer has a beginning and no end.
struct EndlessServer {
    private let server: HTTPServer

    /// - Parameter over: called when the answer has ended.
    init(socket: String, over: @escaping @Sendable () -> Void) throws(Failure) {
        let body = BodyStream()
        body.whenEnded(over)
        server = try HTTPServer.start(.unix(path: socket), handler: Handler(body: body))
    }
    func stop() async { await server.stop() }

    private struct Handler: HTTPHandler {
        let body: BodyStream
        func plan(for request: HTTPRequest) -> BodyPlan { .collect(bytesMax: 0) }
        func respond(to request: HTTPRequest, body received: ReceivedBody) async -> HTTPResponse {
            Task { [body] in _ = await body.write(Array("beginning".utf8)) }
            return HTTPResponse(status: 200, body: .stream(body))
        }
    }
}
