import Synchronization
public import Vocabulary

/// Sends requests over HTTP(S) or over a Unix socket. No redirect is followed, certificates are verified, connections are kept.
///
/// The work happens on a thread of the client's own, which ends when the last reference to the client goes.
public final class HTTPClient: Sendable {
    private let thread = ConnectionThread()

    public init() {}
    deinit { thread.stop() }

    /// - Returns: the answer, whatever its status.
    /// - Throws: `backend-unreachable` when there was none, `cancelled` when the surrounding Swift task was.
    public func send(_ request: HTTPRequest) async throws(Failure) -> HTTPResponse {
        try await exchange(Transfer(request))
    }

    /// Sends a request whose answer may come slowly and have no end.
    /// - Parameter receive: given the head and each piece of an answer with status 200, on the connection's thread: it must not wait. Returns
    ///   false to hang up, which is no failure. Other answers are collected as always.
    public func stream(
        _ request: HTTPRequest, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool
    ) async throws(Failure) -> HTTPResponse {
        try await exchange(Transfer(request, receive: receive))
    }

    private func exchange(_ transfer: Transfer) async throws(Failure) -> HTTPResponse {
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                transfer.continuation = continuation
                thread.add(transfer)
            }
        } onCancel: {
            transfer.isCancelled.store(true, ordering: .relaxed)
            thread.ring()
        }
        return try result.get()
    }
}
