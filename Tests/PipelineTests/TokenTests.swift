import Backend
import Curl
import Files
import Foundation
import HTTPServer
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

@testable import rushes

/// A backend over TCP whose clock the test moves, and a box that has its token from a file.
private struct TokenHouse {
    let scratch: ScratchFolder
    let backend: RunningBackend
    let register: TokenRegister
    let skipped = Skipped()
    var tokenFile: String { scratch.path + "/token" }
    var home: String { scratch.path + "/home" }

    final class Skipped: Sendable {
        private let seconds = Mutex(0.0)
        var clock: @Sendable () -> Timestamp { { Timestamp.system().adding(seconds: self.seconds.withLock { $0 }) } }
        func forward(seconds: Double) { self.seconds.withLock { $0 += seconds } }
    }

    init() async throws {
        scratch = try ScratchFolder()
        let folder = scratch.path + "/b"
        try Files.makeFolder(folder)
        let settings = BackendSettings(
            dataFolder: folder + "/data", listen: .tcp(host: "127.0.0.1", port: 0), media: Media.jobs,
            clock: skipped.clock)
        let started = try await Backend.start(settings)
        backend = RunningBackend(backend: started, folder: folder, socket: "")
        register = try #require(
            try await TokenRegister.open(dataFolder: folder + "/data", makes: false, clock: skipped.clock))
        try Files.makeFolder(scratch.path + "/card")
    }

    /// Into the file that the box has it from.
    func renew(seconds: Double? = nil, shoot: String? = nil) async throws {
        let made = try await register.create(
            owner: "anna", shoot: shoot, expiresAt: seconds.map { skipped.clock().adding(seconds: $0) })
        try Files.write(Array((try #require(made.token) + "\n").utf8), to: tokenFile)
    }

    func settings(_ transport: any UploadTransport) throws -> IngestSettings {
        guard case .tcp(_, let port) = backend.backend.address else { throw Failure(.internalError, "no port") }
        let configuration = try Configuration(
            environment: ["HOME": scratch.path, "RUSHES_TOKEN_FILE": tokenFile]
        ) { _ throws(Failure) in nil }
        var settings = IngestSettings(
            home: home, server: .remote(url: "http://127.0.0.1:\(port)"), media: .running(Media.jobs),
            transport: transport
        ) { () throws(Failure) -> String? in try configuration.currentToken() }
        settings.isTokenRenewed = true
        settings.random = .seeded(3)
        settings.bounds.spaceMarginBytes = 1 << 20
        settings.clock.sleep = { seconds in try? await Task.sleep(for: .seconds(seconds / 20)) }
        return settings
    }

    func write(_ name: String, _ kind: Media, size: Int, seed: Int) throws {
        try Files.write(try kind.bytes(padding: size, seed: seed), to: scratch.path + "/card/" + name)
    }

    func end() async throws {
        #expect(try await BoxCheck.run(home: home) == [])
        await backend.backend.stop()
        #expect(try await backend.check() == [])
    }
}

@Suite(.timeLimit(.minutes(2))) struct TokenTests {
    @Test func aTokenThatExpiresInTheMiddleIsReadAgainAndTheIngestGoesOn() async throws {
        let house = try await TokenHouse()
        try house.write("a.mp4", .video, size: 20 << 20, seed: 1)
        for index in 0..<3 { try house.write("p\(index).jpg", .photo, size: 3000, seed: 2 + index) }
        try await house.renew(seconds: 600)
        let parts = Tally()
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            // With the first part on its way the old one ends; the file has the next one already.
            guard request.headers["Content-MD5"] != nil, parts.next() == 1 else { return nil }
            try? await house.renew()
            house.skipped.forward(seconds: 601)
            return nil
        }
        let (states, waits, attempts) = try await ingest(house, network)
        #expect(states == Array(repeating: .ready, count: 4))
        #expect(waits == [])
        #expect(attempts == [0, 0, 0, 0])
        #expect(parts.next() > 1, "the token never ended: the test shows nothing")
        #expect(network.sentAgain == [])
        try await house.end()
    }

    @Test func aTokenThatStaysExpiredPausesEverythingWithOneReasonAndNobodysAttempt() async throws {
        let house = try await TokenHouse()
        try house.write("a.mp4", .video, size: 20 << 20, seed: 1)
        for index in 0..<3 { try house.write("p\(index).jpg", .photo, size: 3000, seed: 2 + index) }
        try await house.renew(seconds: 600)
        let parts = Tally()
        // More refusals than any item has attempts, before somebody comes.
        let isRefusedOften = Signal()
        let refusals = Tally()
        let http = BentNetwork { request, _, send throws(Failure) in
            let answer = try await send(request)
            if answer.status == 401, refusals.next() == 12 { isRefusedOften.give() }
            return answer
        }
        let network = LossyTransport(http, seed: 1, chance: 0) { request in
            guard request.headers["Content-MD5"] != nil, parts.next() == 1 else { return nil }
            house.skipped.forward(seconds: 601)
            return nil
        }
        let (states, waits, attempts) = try await ingest(house, network) {
            await isRefusedOften.wait()
            try await house.renew()
        }
        #expect(states == Array(repeating: .ready, count: 4))
        #expect(waits.count == 2 && waits.first??.contains("token") == true && waits.last == .some(nil), "\(waits)")
        #expect(attempts == [0, 0, 0, 0])
        #expect(network.sentAgain == [])
        try await house.end()
    }

    @Test func aTokenOfAnotherShootIsEachItemsEndWithItsReasonAndStopsNothingElse() async throws {
        let house = try await TokenHouse()
        try house.write("p.jpg", .photo, size: 3000, seed: 2)
        try await house.renew(shoot: "wedding")
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0)
        let box = try await Box.open(try house.settings(network))
        for (shoot, state) in [("party", ItemState.failed), ("wedding", .ready)] {
            let report = try await box.enrol(
                PickRequest(paths: [RawPath(house.scratch.path + "/card")], shoot: shoot, prepare: .original))
            try await box.run(until: .itemsFinal(report.items)) { _ in }
            let items = try await box.items(report.items)
            #expect(items.map(\.state) == [state])
            #expect(items.first?.reason?.code == (state == .failed ? .forbidden : nil))
        }
        try await house.end()
    }

    /// - Parameter mend: called once when the box says that it waits.
    private func ingest(
        _ house: TokenHouse, _ network: LossyTransport, mend: @escaping @Sendable () async throws -> Void = {}
    ) async throws -> (states: [ItemState], waits: [String?], attempts: [Int]) {
        let box = try await Box.open(try house.settings(network))
        let report = try await box.enrol(
            PickRequest(paths: [RawPath(house.scratch.path + "/card")], shoot: "test", prepare: .original))
        let waits = Mutex<[String?]>([])
        let mending = Mutex<Task<Void, any Error>?>(nil)
        try await box.run(until: .itemsFinal(report.items)) { event in
            guard case .waiting(let reason) = event else { return }
            waits.withLock { $0.append(reason) }
            mending.withLock { if $0 == nil { $0 = Task { try await mend() } } }
        }
        try await mending.withLock { $0 }?.value
        var attempts: [Int] = []
        for id in report.items { attempts.append(try await box.show(id).attempts) }
        return (try await box.items(report.items).map(\.state), waits.withLock { $0 }, attempts)
    }
}

/// `rushes token`, as a person calls it.
@Suite(.timeLimit(.minutes(2))) struct TokenVerbTests {
    @Test func aTokenIsPrintedOnceListedWithoutItAndTakenBack() async throws {
        let scratch = try ScratchFolder()
        let environment = ["RUSHES_HOME": scratch.path + "/home"]
        try await onThread {
            let empty = try Programs.run(["token", "list", "--json"], environment)
            #expect(empty.status == 0 && empty.output.isEmpty)
            let made = try Programs.run(
                ["token", "create", "--owner", "anna", "--shoot", "Saturday", "--expires", "30d"], environment)
            #expect(made.status == 0, "\(made.errors)")
            let token = made.output.trimmingCharacters(in: .whitespacesAndNewlines)
            #expect(token.hasPrefix("rushes_") && !token.contains("\n"))
            #expect(!made.errors.contains(token))
            let name = String(token.split(separator: "_")[1])
            for words in [["token", "list"], ["token", "list", "--json"]] {
                let listed = try Programs.run(words, environment)
                #expect(listed.status == 0)
                for word in [name, "anna", "Saturday"] { #expect(listed.output.contains(word), "\(listed.output)") }
                #expect(!listed.output.contains(token))
            }
            let revoked = try Programs.run(["token", "revoke", name, "--json"], environment)
            #expect(revoked.output.contains("\"state\":\"revoked\""), "\(revoked.output)")
            let unknown = try Programs.run(["token", "revoke", "nosuch"], environment)
            #expect(unknown.status == 1 && unknown.errors.contains("“nosuch”"), "\(unknown.errors)")
            for words in [
                ["token"], ["token", "make"], ["token", "revoke"], ["token", "list", "x"],
                ["token", "list", "--owner", "a"], ["token", "create", "--expires", "yesterday"],
                ["token", "create", "--expires", "0d"], ["token", "create", "--expires", "2001-01-01T00:00:00Z"],
            ] {
                let wrong = try Programs.run(words, environment)
                #expect(wrong.status == 2, "\(words) \(wrong.errors)")
            }
        }
    }

    @Test(arguments: [
        ("45m", 2700.0), ("12h", 43200), ("30d", 2_592_000), ("4w", 2_419_200), ("1970-01-02T00:00:00Z", 85400),
        ("1970-01-01T02:00:00+01:00", 2600),
    ])
    func anEndIsADurationOrAMoment(text: String, seconds: Double) throws {
        let now = Date(timeIntervalSince1970: 1000)
        #expect(try Expiry.parse(text, now: now).timeIntervalSince(now) == seconds)
    }

    @Test(arguments: ["", "d", "-1d", "1.5h", "30", "9999999w", "2026-13-01T00:00:00Z", "0s", "1970-01-01T00:00:01Z"])
    func whatIsNoEndIsRefused(text: String) {
        let failure = #expect(throws: Failure.self) {
            try Expiry.parse(text, now: Date(timeIntervalSince1970: 1000))
        }
        #expect(failure?.code == .usage)
    }
}
