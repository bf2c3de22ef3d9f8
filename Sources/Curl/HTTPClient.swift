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
        let transfer = Transfer(request)
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
