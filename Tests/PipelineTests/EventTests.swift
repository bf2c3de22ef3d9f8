import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

@testable import Backend

/// Holds the attach back until events flow, and the backend until the box has looked once.
private struct WatchedTransport: UploadTransport {
    let wrapped = HTTPClient()
    let isLive = Signal()
    let hasLooked: Signal
    let looks = Looks()
    final class Looks: Sendable {
        private let number = Mutex(0)
        func add() { number.withLock { $0 += 1 } }
        var count: Int { number.withLock { $0 } }
    }

    func send(_ request: HTTPRequest) async throws(Failure) -> HTTPResponse {
        let isItem = request.url.contains("/v1/items/")
        if isItem, request.method == .put { await isLive.wait() }
        let response = try await wrapped.send(request)
        if isItem, request.method == .get {
            looks.add()
            hasLooked.give()
        }
        return response
    }
    func stream(_ request: HTTPRequest, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool)
        async throws(Failure) -> HTTPResponse
    {
        try await wrapped.stream(request) { head, bytes in
            let goesOn = receive(head, bytes)
            isLive.give()
            return goesOn
        }
    }
}

@Suite struct EventTests {
    @Test(.timeLimit(.minutes(3))) func anEventMakesAnItemReadyLongBeforeItsNextLook() async throws {
        let hasLooked = Signal()
        let stage = try await Stage {
            try await RunningBackend.start(in: $0, clock: Timestamp.system) { await hasLooked.wait() }
        }
        try stage.write("a.jpg", .photo, size: 1000)
        let network = WatchedTransport(hasLooked: hasLooked)
        var settings = stage.settings(network)
        // The next look is 15 s away, which take two and a half minutes here.
        let start = ContinuousClock.now
        settings.clock.steady = { (ContinuousClock.now - start) / .seconds(10) }
        let (_, items) = try await stage.ingest(settings)
        #expect(items.map(\.state) == [.ready])
        #expect((2...4).contains(network.looks.count))
        try await stage.end()
    }

    /// What a server may say in the place of a stream.
    enum StrangeAnswer: CaseIterable {
        case notFound, busy, page, nonsense, endless

        var response: HTTPResponse {
            let stream: HTTPHeaders = ["Content-Type": "text/event-stream"]
            return switch self {
            case .notFound: HTTPResponse(status: 404)
            case .busy: HTTPResponse(status: 503, headers: ["Retry-After": "20"])
            case .page: HTTPResponse(status: 200, headers: ["Content-Type": "text/html"], body: Array("<html>".utf8))
            case .nonsense:
                HTTPResponse(
                    status: 200, headers: stream,
                    body: Array("event: item\ndata: {}\n\nevent: item\ndata: \u{0}\n\n".utf8))
            case .endless:
                HTTPResponse(status: 200, headers: stream, body: [UInt8](repeating: UInt8(ascii: "x"), count: 1 << 18))
            }
        }
    }

    @Test(.timeLimit(.minutes(3)), arguments: StrangeAnswer.allCases)
    func withoutAProperStreamTheBoxAsksAndGetsThere(answer: StrangeAnswer) async throws {
        let stage = try await Stage()
        for index in 0..<3 { try stage.write("\(index).jpg", .photo, size: 1000, seed: index) }
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            request.url.hasSuffix("/v1/events") ? answer.response : nil
        }
        let (_, items) = try await stage.ingest(stage.settings(network))
        #expect(items.map(\.state) == [.ready, .ready, .ready])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(3)), arguments: [86_400.0, -86_400])
    func clocksThatJumpByADayOnBothSidesHoldUpNothing(step: Double) async throws {
        let now = Mutex(Timestamp.system())
        let jumped = Signal()
        let stage = try await Stage {
            try await RunningBackend.start(in: $0, clock: { now.withLock { $0 } }) {
                now.withLock { $0 = $0.adding(seconds: step) }
                jumped.give()
            }
        }
        try stage.write("a.wav", .sound, size: 20 << 20)
        for index in 0..<3 { try stage.write("\(index).jpg", .photo, size: 1000, seed: index) }
        let network = LossyTransport(HTTPClient(), seed: 3, chance: 0.1, faultsMax: 20)
        var settings = stage.settings(network)
        // Each look at the box's clock finds it on another day.
        settings.clock.now = { Int64.random(in: -86_400_000...86_400_000) + Timestamp.system().milliseconds }
        let (_, items) = try await stage.ingest(settings)
        await jumped.wait()
        #expect(items.allSatisfy { $0.state == .ready })
        try await stage.end()
    }
}

@Suite struct StreamingTests {
    private func served(
        _ body: (HTTPRequest) async throws -> Void
    ) async throws {
        let scratch = try ScratchFolder()
        let over = Signal()
        let server = try EndlessServer(socket: scratch.path + "/s") { over.give() }
        try await body(HTTPRequest(.get, "http://localhost/", socketPath: scratch.path + "/s"))
        await server.stop()
        await over.wait()
    }

    @Test(.timeLimit(.minutes(3))) func aStreamThatStallsIsGivenUp() async throws {
        try await served { request in
            var request = request
            request.limits.idleSeconds = 0.2
            let failure = await #expect(throws: Failure.self) {
                try await HTTPClient().stream(request) { _, _ in true }
            }
            #expect(failure?.code == .backendUnreachable)
        }
    }

    @Test(.timeLimit(.minutes(3))) func hangingUpIsNoFailure() async throws {
        try await served { request in
            let got = Mutex<[UInt8]>([])
            let response = try await HTTPClient().stream(request) { _, bytes in
                got.withLock { $0 += bytes }
                return false
            }
            #expect(response.status == 200 && got.withLock { $0 } == Array("beginning".utf8))
        }
    }

    @Test(.timeLimit(.minutes(3))) func aCancelledStreamEnds() async throws {
        try await served { request in
            let began = Signal()
            let reading = Task {
                try await HTTPClient().stream(request) { _, _ in
                    began.give()
                    return true
                }
            }
            await began.wait()
            reading.cancel()
            let failure = await #expect(throws: Failure.self) { try await reading.value }
            #expect(failure?.code == .cancelled)
        }
    }
}
