import Curl
import Foundation
import Synchronization
import Testing
import Vocabulary

/// A server of one answer, on a thread: says what it was sent.
private final class TinyServer: Sendable {
    let socketPath: String
    private let listener: Int32
    private let received = Mutex<[[UInt8]]>([])
    var requests: [[UInt8]] { received.withLock { $0 } }

    /// - Parameter answer: given the request's bytes; nil leaves the client waiting.
    init(at path: String, answer: @escaping @Sendable ([UInt8]) -> [UInt8]?) throws {
        socketPath = path
        let listening = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8) + [0]) }
        let bound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listening, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(bound == 0 && listen(listening, 8) == 0)
        listener = listening
        Thread.detachNewThread { [weak self] in
            while true {
                let client = accept(listening, nil, nil)
                guard client >= 0 else { return }
                let request = Self.read(client)
                self?.received.withLock { $0.append(request) }
                if let answer = answer(request) {
                    answer.withUnsafeBytes { _ = write(client, $0.baseAddress, $0.count) }
                    close(client)
                }
            }
        }
    }
    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        unlink(socketPath)
    }

    private static func read(_ client: Int32) -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let got = recv(client, &buffer, buffer.count, 0)
            guard got > 0 else { return bytes }
            bytes += buffer[..<got]
            let text = String(decoding: bytes, as: UTF8.self)
            guard let head = text.range(of: "\r\n\r\n") else { continue }
            let length = text[..<head.lowerBound].split(whereSeparator: \.isNewline)
                .first { $0.lowercased().hasPrefix("content-length:") }
                .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
            let body = bytes.count - text[..<head.upperBound].utf8.count
            if body >= length ?? 0 { return bytes }
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct CurlTests {
    let scratch: ScratchFolder
    init() throws { scratch = try ScratchFolder() }
    // Short: a Unix socket's path has 107 bytes at most.
    var socketPath: String { "/tmp/rushes-curl-\(UInt32.random(in: .min ... .max))" }

    private func server(_ answer: String) throws -> TinyServer {
        try TinyServer(at: socketPath) { _ in Array(answer.utf8) }
    }

    @Test func aSliceOfAFileIsSentAndHeadersMatchInAnyCase() async throws {
        let bytes = pattern(300_000).map { 0x20 + $0 % 0x5E }
        let path = try scratch.write(bytes, "file")
        let server = try server("HTTP/1.1 200 OK\r\neTaG: \"x\"\r\nContent-Length: 2\r\n\r\nok")
        let sent = Mutex(0)
        let response = try await HTTPClient().send(
            HTTPRequest(
                .put, "http://localhost/part", socketPath: server.socketPath, headers: ["Content-MD5": "abc"],
                body: .file(path: path, offset: 1234, length: 200_000)
            ) { bytes in sent.withLock { $0 = max($0, bytes) } })
        #expect(response.status == 200 && response.body == Array("ok".utf8))
        #expect(response.headers["ETag"] == "\"x\"")
        let request = try #require(server.requests.first)
        #expect(request.suffix(200_000).elementsEqual(bytes[1234..<201_234]))
        let head = String(decoding: request.prefix(request.count - 200_000), as: UTF8.self)
        #expect(head.hasPrefix("PUT /part HTTP/1.1\r\n") && head.contains("Content-MD5: abc\r\n"))
        #expect(!head.lowercased().contains("expect:"))
        #expect(sent.withLock { $0 } > 0)
    }

    @Test func aRedirectIsAnAnswerAndNotFollowed() async throws {
        let server = try server("HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n")
        let response = try await HTTPClient().send(
            HTTPRequest(.get, "http://localhost/", socketPath: server.socketPath))
        #expect(response.status == 302)
        #expect(server.requests.count == 1)
    }

    @Test func anAnswerLongerThanItsBoundIsAFailure() async throws {
        let server = try server("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n" + String(repeating: "x", count: 2000))
        var request = HTTPRequest(.get, "http://localhost/", socketPath: server.socketPath)
        request.limits.responseBytesMax = 1999
        let failure = await #expect(throws: Failure.self) { try await HTTPClient().send(request) }
        #expect(failure?.code == .backendError)
        request.limits.responseBytesMax = 2000
        #expect(try await HTTPClient().send(request).body.count == 2000)
    }

    @Test func nobodyThereIsAFailureOfTheNetwork() async {
        let failure = await #expect(throws: Failure.self) {
            try await HTTPClient().send(HTTPRequest(.get, "http://localhost/", socketPath: "/tmp/none-there"))
        }
        #expect(failure?.code == .backendUnreachable)
        #expect(failure?.remedy == .retryLater)
    }

    @Test func cancellingTheTaskEndsTheExchange() async throws {
        let (arrived, arrive) = AsyncStream.makeStream(of: Void.self)
        let server = try TinyServer(at: socketPath) { _ in
            arrive.yield()
            return nil
        }
        let exchange = Task {
            try await HTTPClient().send(HTTPRequest(.get, "http://localhost/", socketPath: server.socketPath))
        }
        for await _ in arrived { break }
        exchange.cancel()
        let result = await exchange.result
        #expect(throws: Failure(.cancelled, "Stopped.")) { try result.get() }
    }

    @Test func aSocketPathThatIsTooLongIsSaidSo() async {
        let long = "/tmp/" + String(repeating: "x", count: 103)
        let failure = await #expect(throws: Failure.self) {
            try await HTTPClient().send(HTTPRequest(.get, "http://localhost/", socketPath: long))
        }
        #expect(failure?.code == .socketPathTooLong)
    }

    @Test func aHeaderCannotSmuggleAnother() async {
        let failure = await #expect(throws: Failure.self) {
            try await HTTPClient().send(
                HTTPRequest(.get, "http://localhost/", socketPath: "/tmp/x", headers: ["A": "b\r\nC: d"]))
        }
        #expect(failure?.code == .badRequest)
    }
}
