import Files
import Foundation
import HTTPServer
import Testing
import Vocabulary

@testable import Backend

/// What several requests, or a disk that fails, do to one upload.
@Suite(.timeLimit(.minutes(1))) struct TusRaceTests {
    @Test func whoeverLooksWhileAnotherWritesEndsNothing() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let (tus, locks) = (backend.tus, backend.test.backend.tus.locks)
        let path = try await tus.created(20)
        #expect(try await tus.patch(path, at: 0, [UInt8](repeating: 7, count: 10)).status == 204)
        let id = try #require(UploadID(rawValue: String(path.split(separator: "/")[2])))
        let blobs = URL(fileURLWithPath: backend.test.data + "/blobs")
        let found = FileManager.default.enumerator(at: blobs, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        let tail = try #require(found?.first { $0.lastPathComponent.hasPrefix("t-") })
        // As a writer leaves it for a moment: the ledger names one tail, and the store has another.
        let aside = URL(fileURLWithPath: backend.test.data + "/aside")
        let seen = await Self.statuses {
            try await locks.holding(id) { () throws(Failure) in
                let status = await Self.statuses {
                    try FileManager.default.moveItem(at: tail, to: aside)
                    let status = try await tus.head(path).status
                    try FileManager.default.moveItem(at: aside, to: tail)
                    return status
                }
                return status
            }
        }
        #expect(seen == 423)
        let head = try await tus.head(path)
        #expect(head.status == 200 && head.headers["upload-offset"] == "10")
        #expect(try await tus.end(path).status == 204)
    }

    private static func statuses(_ body: () async throws -> Int) async -> Int {
        do { return try await body() } catch {
            Issue.record(error)
            return 0
        }
    }

    @Test func aPartIsCutToWhatWasTakenOfIt() throws {
        let scratch = try ScratchFolder()
        let spool = try TusSpool(number: 1, capacity: 100, in: scratch.path)
        let bytes = [UInt8](repeating: 7, count: 10)
        #expect(try bytes.withUnsafeBytes { try spool.take($0) } == 10)
        // A write that had no room for all of it.
        let file = try FileHandle(forWritingTo: URL(fileURLWithPath: spool.path))
        try file.seekToEnd()
        try file.write(contentsOf: [1, 2, 3])
        try file.close()
        let part = try spool.seal()
        #expect(part.length == 10)
        #expect(try spool.seal() == part)
        #expect(try Files.facts(spool.path)?.size == 10)
        #expect(throws: Failure.self) { try bytes.withUnsafeBytes { try spool.take($0) } }
    }

    @Test func whatIsStoppedTakesNoMore() async throws {
        let locks = TusLocks()
        await locks.stop()
        let failure = await #expect(throws: Failure.self) {
            try await locks.holding(try #require(UploadID(rawValue: "up-1"))) { () throws(Failure) in }
        }
        #expect(failure?.code == .busy)
    }

    @Test(arguments: ["GET", "PATCH", "PUT", "POST"]) func beforeTheStoreIsThereABodyIsRefusedByItsHead(method: String)
    {
        let entrance = Entrance()
        for path in ["/v1/tus/up-1", "/v1/parts/x", "/v1/uploads"] {
            guard
                case .refuse(let failure, _, let headers) = entrance.plan(
                    for: HTTPRequest(method: method, path: path, query: [:], headers: [:], peer: .remote))
            else {
                Issue.record("\(method) \(path) was not refused")
                continue
            }
            #expect(failure.code == .busy && headers.contains { $0.name == "Retry-After" })
        }
        guard
            case .collect = entrance.plan(
                for: HTTPRequest(method: "GET", path: "/healthz", query: [:], headers: [:], peer: .remote))
        else {
            Issue.record("whether it lives is always told")
            return
        }
    }
}
