import Backend
import Curl
import Digests
import Files
import Foundation
import TestStores
import Testing
import Vocabulary

/// `tuspy`, a tus client of others, against `rushes serve`.
@Suite(.serialized, .enabled(if: TestStore.waits)) struct TuspyTests {
    enum Kind: String, CaseIterable, Sendable { case directory, ceph }

    /// Arguments: address of the server, token, file, chunk size, checksum or not, bytes after which to stop, address of the upload.
    private static let script = """
        import sys
        from tusclient import client
        server, token, path, chunk, checksum, stop, url = sys.argv[1:8]
        uploader = client.TusClient(server, headers={'Authorization': 'Bearer ' + token}).uploader(
            file_path=path, chunk_size=int(chunk), upload_checksum=checksum == 'yes', url=url or None,
            metadata={'filename': 'CLIP.MP4', 'shoot': 'tuspy'}, retries=60, retry_delay=1)
        uploader.upload(stop_at=int(stop) if stop else None)
        print(uploader.url, uploader.offset)
        """

    @Test(.timeLimit(.minutes(5)), arguments: Kind.allCases)
    func aForeignClientIsInterruptedAndItsFilesBecomeReady(kind: Kind) async throws {
        if kind == .ceph, TestStore.ceph == nil { return }
        let environment = kind == .ceph ? TestStore.ceph?.environment(home: "") ?? [:] : [:]
        let house = try TuspyHouse(environment)
        let clip = house.scratch.path + "/clip.mp4"
        try Files.write(try Media.video.bytes(padding: 10 << 20, seed: 7), to: clip)
        let still = house.scratch.path + "/still.png"
        try Files.write(try Media.photo.bytes(padding: 9 << 20, seed: 8), to: still)
        let items = try await onThread { () -> [(path: String, url: String)]? in
            guard let tool = try PythonTool("tuspy", version: "1.1.0", word: "TUSPY") else { return nil }
            func tuspy(_ path: String, _ words: [String]) throws -> String {
                let ended = try tool.run(
                    "python", ["-c", Self.script, house.address + "/v1/tus", house.token, path] + words)
                #expect(ended.status == 0, "\(ended.output)")
                let words = ended.output.split(whereSeparator: \.isWhitespace).map(String.init)
                return try #require(words.count == 2 ? words.first : nil)
            }
            // The server is killed between two of its durable steps while the client sends, and comes back.
            let dying = try house.serve(dyingAt: 20)
            let revival = Revival { () throws -> Programs.Started in
                #expect(dying.wait().signal == SIGKILL)
                return try house.serve()
            }
            let url = try tuspy(clip, ["\(1 << 20)", "yes", "", ""])
            let server = try revival.value()
            // The client ends in the middle, and another goes on.
            let started = try tuspy(still, ["\(1 << 20)", "no", "\(3 << 20)", ""])
            #expect(try tuspy(still, ["\(100 << 20)", "no", "", started]) == started)
            let ended = server.stop()
            #expect(ended.status == 0, "\(ended.errors)")
            return [(clip, url), (still, started)]
        }
        guard let items else { return }
        // What a server that was told to stop leaves is gone on with by the next.
        let server = try house.serve()
        for (path, url) in items {
            let item = try await house.item(try #require(url.split(separator: "/").last.map(String.init)))
            #expect(item.state == .ready && item.shoot == "tuspy", "\(String(describing: item.reason))")
            #expect(item.uploads.first?.sha256Recomputed == (try Files.sha256(of: .reading(path))))
        }
        try await onThread {
            #expect(server.stop().status == 0)
            let check = try Programs.run(["check", "--data", house.data], environment)
            #expect(check.status == 0, "\(check.output)\(check.errors)")
        }
    }
}

/// `rushes serve` over TCP, one after the other on the same port and folder.
private struct TuspyHouse: Sendable {
    let scratch: ScratchFolder
    let environment: [String: String]
    let port = TestStore.freePort()
    let token: String
    var data: String { scratch.path + "/backend" }
    var address: String { "http://127.0.0.1:\(port)" }

    init(_ environment: [String: String]) throws {
        scratch = try ScratchFolder()
        self.environment = environment
        let made = try Programs.run(["token", "create", "--data", scratch.path + "/backend"], environment)
        #expect(made.status == 0, "\(made.errors)")
        token = try #require(
            made.output.split(whereSeparator: \.isWhitespace).last { $0.hasPrefix("rushes_") }.map(String.init))
    }

    /// Returns when it answers.
    func serve(dyingAt step: Int? = nil) throws -> Programs.Started {
        var environment = environment
        if let step { environment["RUSHES_CRASH_AT_STEP"] = String(step) }
        let server = try Programs.Started(["serve", "--listen", "127.0.0.1:\(port)", "--data", data], environment)
        try Programs.wait("the server answers") {
            TestStore.run("/usr/bin/curl", [:], ["-sf", "\(address)/readyz"]).status == 0
        }
        return server
    }

    /// When it is what it is going to be.
    func item(_ id: String) async throws -> ItemDocument {
        let client = HTTPClient()
        let request = HTTPRequest(.get, "\(address)/v1/items/\(id)", headers: ["Authorization": "Bearer \(token)"])
        while true {
            let answer = try await client.send(request)
            if answer.status == 200 {
                let item = try JSON.decode(ItemDocument.self, from: Data(answer.body))
                if item.state == .ready || item.state == .rejected { return item }
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }
}

/// What another thread comes to.
private final class Revival<Value: Sendable>: @unchecked Sendable {
    // Unchecked: written before the signal, read after it.
    private var result: Result<Value, any Error>?
    private let done = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () throws -> Value) {
        Thread.detachNewThread { [self] in
            result = Result { try body() }
            done.signal()
        }
    }

    func value() throws -> Value {
        done.wait()
        guard let result else { preconditionFailure("the thread has ended") }
        return try result.get()
    }
}
