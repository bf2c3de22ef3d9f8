import Foundation
import HTTPServer
import SQLite
import Testing
import Vocabulary

@testable import Backend

extension TestBackend {
    var register: TokenRegister {
        get async throws {
            try #require(try await TokenRegister.open(dataFolder: data, makes: false, clock: clock.read))
        }
    }

    /// A client with a token of its own.
    func client(
        of owner: String, shoot: String? = nil, seconds: Double? = nil
    ) async throws -> (client: TestClient, token: String) {
        let made = try await register.create(
            owner: owner, shoot: shoot, expiresAt: seconds.map { clock.read().adding(seconds: $0) })
        var client = client
        let token = try #require(made.token)
        client.headers["Authorization"] = "Bearer \(token)"
        return (client, token)
    }
}

@Suite struct TokenTests {
    static let local = ListenAddress.tcp(host: "127.0.0.1", port: 0)

    @Test func theLedgerKeepsNoTokenOnlyItsHash() async throws {
        let test = try await TestBackend(listen: Self.local)
        let (client, token) = try await test.client(of: "anna")
        #expect(try await client.request("GET", "/v1/items").status == 200)
        await test.backend.stop()
        let secret = try #require(token.split(separator: "_", maxSplits: 2).last)
        for name in try FileManager.default.contentsOfDirectory(atPath: test.data) where name.hasPrefix("ledger") {
            let bytes = try Data(contentsOf: URL(fileURLWithPath: test.data + "/" + name))
            #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(name)")
        }
        let listed = try await test.register.list()
        #expect(listed.map(\.owner) == ["anna"])
        #expect(listed.allSatisfy { $0.token == nil })
    }

    @Test func aTokenOpensNothingFromItsExpiryOn() async throws {
        let test = try await TestBackend(listen: Self.local)
        let (client, _) = try await test.client(of: "anna", seconds: 60)
        test.clock.advance(seconds: 59)
        #expect(try await client.request("GET", "/v1/items").status == 200)
        test.clock.advance(seconds: 1)
        let refused = try await client.request("GET", "/v1/items")
        #expect(refused.status == 401)
        #expect(refused.code == .unauthorized)
        #expect(try await test.register.list().map(\.state) == ["expired"])
        await test.backend.stop()
    }

    @Test func aRevokedTokenOpensNothingAtOnceAndTheOthersStillDo() async throws {
        let test = try await TestBackend(listen: Self.local)
        let (first, token) = try await test.client(of: "anna")
        let (second, _) = try await test.client(of: "anna")
        let name = String(token.split(separator: "_")[1])
        for _ in 0..<2 { #expect(try await test.register.revoke(name).state == "revoked") }
        #expect(try await first.request("GET", "/v1/items").status == 401)
        #expect(try await second.request("GET", "/v1/items").status == 200)
        await #expect(throws: Failure.self) { try await test.register.revoke("nosuchon") }
        await test.backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func anOpenStreamOfEventsEndsWithItsToken() async throws {
        var streams = EventStreams.Settings()
        streams.heartbeat = 0.05
        let test = try await TestBackend(listen: Self.local, streams: streams)
        let (_, token) = try await test.client(of: "anna")
        let stream = try TestEventStream(test.backend.address, token: token)
        #expect(await stream.blocks.first { $0.contains("heartbeat") } != nil)
        _ = try await test.register.revoke(String(token.split(separator: "_")[1]))
        #expect(await !stream.blocks.contains(TestEventStream.silence))
        await test.backend.stop()
    }

    @Test func overTCPOnlySignedURLsAndTheSignsOfHealthNeedNoToken() async throws {
        let test = try await TestBackend(listen: Self.local)
        let file = try TestFile("up-1")
        let open: [(String, String, Int)] = [
            ("GET", "/healthz", 200), ("GET", "/readyz", 200), ("PUT", "/v1/parts/x", 403), ("GET", "/v1/media/x", 403),
        ]
        for (method, path, status) in open {
            #expect(try await test.client.request(method, path).status == status, "\(method) \(path)")
        }
        let closed = [
            ("POST", "/v1/uploads"), ("POST", "/v1/uploads/u/part-urls"), ("GET", "/v1/uploads/u/parts"),
            ("HEAD", "/v1/uploads/u"), ("POST", "/v1/uploads/u/complete"), ("POST", "/v1/uploads/u/reopen"),
            ("DELETE", "/v1/uploads/u"), ("PUT", "/v1/items/i"), ("GET", "/v1/items/i"), ("DELETE", "/v1/items/i"),
            ("GET", "/v1/items"), ("GET", "/v1/items/i/playback"), ("GET", "/v1/events"),
            ("POST", "/v1/storage-events"), ("GET", "/metrics"),
        ]
        for (method, path) in closed {
            #expect(try await test.client.request(method, path).status == 401, "\(method) \(path)")
        }
        // A part's URL is the permission itself.
        let (client, _) = try await test.client(of: "anna")
        let session = try await client.open(file)
        let url = try #require(session.urls["1"])
        #expect(try await test.client.request("PUT", url, body: Data(file.bytes)).status == 200)
        await test.backend.stop()
    }

    @Test func onTheUnixSocketTheUserNeedsNoTokenButAWrongOneIsNotOverlooked() async throws {
        let test = try await TestBackend()
        #expect(try await test.client.request("GET", "/v1/items").status == 200)
        var wrong = test.client
        wrong.headers["Authorization"] = "Bearer rushes_aaaaaaaa_x"
        #expect(try await wrong.request("GET", "/v1/items").status == 401)
        await test.backend.stop()
    }

    @Test func aTokenOfOneShootWritesAndReadsThatShootAlone() async throws {
        let test = try await TestBackend(listen: Self.local)
        let (everything, _) = try await test.client(of: "anna")
        let (party, _) = try await test.client(of: "anna", shoot: "party")
        let (wedding, _) = try await test.client(of: "anna", shoot: "wedding")
        let file = try TestFile("up-1")
        try await wedding.upload(file)
        _ = try await wedding.attach(file)
        _ = try await wedding.item(file.item) { $0.state == .ready }
        let pending = try TestFile("up-2", item: "item-2", Array("on its way".utf8))
        _ = try await everything.open(pending)

        // What is there is not there for the other token, whether it is attached yet or not.
        let requests: [(String, String, any Encodable & Sendable)] = [
            ("GET", "/v1/items/item-1", ""), ("DELETE", "/v1/items/item-1", ""),
            ("GET", "/v1/items/item-1/playback", ""),
            ("PUT", "/v1/items/item-1", AttachRequest(kind: nil, shoot: "party", uploads: [])),
            ("GET", "/v1/uploads/up-1/parts", ""), ("DELETE", "/v1/uploads/up-1", ""),
            ("GET", "/v1/uploads/up-2/parts", ""), ("DELETE", "/v1/uploads/up-2", ""),
            ("POST", "/v1/uploads/up-2/complete", pending.complete()),
            ("POST", "/v1/uploads/up-2/reopen", ReopenUploadRequest(generation: 1)),
            ("POST", "/v1/uploads/up-2/part-urls", PartURLsRequest(generation: 1, parts: pending.parts)),
        ]
        for (method, path, message) in requests {
            let answer = try await party.send(method, path, message)
            #expect(answer.status == 404, "\(method) \(path)")
        }
        #expect(try await party.request("HEAD", "/v1/uploads/up-2").status == 404)
        // An upload of another shoot cannot be taken over into an item of one's own.
        var stolen = file.attach
        stolen.shoot = "party"
        #expect(try await party.send("PUT", "/v1/items/item-3", stolen).status == 404)
        // Another shoot by its name is refused as such.
        for (method, path, message) in [
            ("POST", "/v1/uploads", file.open), ("PUT", "/v1/items/item-3", file.attach),
            ("GET", "/v1/items?shoot=wedding", ""), ("GET", "/v1/events?shoot=wedding", ""), ("GET", "/metrics", ""),
        ] as [(String, String, any Encodable & Sendable)] {
            let answer = try await party.send(method, path, message)
            #expect(answer.status == 403, "\(method) \(path)")
            #expect(answer.code == .forbidden)
        }
        // Without a name its own shoot is meant.
        #expect(try await party.request("GET", "/v1/items").decoded(ItemPage.self).items.isEmpty)
        #expect(try await wedding.request("GET", "/v1/items").decoded(ItemPage.self).items.count == 1)
        #expect(try await wedding.request("GET", "/v1/uploads/up-2/parts").status == 200)
        await test.backend.stop()
    }

    @Test func aHashIsNoKeyToTheBytesOfAnotherShoot() async throws {
        let test = try await TestBackend(listen: Self.local)
        let (everything, _) = try await test.client(of: "anna")
        let (party, _) = try await test.client(of: "anna", shoot: "party")
        let (wedding, _) = try await test.client(of: "anna", shoot: "wedding")
        let file = try TestFile("up-1")
        try await everything.upload(file)
        _ = try await everything.attach(file)
        _ = try await everything.item(file.item) { $0.state == .ready }
        var claim = try TestFile("up-2", item: "item-2").open
        claim.shoot = "party"
        let session: UploadSession = try await party.send("POST", "/v1/uploads", claim).decoded()
        #expect(!session.alreadyStored && session.state == .open)
        // Who may see them has them at once.
        #expect(try await wedding.open(try TestFile("up-3", item: "item-3")).alreadyStored)
        await test.backend.stop()
    }

    @Test func aStreamOfEventsHoldsTheTokensShootAlone() async throws {
        let test = try await TestBackend(listen: Self.local)
        let (everything, _) = try await test.client(of: "anna")
        let (_, party) = try await test.client(of: "anna", shoot: "party")
        let (_, wedding) = try await test.client(of: "anna", shoot: "wedding")
        let others = try TestEventStream(test.backend.address, last: "0", token: party)
        let own = try TestEventStream(test.backend.address, last: "0", token: wedding)
        #expect(await others.blocks.first { $0.hasPrefix("retry: ") } != nil)
        let file = try TestFile("up-1")
        try await everything.upload(file)
        _ = try await everything.attach(file)
        #expect(await own.events(2).count == 2)
        await test.backend.stop()
        for await block in others.blocks { #expect(!block.contains("event: item")) }
    }

    @Test func whatCannotBeAnOwnerAShootOrATimeMakesNoToken() async throws {
        let test = try await TestBackend()
        let register = try await test.register
        let long = String(repeating: "x", count: 300)
        let past = test.clock.read()
        for (owner, shoot, end) in [
            ("", nil, nil), (long, nil, nil), ("a\nb", nil, nil), (nil, "", nil), (nil, long, nil), (nil, "a\0", nil),
            (nil, nil, past),
        ] as [(String?, String?, Timestamp?)] {
            let failure = await #expect(throws: Failure.self) {
                try await register.create(owner: owner, shoot: shoot, expiresAt: end)
            }
            #expect(failure?.code == .usage)
        }
        #expect(try await register.list().isEmpty)
        #expect(try await TokenRegister.open(dataFolder: test.scratch.path + "/none", makes: false) == nil)
        await test.backend.stop()
    }

    @Test func theTextOfATokenIsReadNarrowly() {
        let token = AccessToken.make()
        #expect(AccessToken(token.text) == token)
        #expect(AccessToken(authorization: "bearer \(token.text)") == token)
        for text in [
            "", "rushes", "rushes__", String(token.text.dropLast()), token.text + "A", token.text.uppercased(),
            token.text.replacing("rushes", with: "rushed"), token.text + "\n", " " + token.text,
        ] { #expect(AccessToken(text) == nil, "\(text)") }
    }
}
