import Digests
import Foundation
import HTTPServer
import Synchronization
import TestStores
import Testing
import Vocabulary

@testable import Backend

/// A foreign client that goes on wherever it is told that its files stand, and remembers what it was told.
private final class TusPatience: Sendable {
    let tus: TusClient
    /// Whole parts and tails, and an end that is told only after the last byte.
    let files: [(bytes: [UInt8], ends: [Int], isDeferred: Bool)]
    private struct Known {
        var path: String?
        var acknowledged = 0
    }
    private let known: Mutex<[Known]>

    init(_ client: TestClient, _ files: [(bytes: [UInt8], ends: [Int], isDeferred: Bool)]) {
        tus = TusClient(client: client)
        self.files = files
        known = Mutex(files.map { _ in Known() })
    }

    /// Throws a `ConnectionFault` when the server is gone.
    func run() async throws {
        for index in files.indices { try await send(index) }
        for (index, file) in files.enumerated() {
            let path = try #require(known.withLock { $0[index].path })
            let item = try await tus.item(path) { $0.state == .ready || $0.state == .rejected }
            #expect(item.reason?.code == .notMedia)
            #expect(item.uploads.first?.sha256Recomputed == Digest.sha256(file.bytes))
        }
    }

    private func send(_ index: Int) async throws {
        let file = files[index]
        if known.withLock({ $0[index].path == nil }) {
            let path = try await tus.created(file.isDeferred ? nil : file.bytes.count)
            known.withLock { $0[index].path = path }
        }
        let path = try #require(known.withLock { $0[index].path })
        while true {
            let head = try await tus.head(path)
            let offset = try #require(head.headers["upload-offset"].flatMap { Int($0) })
            #expect(offset >= known.withLock { $0[index].acknowledged }, "acknowledged bytes are gone")
            if head.headers["upload-length"] == String(offset) { return }
            let end = file.ends.first { $0 > offset } ?? offset
            let length = offset == file.bytes.count ? ["Upload-Length": String(offset)] : [:]
            #expect(try await tus.patch(path, at: offset, file.bytes[offset..<end], length).status == 204)
            known.withLock { $0[index].acknowledged = end }
        }
    }
}

/// The backend dies by SIGKILL right after its nth durable step and is started again; n goes up until it survives.
/// Once is enough where two builds are tested.
@Suite(.enabled(if: TestStore.waits)) struct TusCrashTests {
    /// Durable steps of the backend for two files, without those of housekeeping, which come when they come. A loop that stopped early would
    /// show here.
    static let stepCount = 33

    @Test(.timeLimit(.minutes(5))) func noAcknowledgedByteIsLostWhereverTheBackendIsKilled() async throws {
        let long = [UInt8](repeating: 7, count: (8 << 20) + 100)
        let files = [
            (bytes: long, ends: [1000, (8 << 20) + 50, long.count], isDeferred: false),
            (bytes: Array("of unknown length".utf8), ends: [17], isDeferred: true),
        ]
        let (_, steps) = try await ServeProcess.killedAtEachStep { client in
            let patience = TusPatience(client, files)
            return { try await patience.run() }
        }
        let housekeeping = ["files.remove", "ledger.forgetDoomed"]
        let own = steps.filter { !housekeeping.contains($0) }
        #expect(own.count == Self.stepCount, "\(own)")
    }
}
