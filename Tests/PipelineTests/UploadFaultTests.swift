import Curl
import Digests
import Files
import Foundation
import Glibc
import Ingest
import Synchronization
import Testing
import Vocabulary

@Suite(.timeLimit(.minutes(3))) struct UploadFaultTests {
    private static let page = HTTPResponse(
        status: 200, headers: ["Content-Type": "text/html"], body: Array("<html>Welcome, guest</html>".utf8))
    private static let silence = Failure(.backendUnreachable, "The network is down.", detail: "bent")
    private static func s3(_ status: Int, _ code: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "application/xml"],
            body: Array("<Error><Code>\(code)</Code><Message></Message></Error>".utf8))
    }

    /// A clip of three parts through this network, to its end.
    private func send(
        _ network: BentNetwork, _ stage: Stage, clipSize: Int = 20 << 20
    ) async throws -> ItemStatus {
        try stage.write("a.mp4", .video, size: clipSize)
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        return try #require(items.first)
    }

    @Test func aLostAnswerToCompleteIsAskedForAgainAndNothingIsSentTwice() async throws {
        let stage = try await Stage()
        let network = BentNetwork { request, before, send throws(Failure) in
            let answer = try await send(request)
            if request.kind == .complete, before == 0 { throw Self.silence }
            return answer
        }
        let item = try await send(network, stage)
        #expect(item.state == .ready && item.generation == 1)
        #expect(network.count(.complete) == 2 && network.count(.reopen) == 0)
        #expect(network.sent == ["1.1": 1, "1.2": 1, "1.3": 1])
        try await stage.end()
    }

    /// As with the token of another shoot.
    @Test func whatTheBackendDoesNotKnowForAWhileIsNotSentAgain() async throws {
        let stage = try await Stage()
        let isForgotten = Mutex(false)
        let unknown = HTTPResponse(
            status: 404, headers: ["Content-Type": "application/problem+json"],
            body: Array(try JSON.encode(Problem(Failure(.notFound, "There is no such thing here.")))))
        let network = BentNetwork { request, before, send throws(Failure) in
            if request.kind == .complete, before == 0 { isForgotten.withLock { $0 = true } }
            if request.kind == .open { isForgotten.withLock { $0 = false } }
            return isForgotten.withLock { $0 } ? unknown : try await send(request)
        }
        let item = try await send(network, stage)
        #expect(item.state == .ready && network.count(.open) == 2)
        #expect(network.sent == ["1.1": 1, "1.2": 1, "1.3": 1])
        try await stage.end()
    }

    @Test func aRefusedURLIsSignedAgainForThatPartOnly() async throws {
        let stage = try await Stage()
        let network = Self.refusing(once: "1.2", Self.s3(403, "AccessDenied"))
        let item = try await send(network, stage)
        #expect(item.state == .ready && item.generation == 1)
        #expect(network.signed == [[2]])
        #expect(network.sent == ["1.1": 1, "1.2": 2, "1.3": 1])
        try await stage.end()
    }

    @Test(arguments: [nil, "W/\"0123\"", "\"0123-gzip\""]) func aStoreMaySpellETagsAsItLikes(etag: String?) async throws
    {
        let stage = try await Stage()
        let network = BentNetwork { request, _, send throws(Failure) in
            var answer = try await send(request)
            if request.kind == .part { answer.headers["ETag"] = etag }
            return answer
        }
        let item = try await send(network, stage)
        #expect(item.state == .ready && item.generation == 1)
        #expect(network.sent == ["1.1": 1, "1.2": 1, "1.3": 1])
        // What the store lists is right, whatever it said before.
        #expect(network.count(.complete) == (etag == nil ? 1 : 2))
        try await stage.end()
    }

    @Test func aPartThatFindsNoSessionAsksTheBackendAndTheRestIsSentInTheSameGeneration() async throws {
        let stage = try await Stage()
        let network = Self.refusing(once: "1.2", Self.s3(404, "NoSuchUpload"))
        let item = try await send(network, stage, clipSize: 60 << 20)
        #expect(item.state == .ready)
        #expect(network.count(.reopen) == 1)
        // Only the one that had come to nothing.
        #expect(network.sent == Dictionary(uniqueKeysWithValues: (1...8).map { ("1.\($0)", $0 == 2 ? 2 : 1) }))
        try await stage.end()
    }

    /// What a proxy says while the backend behind it is being started again.
    static let unknownPage = HTTPResponse(
        status: 404, headers: ["Content-Type": "text/plain; charset=utf-8"], body: Array("404 page not found\n".utf8))

    @Test(arguments: [page, unknownPage, HTTPResponse(status: 401)])
    func whatSomethingOnTheWaySaysCountsAsNoBodysWord(answer: HTTPResponse) async throws {
        let stage = try await Stage()
        let network = BentNetwork { request, before, send throws(Failure) in
            // The first answer to every kind of request is not of the backend or the store.
            before == 0 ? answer : try await send(request)
        }
        let item = try await send(network, stage)
        #expect(item.state == .ready && item.generation == 1)
        #expect(network.count(.complete) == 2 && network.count(.attach) == 2 && network.count(.open) == 2)
        try await stage.end()
    }

    static let everybodys: [(HTTPResponse, FailureCode)] = [
        (s3(403, "QuotaExceeded"), .quotaExceeded), (HTTPResponse(status: 507), .quotaExceeded),
        (s3(403, "RequestTimeTooSkewed"), .clockSkewed), (s3(403, "InvalidAccessKeyId"), .backendError),
        (HTTPResponse(status: 302, headers: ["Location": "https://login.venue.example/"]), .redirected),
        (page, .foreignAnswer), (s3(200, "InternalError"), .backendError), (s3(200, "SlowDown"), .busy),
        (s3(403, "AccessDenied"), .backendError), (s3(403, "SignatureDoesNotMatch"), .backendError),
        (unknownPage, .foreignAnswer),
    ]

    @Test(arguments: everybodys.indices) func whatIsEverybodysFaultAtTheStoreBurnsNoAttempts(index: Int) async throws {
        let (answer, code) = Self.everybodys[index]
        let stage = try await Stage()
        for seed in 0..<3 { try stage.write("\(seed).jpg", .photo, size: 1000, seed: seed) }
        let network = BentNetwork { request, _, send throws(Failure) in
            request.kind == .part ? answer : try await send(request)
        }
        let box = try await Box.open(stage.settings(network, patience: 0.5))
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        let failure = await #expect(throws: Failure.self) {
            try await box.run(until: .itemsFinal(report.items)) { _ in }
        }
        #expect(failure?.code == code)
        for item in report.items { #expect(try await box.show(item).attempts == 0) }
        let (_, items) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(items.map(\.state) == Array(repeating: .ready, count: 3))
        #expect(items.allSatisfy { $0.generation == 1 })
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(3))) func smallItemsOpenTheirSessionsWhileTheFirstFourPartsAreStillOnTheirWay()
        async throws
    {
        let stage = try await Stage()
        let count = 10
        for seed in 0..<count { try stage.write("\(seed).jpg", .photo, size: 1000, seed: seed) }
        let (allOpen, opened) = (Signal(), Tally())
        let inFlight = Mutex((now: 0, most: 0))
        let network = BentNetwork { request, _, send throws(Failure) in
            guard request.kind == .part else {
                let answer = try await send(request)
                if request.kind == .open, opened.next() == count { allOpen.give() }
                return answer
            }
            inFlight.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1)) }
            defer { inFlight.withLock { $0.now -= 1 } }
            await allOpen.wait()
            return try await send(request)
        }
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        #expect(items.count == count && items.allSatisfy { $0.state == .ready })
        #expect((1...4).contains(inFlight.withLock { $0.most }))
        try await stage.end()
    }

    @Test func aFilterThatRefusesOneFileHoldsUpNoOther() async throws {
        let stage = try await Stage()
        let bad = try stage.write("bad.jpg", .photo, size: 1000, seed: 1)
        for seed in 2..<6 { try stage.write("\(seed).jpg", .photo, size: 1000, seed: seed) }
        let md5 = Digest.contentMD5(try OpenFile.reading(bad).read(count: 1 << 20, at: 0))
        let network = BentNetwork { request, _, send throws(Failure) in
            request.headers["Content-MD5"] == md5 ? Self.page : try await send(request)
        }
        var settings = stage.settings(network, patience: nil)
        settings.clock.sleep = { seconds in try? await Task.sleep(for: .seconds(seconds / 200)) }
        let box = try await Box.open(settings)
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        let done = Signal()
        let ready = Mutex<Set<ItemID>>([])
        let run = Task {
            try await box.run(until: .stopped) { event in
                guard case .item(let progress) = event, progress.state == .ready else { return }
                let count = ready.withLock { ready in
                    ready.insert(progress.id)
                    return ready.count
                }
                if count == 4 { done.give() }
            }
        }
        await done.wait()
        run.cancel()
        _ = try? await run.value
        #expect(try await box.items(report.items).filter { $0.state == .ready }.count == 4)
        let (_, items) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(items.allSatisfy { $0.state == .ready })
        try await stage.end()
    }

    /// What happens to the staged file between two of its parts.
    enum Mishap: CaseIterable { case changed, replaced, cut, gone }

    @Test(arguments: Mishap.allCases) func aStagedFileThatChangesOnTheWayIsTakenAgainBeforeItIsSealed(mishap: Mishap)
        async throws
    {
        let stage = try await Stage()
        let network = BentNetwork { request, before, send throws(Failure) in
            let answer = try await send(request)
            if request.kind == .part, before == 1, let path = stage.onlyStagedOriginal {
                do { try Self.harm(path, mishap) } catch {
                    throw Failure(.internalError, "The test could not harm the file.", detail: "\(error)")
                }
            }
            return answer
        }
        let item = try await send(network, stage, clipSize: 40 << 20)
        #expect(item.state == .ready && item.generation == 2)
        // What was half sent was given up, not sealed.
        #expect(network.count(.complete) == 1 && network.count(.abort) == 1)
        let box = try await Box.open(stage.settings())
        let original = try await box.show(item.item).files.first { $0.role == .original }
        #expect(original?.confirmedSHA256 == (try Files.sha256(of: .reading(stage.scratch.path + "/card/a.mp4"))))
        try await stage.end()
    }

    @Test func aFileThatIsGoneHereAndAtItsSourceIsMissingAndHoldsUpNoOther() async throws {
        let stage = try await Stage()
        let source = try stage.write("a.mp4", .video, size: 40 << 20)
        let network = BentNetwork { request, before, send throws(Failure) in
            let answer = try await send(request)
            if request.kind == .part, before == 1, let path = stage.onlyStagedOriginal {
                do {
                    try FileManager.default.removeItem(atPath: path)
                    try FileManager.default.removeItem(atPath: source)
                } catch { throw Failure(.internalError, "The test could not remove the file.", detail: "\(error)") }
            }
            return answer
        }
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        #expect(items.map(\.state) == [.missing])
        #expect(network.count(.complete) == 0)
        try stage.write("b.jpg", .photo, size: 1000, seed: 3)
        let (_, others) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(others.map(\.state) == [.ready])
        await stage.backend.backend.stop()
    }

    /// Answers a part itself, the first time that it comes.
    private static func refusing(once part: String, _ answer: HTTPResponse) -> BentNetwork {
        let tries = Tally()
        return BentNetwork { request, _, send throws(Failure) in
            request.partName == part && tries.next() == 1 ? answer : try await send(request)
        }
    }

    private static func harm(_ path: String, _ mishap: Mishap) throws {
        switch mishap {
        case .changed:
            let file = FileHandle(forUpdatingAtPath: path)
            try file?.seek(toOffset: 1000)
            file?.write(Data([1, 2, 3]))
            try file?.seek(toOffset: 38 << 20)
            file?.write(Data([1, 2, 3]))
            try file?.close()
        case .replaced:
            let size = try Files.facts(path)?.size ?? 0
            try FileManager.default.removeItem(atPath: path)
            try Files.write(Pattern.bytes(size, seed: 99), to: path)
        case .cut: truncate(path, 10 << 20)
        case .gone: try FileManager.default.removeItem(atPath: path)
        }
    }
}
