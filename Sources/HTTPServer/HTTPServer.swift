internal import CMicrohttpd
import Dispatch
import Glibc
import Synchronization
public import Vocabulary

/// HTTP/1.1 over a Unix or TCP socket, with handlers that may wait. TLS and HTTP/2 are a proxy's business.
public final class HTTPServer: Sendable {
    public let address: ListenAddress
    private let core: ServerCore
    private let bounds: HTTPBounds
    private let state: Mutex<Running?>

    private struct Running: @unchecked Sendable {
        // Unchecked: moved out exactly once, by `stop`.
        let daemon: OpaquePointer
        let socket: ListeningSocket
    }

    private init(address: ListenAddress, core: ServerCore, bounds: HTTPBounds, running: Running) {
        self.address = address
        self.core = core
        self.bounds = bounds
        state = Mutex(running)
    }

    public static func start(
        _ address: ListenAddress, bounds: HTTPBounds = HTTPBounds(), handler: any HTTPHandler
    ) throws(Failure) -> HTTPServer {
        let socket = try ListeningSocket.open(address)
        let core = ServerCore(handler: handler)
        // The daemon's callbacks borrow the core; it is let go after the daemon has ended.
        let context = Unmanaged.passRetained(core)
        let daemon = rushes_mhd_start(
            socket.descriptor, accessHandler, context.toOpaque(), requestCompleted,
            rushes_mhd_bounds(
                threads: UInt32(bounds.threads), timeout_seconds: UInt32(bounds.idleTimeout),
                connections: UInt32(bounds.connectionsMax), connection_memory: bounds.connectionMemory))
        guard let daemon else {
            context.release()
            socket.close()
            throw Failure(.internalError, "The server could not be started.", detail: "MHD_start_daemon")
        }
        return HTTPServer(
            address: socket.address, core: core, bounds: bounds, running: Running(daemon: daemon, socket: socket))
    }

    /// Refuses new requests, lets those under way end within the drain time, then ends. May be called more than once.
    public func stop() async {
        guard let running = state.withLock({ $0.take() }) else { return }
        // In a task of its own: who stops is often cancelled already, and that must not cut the waiting short.
        await Task { await self.finish(running) }.value
    }

    private func finish(_ running: Running) async {
        // Nobody finds a Unix socket any more; who still connects by TCP is refused by `refuseNew`. The listening socket stays in the library's
        // hands: MHD_quiesce_daemon (0.9.75) and the library's own threads both take it out of an epoll set, and the second ends the process.
        running.socket.removeFile()
        core.refuseNew()
        await wait(seconds: bounds.drainTimeout) { self.core.activeCount == 0 }
        // The library aborts the process when it is stopped with a suspended connection, so a handler that does not come back keeps it alive.
        guard await wait(seconds: Self.handlerTimeout, until: { self.core.suspendedCount == 0 }) else { return }
        let core = core
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async { @Sendable in
                MHD_stop_daemon(running.daemon)
                Unmanaged.passUnretained(core).release()
                continuation.resume()
            }
        }
    }

    /// Seconds after which a handler is taken for lost.
    private static let handlerTimeout = 60

    @discardableResult
    private func wait(seconds: Int, until isDone: () -> Bool) async -> Bool {
        let stepMilliseconds = 10
        for _ in 0..<(seconds * 1000 / stepMilliseconds) {
            if isDone() { return true }
            try? await Task.sleep(for: .milliseconds(stepMilliseconds))
        }
        return isDone()
    }
}

/// What the daemon's threads share.
final class ServerCore: Sendable {
    let handler: any HTTPHandler
    private struct Counts {
        var isStopping = false
        /// Requests given to the handler and not yet answered to the last byte.
        var active = 0
        /// Connections suspended until the handler comes back.
        var suspended = 0
    }
    private let counts = Mutex(Counts())
    private struct Streams {
        var isStopping = false
        var open: [ObjectIdentifier: BodyStream] = [:]
    }
    private let streams = Mutex(Streams())

    init(handler: any HTTPHandler) { self.handler = handler }

    var activeCount: Int { counts.withLock { $0.active } }
    var suspendedCount: Int { counts.withLock { $0.suspended } }
    func refuseNew() {
        counts.withLock { $0.isStopping = true }
        let open = streams.withLock { streams in
            streams.isStopping = true
            return Array(streams.open.values)
        }
        for stream in open { stream.end() }
    }

    /// False when the server is stopping.
    func began(_ stream: BodyStream) -> Bool {
        streams.withLock { streams in
            guard !streams.isStopping else { return false }
            streams.open[ObjectIdentifier(stream)] = stream
            return true
        }
    }
    func over(_ stream: BodyStream) { streams.withLock { $0.open[ObjectIdentifier(stream)] = nil } }

    /// False when the server is stopping: nothing may be suspended any more.
    func begin() -> Bool {
        counts.withLock {
            if $0.isStopping { return false }
            $0.active += 1
            $0.suspended += 1
            return true
        }
    }
    /// Of a request whose body is still coming. False when the server is stopping.
    func pause() -> Bool {
        counts.withLock {
            if $0.isStopping { return false }
            $0.suspended += 1
            return true
        }
    }
    func resumed() { counts.withLock { $0.suspended -= 1 } }
    func ended() { counts.withLock { $0.active -= 1 } }
}
