internal import CMicrohttpd
import Synchronization
import Vocabulary

/// One request and its answer. The library calls it from one thread at a time; the handler's task touches `answer` alone.
final class Exchange: @unchecked Sendable {
    private let connection: OpaquePointer
    private let core: ServerCore
    private let request: HTTPRequest
    private var plan: BodyPlan
    private var collected: [UInt8] = []
    private var failure: Failure?
    private var failureStatus: Int?
    private var failureHeaders: [(name: String, value: String)] = []
    private var droppedBytes = 0
    private var isDispatched = false
    private var hasEnded = false
    private let answer = Mutex<HTTPResponse?>(nil)

    /// A refused body up to so many bytes is read and dropped: a client that is still sending when the connection closes would lose the answer.
    /// What is longer ends with the connection.
    private static let drainedBytesMax = 64 << 20

    init(connection: OpaquePointer, core: ServerCore, request: HTTPRequest) {
        self.connection = connection
        self.core = core
        self.request = request
        plan = core.handler.plan(for: request)
        if case .collect(let bytesMax) = plan, let length = request.contentLength, length > bytesMax {
            plan = .refuse(Self.tooLarge(bytesMax))
        }
        if case .refuse(let failure, let status, let headers) = plan {
            self.failure = failure
            failureStatus = status
            failureHeaders = headers
        }
    }

    private func refuse(_ failure: Failure) -> MHD_Result {
        var response = HTTPResponse.problem(failure, status: failureStatus)
        response.headers += failureHeaders
        return send(response, to: connection, for: request, core)
    }

    /// The head is in.
    func begin() -> MHD_Result {
        guard let failure else { return .YES }
        let isWaiting = request.headers["expect"] != nil
        let isLong = (request.contentLength ?? 0) > Self.drainedBytesMax
        return isWaiting || isLong ? refuse(failure) : .YES
    }

    /// A piece of the body.
    /// - Returns: bytes taken; where that is not all of them, the connection is suspended. Nil ends the connection.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Int? {
        guard failure == nil else {
            droppedBytes += bytes.count
            return droppedBytes > Self.drainedBytesMax ? nil : bytes.count
        }
        switch plan {
        case .refuse: break
        case .collect(let bytesMax):
            if collected.count + bytes.count > bytesMax {
                failure = Self.tooLarge(bytesMax)
                collected = []
            } else {
                collected.append(contentsOf: bytes)
            }
        case .stream(let sink):
            do throws(Failure) {
                let taken = sink.isReady ? try sink.receive(bytes) : 0
                if taken < bytes.count { try pause(for: sink) }
                return taken
            } catch { failure = error }
        }
        return bytes.count
    }

    /// The client waits until the sink is ready.
    private func pause(for sink: any BodySink) throws(Failure) {
        guard core.pause() else { throw Self.stopping }
        // Before the sink is asked, since it may resume at once.
        MHD_suspend_connection(connection)
        let (core, connection) = (core, SuspendedConnection(connection))
        sink.whenReady {
            connection.resume()
            core.resumed()
        }
    }
    private static let stopping = Failure(.busy, "The server is stopping: try again.")

    /// The body is in, or the handler has come back.
    func proceed() -> MHD_Result {
        if let response = answer.withLock({ $0.take() }) {
            // A stream has no end to wait for when the server stops.
            if case .stream = response.body { end() }
            return send(response, to: connection, for: request, core)
        }
        if isDispatched { return .YES }
        let body: ReceivedBody
        switch (plan, failure) {
        case (.stream(let sink), let failure?): body = .failed(failure, sink)
        case (_, let failure?): return refuse(failure)
        case (.stream(let sink), nil): body = .sink(sink)
        case (_, nil): body = .bytes(collected)
        }
        guard core.begin() else {
            return send(.problem(Self.stopping, retryAfter: 1), to: connection, for: request, core)
        }
        isDispatched = true
        // Before the task starts, since that may resume it at once.
        MHD_suspend_connection(connection)
        Task {
            let response = await core.handler.respond(to: request, body: body)
            answer.withLock { $0 = response }
            // The count last: where it comes to nothing, the server may end, which must find nobody suspended.
            MHD_resume_connection(connection)
            core.resumed()
        }
        return .YES
    }

    /// The answer has gone out, or the connection is lost.
    func end() {
        guard !hasEnded else { return }
        guard isDispatched else {
            if case .stream(let sink) = plan { sink.breakOff() }
            return
        }
        hasEnded = true
        core.ended()
    }

    private static func tooLarge(_ bytesMax: Int) -> Failure {
        Failure(.bodyTooLarge, "The request is larger than \(bytesMax) bytes.")
    }
}

/// A connection that is to be resumed, from whatever thread.
private struct SuspendedConnection: @unchecked Sendable {
    // Unchecked: the library lets any thread resume, and a suspended connection cannot be gone.
    private let connection: OpaquePointer
    init(_ connection: OpaquePointer) { self.connection = connection }
    func resume() { MHD_resume_connection(connection) }
}

let accessHandler: MHD_AccessHandlerCallback = { context, connection, url, method, _, data, size, slot in
    guard let context, let connection, let url, let method, let size, let slot else { return .NO }
    let core = Unmanaged<ServerCore>.fromOpaque(context).takeUnretainedValue()
    guard let known = slot.pointee else {
        let exchange = Exchange(
            connection: connection, core: core,
            request: readRequest(connection, method: String(cString: method), path: String(cString: url)))
        slot.pointee = Unmanaged.passRetained(exchange).toOpaque()
        return exchange.begin()
    }
    let exchange = Unmanaged<Exchange>.fromOpaque(known).takeUnretainedValue()
    guard size.pointee > 0 else { return exchange.proceed() }
    guard let taken = exchange.receive(UnsafeRawBufferPointer(start: data, count: size.pointee)) else { return .NO }
    size.pointee -= taken
    return .YES
}

let requestCompleted: MHD_RequestCompletedCallback = { _, _, slot, _ in
    guard let known = slot?.pointee else { return }
    let exchange = Unmanaged<Exchange>.fromOpaque(known).takeRetainedValue()
    slot?.pointee = nil
    exchange.end()
}

private func readRequest(_ connection: OpaquePointer, method: String, path: String) -> HTTPRequest {
    var query: [String: String] = [:]
    var headers: [String: String] = [:]
    each(connection, .GET_ARGUMENT_KIND) { query[$0] = $1 }
    // A repeated header is one list (RFC 9110, section 5.3).
    each(connection, .HEADER_KIND) { name, value in
        let name = name.lowercased()
        headers[name] = headers[name].map { $0 + ", " + value } ?? value
    }
    let descriptor = rushes_mhd_descriptor(connection)
    var user: UInt32 = 0
    let isLocal = rushes_is_unix_socket(descriptor) != 0 && rushes_peer_user(descriptor, &user) == 0
    return HTTPRequest(
        method: method, path: path, query: query, headers: headers, peer: isLocal ? .local(user: user) : .remote)
}

private func each(_ connection: OpaquePointer, _ kind: MHD_ValueKind, _ body: (String, String) -> Void) {
    withoutActuallyEscaping(body) { body in
        var box = body
        withUnsafeMutablePointer(to: &box) { pointer in
            _ = MHD_get_connection_values(
                connection, kind,
                { context, _, key, value in
                    guard let context, let key else { return .YES }
                    let body = context.assumingMemoryBound(to: ((String, String) -> Void).self).pointee
                    body(String(cString: key), value.map { String(cString: $0) } ?? "")
                    return .YES
                }, pointer)
        }
    }
}
