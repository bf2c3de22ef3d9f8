import Dispatch
import Foundation
import Glibc
import HTTPServer
import Synchronization

/// An event stream as it comes over a socket, block by block. HTTP/1.0, so that nothing is chunked.
final class TestEventStream: Sendable {
    /// One block between blank lines, its head among them as the first; ends when the server closes or nothing comes for half a minute.
    let blocks: AsyncStream<String>
    private let descriptor: Int32
    /// The last block where the server neither closed nor said anything.
    static let silence = "silence"

    init(
        _ address: ListenAddress, query: String = "", last: String? = nil, token: String? = nil, reads: Bool = true
    ) throws {
        let descriptor = try TestClient.connected(address)
        self.descriptor = descriptor
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        let id = last.map { "Last-Event-ID: \($0)\r\n" } ?? ""
        let bearer = token.map { "Authorization: Bearer \($0)\r\n" } ?? ""
        let request = Array("GET /v1/events\(query) HTTP/1.0\r\nHost: test\r\n\(bearer)\(id)\r\n".utf8)
        _ = send(descriptor, request, request.count, Int32(MSG_NOSIGNAL))
        let (blocks, continuation) = AsyncStream<String>.makeStream()
        self.blocks = blocks
        guard reads else { return }
        Thread.detachNewThread { Self.read(descriptor, into: continuation) }
    }
    deinit { close(descriptor) }

    func hangUp() { shutdown(descriptor, Int32(SHUT_RDWR)) }

    /// The next blocks that hold an `event:` line.
    func events(_ count: Int) async -> [String] {
        var events: [String] = []
        for await block in blocks where block.contains("event: ") {
            events.append(block)
            if events.count == count { break }
        }
        return events
    }

    static func number(_ block: String) -> Int? {
        block.split(separator: "\n").first { $0.hasPrefix("id: ") }.flatMap { Int($0.dropFirst(4)) }
    }

    private static func read(_ descriptor: Int32, into blocks: AsyncStream<String>.Continuation) {
        var pending = ""
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let got = Glibc.read(descriptor, &buffer, buffer.count)
            if got < 0, errno == EINTR { continue }
            if got < 0, errno == EAGAIN { blocks.yield(silence) }
            guard got > 0 else { return blocks.finish() }
            pending += String(decoding: buffer[..<got], as: UTF8.self).replacing("\r\n", with: "\n")
            while let end = pending.range(of: "\n\n") {
                blocks.yield(String(pending[..<end.lowerBound]))
                pending.removeSubrange(..<end.upperBound)
            }
        }
    }
}
