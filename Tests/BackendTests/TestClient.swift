import Dispatch
import Foundation
import Glibc
import HTTPServer
import Vocabulary

/// An answer as it came over the wire.
struct TestAnswer: Sendable {
    var status: Int
    /// By lower-case name.
    var headers: [String: String]
    var body: Data

    func decoded<Value: Decodable>(_ type: Value.Type = Value.self) throws -> Value {
        try JSON.decode(type, from: body)
    }
    var code: FailureCode? { (try? JSON.decode(Problem.self, from: body))?.code }
}

/// HTTP/1.1 over a socket, one connection a request, written out by hand so that tests can also send what no decent client would.
struct TestClient: Sendable {
    let address: ListenAddress
    var headers: [String: String] = [:]

    func request(
        _ method: String, _ path: String, body: Data = Data(), headers extra: [String: String] = [:],
        contentLength: Int? = nil
    ) async throws -> TestAnswer {
        var head = "\(method) \(path) HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
        for (name, value) in headers.merging(extra, uniquingKeysWith: { $1 }) { head += "\(name): \(value)\r\n" }
        if !body.isEmpty || contentLength != nil || ["PUT", "POST"].contains(method) {
            head += "Content-Length: \(contentLength ?? body.count)\r\n"
        }
        return try Self.parse(try await exchange(Data((head + "\r\n").utf8) + body))
    }

    func send(_ method: String, _ path: String, _ message: some Encodable, headers: [String: String] = [:]) async throws
        -> TestAnswer
    {
        try await request(method, path, body: try JSON.encode(message), headers: headers)
    }

    /// Sends the bytes, then reads until the server closes. On a thread of its own: the server's handlers need the shared ones.
    func exchange(_ bytes: Data) async throws -> Data {
        let address = address
        return try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "test.client").async { @Sendable in
                continuation.resume(with: Result { try Self.talk(address, bytes) })
            }
        }
    }

    /// Sends the bytes and hangs up without waiting for an answer.
    func abandon(_ bytes: Data) async throws {
        let address = address
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            DispatchQueue(label: "test.client").async { @Sendable in
                continuation.resume(
                    with: Result {
                        let descriptor = try Self.connected(address)
                        _ = bytes.withUnsafeBytes {
                            Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                        }
                        close(descriptor)
                    })
            }
        }
    }

    /// The file of a socket whose server was killed.
    static func leaveStaleSocket(_ path: String) throws {
        let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var name = sockaddr_un()
        name.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw ConnectionFault(call: "bind") }
    }

    struct ConnectionFault: Error { var call: String }
    /// The server answers, but what was waited for does not come.
    struct NeverReached: Error {}

    private static func talk(_ address: ListenAddress, _ bytes: Data) throws -> Data {
        let descriptor = try connected(address)
        defer { close(descriptor) }
        var sent = 0
        while sent < bytes.count {
            let put = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            // The server may answer and close before it has read everything.
            guard put > 0 else { break }
            sent += put
        }
        var answer = Data()
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let got = read(descriptor, &buffer, buffer.count)
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return answer }
            answer.append(contentsOf: buffer[..<got])
        }
    }

    static func connected(_ address: ListenAddress) throws -> Int32 {
        switch address {
        case .unix(let path):
            let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
            var name = sockaddr_un()
            name.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &name.sun_path) { $0.copyBytes(from: path.utf8) }
            return try connected(descriptor, &name)
        case .tcp(_, let port):
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            var name = sockaddr_in()
            name.sin_family = sa_family_t(AF_INET)
            name.sin_port = UInt16(port).bigEndian
            name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            return try connected(descriptor, &name)
        }
    }

    private static func connected<Name>(_ descriptor: Int32, _ name: inout Name) throws -> Int32 {
        let result = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<Name>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            throw ConnectionFault(call: "connect")
        }
        return descriptor
    }

    private static func parse(_ bytes: Data) throws -> TestAnswer {
        guard let end = bytes.range(of: Data("\r\n\r\n".utf8)) else { throw ConnectionFault(call: "no answer") }
        let lines = String(decoding: bytes[..<end.lowerBound], as: UTF8.self).split(whereSeparator: \.isNewline)
        let status = lines.first.flatMap { Int($0.split(separator: " ")[1]) } ?? 0
        // The interim answer to `Expect: 100-continue`.
        if status == 100 { return try parse(Data(bytes[end.upperBound...])) }
        var headers: [String: String] = [:]
        for line in lines.dropFirst() {
            let halves = line.split(separator: ":", maxSplits: 1)
            headers[halves[0].lowercased()] = halves[1].drop { $0 == " " }.description
        }
        return TestAnswer(status: status, headers: headers, body: Data(bytes[end.upperBound...]))
    }
}
