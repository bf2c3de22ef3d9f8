import Curl
import HTTPServer
import Synchronization
import TestStores
import Vocabulary

@testable import Backend

/// A real store behind something that answers in its place, or changes what it says, where a test wants that.
final class BentStore: Sendable {
    struct Request: Sendable {
        var method: String
        /// Without the bucket.
        var key: String
        var query: [String: String]
        /// Requests of this method before it.
        var before: Int

        func isOf(_ method: String, _ keyPart: String) -> Bool { self.method == method && key.contains(keyPart) }
    }
    typealias Answer = ServerResponse
    typealias Through = @Sendable () async -> Answer
    typealias Bend = @Sendable (Request, Through) async -> Answer

    let settings: S3Settings
    private let server: HTTPServer
    private let handler: Handler

    /// - Returns: nil where there is no store on this machine.
    static func ceph(_ bend: @escaping Bend = { await $1() }) throws -> BentStore? {
        guard let store = TestStore.ceph else { return nil }
        return try BentStore(store, bend)
    }

    init(_ store: TestStore, _ bend: @escaping Bend) throws {
        handler = Handler(store.endpoint, bucket: store.bucket, bend)
        server = try HTTPServer.start(.tcp(host: "127.0.0.1", port: 0), bounds: HTTPBounds(), handler: handler)
        settings = try S3Settings(store, endpoint: "http://\(server.address)")
    }

    func bend(_ bend: @escaping Bend) { handler.bend.withLock { $0 = bend } }
    var seen: [Request] { handler.seen.withLock { $0 } }

    /// Waits until the removal of an object whose key ends so has been answered.
    func removed(_ keyEnd: String) async {
        for await request in handler.answered
        where request.method == "DELETE" && request.query.isEmpty && request.key.hasSuffix(keyEnd) { return }
    }
    func stop() async { await server.stop() }

    /// As a store says it.
    static func refusal(_ status: Int, _ code: String) -> Answer {
        document("<Error><Code>\(code)</Code></Error>", status: status)
    }
    static func document(_ text: String, status: Int = 200) -> Answer {
        Answer(
            status: status, headers: [("Content-Type", "application/xml")],
            body: .bytes(Array("<?xml version=\"1.0\"?>\(text)".utf8)))
    }

    private final class Handler: HTTPHandler {
        let bend: Mutex<Bend>
        let seen = Mutex<[Request]>([])
        /// For one who waits; of many that nobody waits for, the last.
        let answered: AsyncStream<Request>
        private let tell: AsyncStream<Request>.Continuation
        private let endpoint: String
        private let bucket: String
        private let http = HTTPClient()

        init(_ endpoint: String, bucket: String, _ bend: @escaping Bend) {
            self.endpoint = endpoint
            self.bucket = bucket
            self.bend = Mutex(bend)
            (answered, tell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1000))
        }

        func plan(for request: ServerRequest) -> BodyPlan { .collect(bytesMax: 128 << 20) }

        func respond(to request: ServerRequest, body: ReceivedBody) async -> Answer {
            var bytes: [UInt8] = []
            if case .bytes(let collected) = body { bytes = collected }
            let key = String(request.path.dropFirst(bucket.utf8.count + 2))
            let seen = self.seen.withLock { seen in
                let before = seen.count { $0.method == request.method }
                seen.append(Request(method: request.method, key: key, query: request.query, before: before))
                return seen[seen.count - 1]
            }
            let sent = bytes
            let answer = await bend.withLock { $0 }(seen) { await self.pass(request, sent) }
            tell.yield(seen)
            return answer
        }

        private func pass(_ request: ServerRequest, _ body: [UInt8]) async -> Answer {
            let query = SignatureV4.canonicalQuery(request.query.map { SignatureV4.Parameter($0.key, $0.value) })
            guard let method = Curl.HTTPRequest.Method(rawValue: request.method) else { return Answer(status: 501) }
            var message = Curl.HTTPRequest(
                method,
                endpoint + SignatureV4.encoded(request.path, keeping: [UInt8(ascii: "/")])
                    + (query.isEmpty ? "" : "?" + query),
                body: ["PUT", "POST"].contains(request.method) ? .bytes(body) : .none)
            message.limits.responseBytesMax = 128 << 20
            for (name, value) in request.headers where !["content-length", "connection", "expect"].contains(name) {
                message.headers[name] = value
            }
            do throws(Failure) {
                let answer = try await http.send(message)
                // The length of what a HEAD speaks of is the library's to say.
                let length = request.method == "HEAD" ? answer.headers["Content-Length"].flatMap { Int($0) } ?? 0 : nil
                let hidden = ["content-length", "connection", "transfer-encoding", "date"]
                return Answer(
                    status: answer.status,
                    headers: answer.headers.fields.filter { !hidden.contains($0.name.lowercased()) },
                    body: .bytes(length.map { [UInt8](repeating: 0, count: $0) } ?? answer.body))
            } catch { return BentStore.refusal(502, "InternalError") }
        }
    }
}
