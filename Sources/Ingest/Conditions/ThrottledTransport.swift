import Curl
import Vocabulary

/// Parts go no faster than a timetable allows; everything else is small and does not wait.
struct ThrottledTransport: UploadTransport {
    let wrapped: any UploadTransport
    let throttle: SendThrottle

    func send(_ request: HTTPRequest) async throws(Failure) -> HTTPResponse {
        var request = request
        if case .file = request.body { request.throttle = throttle }
        return try await wrapped.send(request)
    }

    func stream(_ request: HTTPRequest, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool)
        async throws(Failure) -> HTTPResponse
    { try await wrapped.stream(request, receive: receive) }
}
