internal import CCurl
import Glibc
import Synchronization
import Vocabulary

/// The one thread that drives every transfer of a client. libcurl's multi handle belongs to it; others only leave transfers in the inbox and
/// ring.
final class ConnectionThread: Sendable {
    private struct Inbox {
        var transfers: [Transfer] = []
        var isStopping = false
    }
    private let inbox = Mutex(Inbox())
    // Touched by the thread alone, but for curl_multi_wakeup, which libcurl allows from anywhere.
    private nonisolated(unsafe) let multi: UnsafeMutableRawPointer
    /// Milliseconds that the thread sleeps at most without being rung.
    private static let pollMax: Int32 = 1000
    /// Milliseconds between two looks whether a body that is held back may go on.
    private static let pausedPoll: Int32 = 20
    /// Open connections kept for the next request: as many as a box has items and parts on their way.
    private static let keptConnectionsMax = 32

    private static let library: Void = { curl_global_init(Int(CURL_GLOBAL_ALL)) }()

    init() {
        _ = Self.library
        guard let multi = curl_multi_init() else { preconditionFailure("libcurl has no memory for one handle") }
        self.multi = multi
        _ = rushes_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, Self.keptConnectionsMax)
        startThread { [self] in run() }
    }

    func add(_ transfer: Transfer) {
        let isTaken = inbox.withLock { inbox in
            if !inbox.isStopping { inbox.transfers.append(transfer) }
            return !inbox.isStopping
        }
        if isTaken { ring() } else { transfer.end(.failure(Failure(.cancelled, "Stopped."))) }
    }

    func ring() { curl_multi_wakeup(multi) }

    func stop() {
        inbox.withLock { $0.isStopping = true }
        ring()
    }

    private func run() {
        var active: [UnsafeMutableRawPointer: Transfer] = [:]
        while true {
            let (arrived, isStopping) = inbox.withLock { inbox in
                defer { inbox.transfers = [] }
                return (inbox.transfers, inbox.isStopping)
            }
            for transfer in arrived { start(transfer, &active) }
            for (easy, transfer) in active where isStopping || transfer.isCancelled.load(ordering: .relaxed) {
                transfer.isCancelled.store(true, ordering: .relaxed)
                finish(easy, CURLE_ABORTED_BY_CALLBACK, &active)
            }
            for (easy, transfer) in active where transfer.checkIdle() {
                finish(easy, CURLE_OPERATION_TIMEDOUT, &active)
            }
            var running: Int32 = 0
            curl_multi_perform(multi, &running)
            var left: Int32 = 0
            while let message = curl_multi_info_read(multi, &left) {
                guard message.pointee.msg == CURLMSG_DONE, let easy = message.pointee.easy_handle else { continue }
                finish(easy, rushes_message_result(message), &active)
            }
            if isStopping && active.isEmpty { break }
            let paused = active.values.filter(\.isPaused)
            curl_multi_poll(multi, nil, 0, paused.isEmpty ? Self.pollMax : Self.pausedPoll, nil)
            // In another order each time, so that none of them always comes first.
            for transfer in paused.shuffled() { transfer.goOn() }
        }
        // The handle itself stays until the last owner is gone: someone may still ring.
    }

    private func start(_ transfer: Transfer, _ active: inout [UnsafeMutableRawPointer: Transfer]) {
        if transfer.isCancelled.load(ordering: .relaxed) {
            return transfer.end(.failure(Failure(.cancelled, "Stopped.")))
        }
        do throws(Failure) {
            let easy = try transfer.prepare()
            guard curl_multi_add_handle(multi, easy) == CURLM_OK else {
                throw Failure(.internalError, "A transfer could not be started.", detail: "curl_multi_add_handle")
            }
            active[easy] = transfer
        } catch { transfer.end(.failure(error)) }
    }

    private func finish(
        _ easy: UnsafeMutableRawPointer, _ code: CURLcode, _ active: inout [UnsafeMutableRawPointer: Transfer]
    ) {
        guard let transfer = active.removeValue(forKey: easy) else { return }
        let outcome = transfer.outcome(code)
        curl_multi_remove_handle(multi, easy)
        transfer.end(outcome)
    }

    deinit { curl_multi_cleanup(multi) }
}

private final class ThreadBody {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func startThread(_ body: @escaping @Sendable () -> Void) {
    var thread = pthread_t()
    let result = pthread_create(
        &thread, nil,
        { pointer in
            guard let pointer else { return nil }
            Unmanaged<ThreadBody>.fromOpaque(pointer).takeRetainedValue().body()
            return nil
        }, Unmanaged.passRetained(ThreadBody(body)).toOpaque())
    guard result == 0 else { preconditionFailure("no thread for the network: \(result)") }
    pthread_detach(thread)
}
