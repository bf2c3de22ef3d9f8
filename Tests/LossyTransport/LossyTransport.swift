public import Curl
public import Ingest
import Synchronization
public import Vocabulary

/// A network that does its worst, the same worst for the same seed: requests that never arrive, arrive twice, arrive cut, answers that are
/// lost after they took effect, servers that answer with faults of their own.
public final class LossyTransport: UploadTransport {
    public enum Fate: String, Sendable, CaseIterable {
        case pass
        /// Never arrives.
        case dropped
        /// Takes effect, but nobody hears of it.
        case answerLost
        /// Arrives twice; the second answer counts.
        case duplicated
        /// Only the beginning of the body arrives.
        case cut
        case serverError
        case busy
        case delayed
    }

    /// One exchange as the box saw it.
    public struct Exchange: Sendable {
        public var method: HTTPRequest.Method
        public var url: String
        /// Of a part's body, which no other part of a test's files has.
        public var contentMD5: String?
        public var fate: Fate
        /// Nil where the box heard nothing.
        public var status: Int?
        /// Bytes of the body that were asked to be sent.
        public var bytes: Int
    }

    private struct State {
        var random: BoxRandom
        var streamRandom: BoxRandom
        var exchanges: [Exchange] = []
        var faultsLeft: Int
    }
    private let wrapped: any UploadTransport
    private let state: Mutex<State>
    private let chance: Double
    private let intercept: @Sendable (HTTPRequest) async -> HTTPResponse?

    /// - Parameters:
    ///   - chance: of each request to meet a fault.
    ///   - faultsMax: after so many the network is good.
    ///   - intercept: answers in the server's place, before anything else.
    public init(
        _ wrapped: any UploadTransport, seed: UInt64, chance: Double, faultsMax: Int = 1000,
        intercept: @escaping @Sendable (HTTPRequest) async -> HTTPResponse? = { _ in nil }
    ) {
        self.wrapped = wrapped
        self.chance = chance
        self.intercept = intercept
        state = Mutex(State(random: .seeded(seed), streamRandom: .seeded(~seed), faultsLeft: faultsMax))
    }

    /// A backend that is away behind its proxy: every request is answered so.
    public static func away() -> LossyTransport {
        LossyTransport(HTTPClient(), seed: 1, chance: 0) { _ in HTTPResponse(status: 503) }
    }

    public var exchanges: [Exchange] { state.withLock { $0.exchanges } }
    public func forget() { state.withLock { $0.exchanges = [] } }

    public func send(_ request: HTTPRequest) async throws(Failure) -> HTTPResponse {
        let fate = drawFate(request)
        var heard: HTTPResponse?
        defer { note(request, fate, heard) }
        if let answer = await intercept(request) {
            heard = answer
            return answer
        }
        let answer = try await meet(fate, request)
        heard = answer
        return answer
    }

    /// Streams break off, or are answered by something else; they are not among the exchanges, which are those that change something.
    public func stream(
        _ request: HTTPRequest, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool
    ) async throws(Failure) -> HTTPResponse {
        if let answer = await intercept(request) {
            if answer.status == 200 { _ = receive(answer, answer.body) }
            return answer
        }
        switch drawStreamFate() {
        case .pass, .delayed, .duplicated: return try await wrapped.stream(request, receive: receive)
        case .dropped, .answerLost: throw Self.silence
        case .serverError: return HTTPResponse(status: 500)
        case .busy: return HTTPResponse(status: 503)
        case .cut:
            return try await wrapped.stream(request) {
                _ = receive($0, Array($1.prefix($1.count / 2))); return false
            }
        }
    }

    private func meet(_ fate: Fate, _ request: HTTPRequest) async throws(Failure) -> HTTPResponse {
        switch fate {
        case .pass: return try await wrapped.send(request)
        case .dropped: throw Self.silence
        case .answerLost:
            _ = try await wrapped.send(request)
            throw Self.silence
        case .duplicated:
            _ = try await wrapped.send(request)
            return try await wrapped.send(request)
        case .cut:
            _ = try? await wrapped.send(Self.cut(request))
            throw Self.silence
        case .serverError: return HTTPResponse(status: 500)
        case .busy: return HTTPResponse(status: 503)
        case .delayed:
            for _ in 0..<50 { await Task.yield() }
            return try await wrapped.send(request)
        }
    }

    private func drawFate(_ request: HTTPRequest) -> Fate {
        state.withLock { state in
            guard state.faultsLeft > 0, Double.random(in: 0..<1, using: &state.random) < chance else { return .pass }
            state.faultsLeft -= 1
            return Fate.allCases.dropFirst().randomElement(using: &state.random) ?? .dropped
        }
    }

    /// From a sequence of its own: when a stream is opened must not change what requests meet.
    private func drawStreamFate() -> Fate {
        state.withLock { state in
            guard state.faultsLeft > 0, Double.random(in: 0..<1, using: &state.streamRandom) < chance else {
                return .pass
            }
            return Fate.allCases.dropFirst().randomElement(using: &state.streamRandom) ?? .dropped
        }
    }

    private func note(_ request: HTTPRequest, _ fate: Fate, _ heard: HTTPResponse?) {
        state.withLock { state in
            state.exchanges.append(
                Exchange(
                    method: request.method, url: request.url, contentMD5: request.headers["Content-MD5"], fate: fate,
                    status: heard?.status, bytes: request.body.length))
        }
    }

    private static let silence = Failure(.backendUnreachable, "The network is down.", detail: "lossy")

    private static func cut(_ request: HTTPRequest) -> HTTPRequest {
        var cut = request
        switch request.body {
        case .none: break
        case .bytes(let bytes): cut.body = .bytes(Array(bytes.prefix(bytes.count / 2)))
        case .file(let path, let offset, let length): cut.body = .file(path: path, offset: offset, length: length / 2)
        }
        return cut
    }
}
