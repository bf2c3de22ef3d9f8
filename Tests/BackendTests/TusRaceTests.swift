import Files
import Foundation
import HTTPServer
import Synchronization
import Testing
import Vocabulary

@testable import Backend

/// What several requests, or a disk that fails, do to one upload.
@Suite(.timeLimit(.minutes(3))) struct TusRaceTests {
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
            try await locks.holding(id, of: .local) { () throws(Failure) in
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

    @Test func oneOwnersSilenceLeavesRoomForOthers() async throws {
        let said = Mutex<[String]>([])
        let test = try await TestBackend(
            listen: .tcp(host: "127.0.0.1", port: 0), log: { line in said.withLock { $0.append(line) } })
        let ben = TusClient(client: try await test.client(of: "ben").client)
        let anna = TusClient(client: try await test.client(of: "anna").client)
        var silent: [OpenRequest] = []
        for _ in 1...Tus.receptionsMax {
            let path = try await ben.created(21)
            silent.append(
                try OpenRequest(
                    ben.client, "PATCH", path,
                    ben.client.headers.merging(TusClient.patch(0).merging(["Content-Length": "21"]) { $1 }) { $1 }))
            try await silent.last?.send([1])
        }
        // One of them is refused, at least; none is needed for another owner.
        let path = try await anna.created(21)
        #expect(try await anna.patch(path, at: 0, [UInt8](repeating: 7, count: 21)).status == 204)
        for request in silent { request.hangUp() }
        await test.backend.stop()
        #expect(said.withLock { $0.filter { $0.contains("PATCH") } } == [])
    }

    @Test func aCreationThatIsRefusedLeavesNothing() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let type = ["Content-Type": "application/offset+octet-stream", "Upload-Length": "5"]
        #expect(try await backend.tus.create(type, body: Data([1, 2, 3, 4, 5, 6])).status == 413)
        let sum = type.merging(["Upload-Checksum": "md5 AAAAAAAAAAAAAAAAAAAAAA=="]) { $1 }
        #expect(try await backend.tus.create(sum, body: Data([1, 2, 3])).status == 460)
        // Longer than it is to be, and than it says.
        var head = "POST /v1/tus HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
        for (name, value) in type.merging(TusClient.version, uniquingKeysWith: { $1 }) {
            head += "\(name): \(value)\r\n"
        }
        let said = try await backend.tus.client.exchange(Data((head + "\r\n6\r\nabcdef\r\n0\r\n\r\n").utf8))
        #expect(String(decoding: said, as: UTF8.self).hasPrefix("HTTP/1.1 413"))
        // Cut off.
        try await backend.tus.client.abandon(
            Data(
                (head.replacingOccurrences(of: "Transfer-Encoding: chunked", with: "Content-Length: 5") + "\r\nabc")
                    .utf8))
        let ledger = try await SQLiteLedger.open(backend.test.data + "/ledger.sqlite")
        while try await !ledger.openTusUploads(after: nil, limit: 9).isEmpty {
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(try await backend.test.client.request("GET", "/v1/items").decoded(ItemPage.self).items.isEmpty)
        try await backend.stop()
    }

    @Test func aBodyWithAChecksumIsBoundedAlsoWhereItDoesNotSayHowLongItIs() async throws {
        let scratch = try ScratchFolder()
        let spool = try TusSpool(number: 1, capacity: 100, in: scratch.path)
        let patch = try Tus.Patch(["upload-offset": "0", "upload-checksum": "md5 AAAAAAAAAAAAAAAAAAAAAA=="])
        let reception = TusReception.begin(patch, checkedBytesMax: 8) { reception throws(Failure) in
            _ = await reception.fill(spool)
            throw Failure(.incomplete, "It was not all there.")
        }
        while !reception.isReady { await Task.yield() }
        let bytes = [UInt8](repeating: 7, count: 6)
        #expect(try bytes.withUnsafeBytes { try reception.receive($0) } == 6)
        #expect(try bytes.withUnsafeBytes { try reception.receive($0) } == 2)
        let refusal = #expect(throws: Failure.self) { try bytes.withUnsafeBytes { try reception.receive($0) } }
        #expect(refusal?.code == .bodyTooLarge)
        reception.end(.broken)
        await #expect(throws: Failure.self) { try await reception.outcome() }
        // One that ends there is as long as it may be.
        #expect(spool.count == 8)
    }

    /// A body on its way that nothing has come of.
    private func waiting(_ scratch: ScratchFolder, _ number: Int) async throws -> TusReception {
        let spool = try TusSpool(number: number, capacity: 100, in: scratch.path)
        let reception = TusReception.begin(try Tus.Patch(["upload-offset": "0"])) { reception throws(Failure) in
            _ = await reception.fill(spool)
            throw Failure(.incomplete, "It was not all there.")
        }
        while !reception.isReady { await Task.yield() }
        return reception
    }

    @Test func whoIsSilentGivesUpItsPlaceWhereNoneIsFree() async throws {
        let (scratch, locks, start) = (try ScratchFolder(), TusLocks(), ContinuousClock.now)
        let (ben, anna) = (Owner(rawValue: "ben"), Owner(rawValue: "anna"))
        let (held, isOver) = (Tally(), Tally())
        let tasks = try await (0..<Tus.receptionsMax).asyncMap { number in
            let reception = try await waiting(scratch, number)
            let id = try #require(UploadID(rawValue: "up-\(number)"))
            let owner = number < Tus.receptionsOfOneOwnerMax ? ben : anna
            return (
                reception,
                Task {
                    try await locks.holding(id, of: owner, for: reception) { () throws(Failure) in
                        held.add()
                        while isOver.count == 0 { try? await Task.sleep(for: .milliseconds(5)) }
                    }
                }
            )
        }
        while held.count < Tus.receptionsMax { await Task.yield() }
        func enter(_ id: String, _ owner: Owner, at now: ContinuousClock.Instant) async throws -> FailureCode? {
            let id = try #require(UploadID(rawValue: id))
            do throws(Failure) {
                try await locks.holding(id, of: owner, at: now) { () throws(Failure) in }
            } catch { return error.code }
            return nil
        }
        let claire = Owner(rawValue: "claire")
        // Whatever that took: not so long after the last was heard of.
        #expect(try await enter("up-a", claire, at: start + .seconds(Tus.silenceMax)) == .busy)
        #expect(tasks.count { $0.0.isBroken } == 0)
        #expect(try await enter("up-b", claire, at: .now + .seconds(Tus.silenceMax + 1)) == nil)
        #expect(tasks.count { $0.0.isBroken } == 1)
        // An owner's own silence is what makes way for it.
        #expect(try await enter("up-c", anna, at: .now + .seconds(Tus.silenceMax + 1)) == nil)
        let broken = tasks.enumerated().filter { $0.element.0.isBroken }.map(\.offset)
        #expect(broken.contains { $0 >= Tus.receptionsOfOneOwnerMax })
        isOver.add()
        for (reception, task) in tasks {
            reception.breakOff()
            _ = await task.result
        }
        await locks.idle()
    }

    @Test func whatIsStoppedTakesNoMore() async throws {
        let locks = TusLocks()
        await locks.stop()
        let failure = await #expect(throws: Failure.self) {
            try await locks.holding(try #require(UploadID(rawValue: "up-1")), of: .local) { () throws(Failure) in }
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

extension Sequence {
    fileprivate func asyncMap<Value>(_ body: (Element) async throws -> Value) async rethrows -> [Value] {
        var values: [Value] = []
        for element in self { values.append(try await body(element)) }
        return values
    }
}

private final class Tally: Sendable {
    private let number = Mutex(0)
    var count: Int { number.withLock { $0 } }
    func add() { number.withLock { $0 += 1 } }
}
