internal import CMicrohttpd
import Glibc
import Synchronization
import Vocabulary

/// A body that is written while it is being sent, without an end of its own. What is pending is one piece: who writes waits until the library
/// has taken it, so a slow client holds up its own stream and nothing else.
public final class BodyStream: Sendable {
    private struct State: @unchecked Sendable {
        // Unchecked: a connection is resumed here and only while it is suspended, so it cannot be gone.
        var parked: OpaquePointer?
        var pending: [UInt8] = []
        var taken = 0
        var isEnded = false
        var writer: CheckedContinuation<Bool, Never>?
        var onEnd: (@Sendable () -> Void)?
    }
    private let state = Mutex(State())

    public init() {}

    /// Called once, when the client is gone, the server stops, or `end` was called; at once where that has been already.
    public func whenEnded(_ body: @escaping @Sendable () -> Void) {
        let isEnded = state.withLock { state in
            if !state.isEnded { state.onEnd = body }
            return state.isEnded
        }
        if isEnded { body() }
    }

    /// One writer at a time. Returns when the bytes are on their way.
    /// - Returns: false when the stream has ended; nothing can be sent any more.
    public func write(_ bytes: [UInt8]) async -> Bool {
        guard !bytes.isEmpty else { return !state.withLock { $0.isEnded } }
        return await withCheckedContinuation { continuation in
            let isEnded = state.withLock { state in
                guard !state.isEnded else { return true }
                precondition(state.writer == nil, "a body stream has one writer")
                state.pending = bytes
                state.taken = 0
                state.writer = continuation
                Self.wake(&state)
                return false
            }
            if isEnded { continuation.resume(returning: false) }
        }
    }

    /// What is pending is dropped. May be called more than once.
    public func end() {
        let (writer, onEnd) = state.withLock { state in
            state.isEnded = true
            state.pending = []
            Self.wake(&state)
            return (state.writer.take(), state.onEnd.take())
        }
        writer?.resume(returning: false)
        onEnd?()
    }

    /// Bytes that the library has not taken yet.
    public var pendingBytes: Int { state.withLock { $0.pending.count - $0.taken } }

    private static func wake(_ state: inout State) {
        guard let connection = state.parked.take() else { return }
        MHD_resume_connection(connection)
    }

    /// Called by the library when the connection can take bytes. Answering 0 without suspending would be asked again at once.
    fileprivate func read(into buffer: UnsafeMutablePointer<CChar>, max: Int, _ connection: OpaquePointer) -> Int {
        let (count, writer) = state.withLock { state -> (Int, CheckedContinuation<Bool, Never>?) in
            guard !state.isEnded else { return (Self.endOfStream, nil) }
            let count = min(max, state.pending.count - state.taken)
            guard count > 0 else {
                state.parked = connection
                MHD_suspend_connection(connection)
                return (0, nil)
            }
            state.pending.withUnsafeBytes { bytes in
                guard let base = bytes.baseAddress else { return }
                UnsafeMutableRawPointer(buffer).copyMemory(from: base + state.taken, byteCount: count)
            }
            state.taken += count
            guard state.taken == state.pending.count else { return (count, nil) }
            state.pending = []
            state.taken = 0
            return (count, state.writer.take())
        }
        writer?.resume(returning: true)
        return count
    }

    /// MHD_CONTENT_READER_END_OF_STREAM (microhttpd.h), a macro with a cast.
    private static let endOfStream = -1
}

/// What the library holds of a stream: the connection is known only when the response is made.
private final class StreamSource: Sendable {
    let stream: BodyStream
    let core: ServerCore
    // Used by the library's own callback alone, while the connection lives.
    nonisolated(unsafe) let connection: OpaquePointer
    init(stream: BodyStream, core: ServerCore, connection: OpaquePointer) {
        self.stream = stream
        self.core = core
        self.connection = connection
    }
}

/// Nil when there is no memory.
func makeStreamResponse(_ stream: BodyStream, _ core: ServerCore, _ connection: OpaquePointer) -> OpaquePointer? {
    let source = Unmanaged.passRetained(StreamSource(stream: stream, core: core, connection: connection))
    // A server that is stopping lets nothing be suspended any more.
    if !core.began(stream) { stream.end() }
    let made = MHD_create_response_from_callback(streamLength, streamBlock, readStream, source.toOpaque(), freeStream)
    if made == nil { freeStream(source.toOpaque()) }
    return made
}

/// MHD_SIZE_UNKNOWN (microhttpd.h), a macro with a cast.
private let streamLength = UInt64.max
/// Bytes that are sent at once at most.
private let streamBlock = 4096

private let readStream: MHD_ContentReaderCallback = { context, _, buffer, max in
    guard let context, let buffer else { return -1 }
    let source = Unmanaged<StreamSource>.fromOpaque(context).takeUnretainedValue()
    return source.stream.read(into: buffer, max: max, source.connection)
}
private let freeStream: MHD_ContentReaderFreeCallback = { context in
    guard let context else { return }
    let source = Unmanaged<StreamSource>.fromOpaque(context).takeRetainedValue()
    source.core.over(source.stream)
    source.stream.end()
}
