public import Curl
public import Vocabulary

/// The way to the backend and its store. Two ship: libcurl, and a lossy one for tests that wraps another.
public protocol UploadTransport: Sendable {
    /// - Returns: the answer, whatever its status.
    /// - Throws: `backend-unreachable` when there was none: whether the request had its effect is then unknown.
    func send(_ request: HTTPRequest) async throws(Failure) -> HTTPResponse
    /// For an answer that has no end. - Parameter receive: as `HTTPClient.stream` says.
    func stream(_ request: HTTPRequest, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool)
        async throws(Failure) -> HTTPResponse
}

extension HTTPClient: UploadTransport {}
