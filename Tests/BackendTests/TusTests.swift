import Digests
import Foundation
@testable import SQLite
import Testing
import Vocabulary

@testable import Backend

/// What tus 1.0.0 demands of a server, rule by rule (tus.io/protocols/resumable-upload), on each kind of store.
@Suite(.serialized) struct TusTests {
    typealias Kind = TusBackend.Kind
    /// Long enough for one part and more.
    private static let long = (0..<(8 << 20) + 70_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 9) }
    private static let short = Array("some bytes of a photo".utf8)

    // MARK: Core

    @Test func optionsTellVersionExtensionsAndBounds() async throws {
        let backend = try #require(try await TusBackend(.directory))
        for path in ["/v1/tus", "/v1/tus/", "/v1/tus/some-upload"] {
            // The version of the request does not matter here.
            let answer = try await backend.test.client.request("OPTIONS", path, headers: ["Tus-Resumable": "0.2.2"])
            #expect(answer.status == 204)
            #expect(answer.headers["tus-version"] == "1.0.0")
            #expect(answer.headers["tus-max-size"] == String(Tus.bytesMax))
            #expect(answer.headers["tus-checksum-algorithm"]?.split(separator: ",").contains("sha1") == true)
            #expect(
                answer.headers["tus-extension"]
                    == "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination")
        }
        try await backend.stop()
    }

    @Test(arguments: ["0.2.2", nil] as [String?]) func anotherVersionIsRefusedAndDoesNothing(version: String?)
        async throws
    {
        let backend = try #require(try await TusBackend(.directory))
        let path = try await backend.tus.created(10)
        let headers = version.map { ["Tus-Resumable": $0] } ?? [:]
        let patch = ["Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"]
        for (method, path, more) in [
            ("POST", "/v1/tus", ["Upload-Length": "1"]), ("HEAD", path, [:]), ("PATCH", path, patch),
            ("DELETE", path, [:]),
        ] {
            let answer = try await backend.test.client.request(
                method, path, body: method == "PATCH" ? Data("x".utf8) : Data(),
                headers: headers.merging(more) { $1 })
            #expect(answer.status == 412, "\(method)")
            #expect(answer.headers["tus-version"] == "1.0.0" && answer.headers["tus-resumable"] == "1.0.0")
        }
        #expect(try await backend.tus.offset(path) == 0)
        try await backend.stop(left: 1)
    }

    @Test(.timeLimit(.minutes(2)), arguments: Kind.allCases)
    func aFileInPiecesBecomesAnItemOfItsShootThatIsReady(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let (tus, bytes) = (backend.tus, Self.long)
        let metadata = TusClient.metadata([
            "filename": "CLIP_1.JPG", "filetype": "image/jpeg", "shoot": "wedding", "title": "The cake",
        ])
        let created = try await tus.create(["Upload-Length": String(bytes.count), "Upload-Metadata": metadata])
        #expect(created.status == 201 && created.headers["tus-resumable"] == "1.0.0")
        #expect(created.headers["upload-expires"]?.hasSuffix("GMT") == true)
        let path = try #require(created.headers["location"])
        // A tail, a tail that grows, a whole part with the next one's tail, the end.
        var offset = 0
        for end in [1000, 70_000, (8 << 20) + 5, bytes.count] {
            let head = try await tus.head(path)
            #expect(head.status == 200 && head.headers["upload-offset"] == String(offset))
            #expect(head.headers["upload-length"] == String(bytes.count) && head.headers["upload-metadata"] == metadata)
            #expect(head.headers["cache-control"] == "no-store" && head.headers["upload-defer-length"] == nil)
            let answer = try await tus.patch(path, at: offset, bytes[offset..<end])
            #expect(answer.status == 204 && answer.headers["tus-resumable"] == "1.0.0")
            #expect(answer.headers["upload-offset"] == String(end))
            #expect((answer.headers["upload-expires"] != nil) == (end < bytes.count))
            offset = end
        }
        let item = try await tus.item(path)
        #expect(item.shoot == "wedding" && item.kind == .photo && !item.renditions.isEmpty)
        let upload = try #require(item.uploads.first)
        #expect(upload.sha256Recomputed == Digest.sha256(bytes) && upload.sizeBytes == bytes.count)
        #expect(upload.role == .original && "/v1/tus/\(upload.uploadID)" == path)
        // What has ended stays as it is.
        #expect(try await tus.offset(path) == bytes.count)
        #expect(try await tus.patch(path, at: bytes.count, []).status == 204)
        #expect(try await tus.patch(path, at: bytes.count, [1]).status == 413)
        #expect(try await tus.patch(path, at: 0, bytes[..<10]).status == 409)
        try await backend.stop()
    }

    @Test func anotherOffsetOrContentTypeIsRefusedAndChangesNothing() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let tus = backend.tus
        let path = try await tus.created(20)
        #expect(try await tus.patch(path, at: 0, Self.short[..<5]).status == 204)
        for offset in [0, 4, 6, 20] {
            let answer = try await tus.patch(path, at: offset, Self.short[..<5])
            #expect(answer.status == 409 && answer.headers["tus-resumable"] == "1.0.0")
        }
        for type in ["application/octet-stream", "application/offset+octet-stream2", ""] {
            #expect(try await tus.patch(path, at: 5, [1], ["Content-Type": type]).status == 415)
        }
        #expect(try await tus.patch(path, at: 5, [1], ["Upload-Offset": "-5"]).status == 400)
        #expect(try await tus.offset(path) == 5)
        try await backend.stop(left: 1)
    }

    @Test func whatIsNotThereIsToldWithoutAnOffset() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let tus = backend.tus
        let file = try TestFile("up-1")
        _ = try await tus.client.open(file)
        // One that a box has opened is none of tus's.
        for path in ["/v1/tus/nobody", "/v1/tus/up-1"] {
            let head = try await tus.head(path)
            #expect(head.status == 404 && head.headers["upload-offset"] == nil)
            #expect(try await tus.patch(path, at: 0, [1]).status == 404)
            #expect(try await tus.end(path).status == 404)
        }
        #expect(try await tus.client.request("GET", "/v1/tus", headers: TusClient.version).status == 405)
        try await backend.stop(left: 1)
    }

    @Test func aProxysPostIsWhatItsHeaderSays() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let client = backend.test.client
        func ask(_ method: String, _ path: String, _ headers: [String: String], _ body: [UInt8] = []) async throws
            -> TestAnswer
        {
            let override = headers.merging(["X-HTTP-Method-Override": method]) { $1 }
            return try await client.request("POST", path, body: Data(body), headers: override)
        }
        let path = try await backend.tus.created(20)
        #expect(try await ask("PATCH", path, TusClient.patch(0), [1, 2, 3]).status == 204)
        #expect(try await ask("HEAD", path, TusClient.version).headers["upload-offset"] == "3")
        #expect(try await ask("DELETE", path, TusClient.version).status == 204)
        #expect(try await backend.tus.head(path).status == 410)
        try await backend.stop()
    }

    // MARK: Creation

    @Test(.timeLimit(.minutes(1)), arguments: Kind.allCases)
    func aFileWithoutBytesIsWholeAtOnce(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let path = try await backend.tus.created(0, ["filename": "nothing.jpg"])
        let item = try await backend.tus.item(path) { $0.state != .processing }
        #expect(item.uploads.first?.sha256Recomputed == Digest.sha256([]))
        #expect(try await backend.tus.offset(path) == 0)
        try await backend.stop()
    }

    @Test func aCreationThatCannotBeIsRefused() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let refused: [([String: String], Int)] = [
            ([:], 400), (["Upload-Length": "-1"], 400), (["Upload-Length": "x"], 400),
            (["Upload-Length": "1", "Upload-Defer-Length": "1"], 400), (["Upload-Defer-Length": "0"], 400),
            (["Upload-Length": "\(Tus.bytesMax + 1)"], 413),
            (["Upload-Length": "1", "Upload-Metadata": "filename !"], 400),
            (["Upload-Length": "1", "Upload-Metadata": "a YQ==,a YQ=="], 400),
            (["Upload-Length": "1", "Upload-Metadata": "a " + String(repeating: "YWFh", count: 4200)], 400),
            (
                [
                    "Upload-Length": "1",
                    "Upload-Metadata": TusClient.metadata(["filename": String(repeating: "n", count: 256)]),
                ], 400
            ),
            (
                [
                    "Upload-Length": "1",
                    "Upload-Metadata": TusClient.metadata(["title": String(repeating: "n", count: 4097)]),
                ], 400
            ),
        ]
        for (headers, status) in refused {
            let answer = try await backend.tus.create(headers)
            #expect(answer.status == status && answer.headers["location"] == nil, "\(headers)")
            #expect(answer.headers["tus-resumable"] == "1.0.0")
        }
        let endless = ["Upload-Length": "\(Int.max)", "Content-Type": Tus.contentType]
        #expect(try await backend.tus.create(endless, body: Data([1])).status == 413)
        try await backend.stop()
    }

    @Test func bytesMayComeWithTheCreation() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let type = ["Content-Type": "application/offset+octet-stream"]
        let first = try await backend.tus.create(
            type.merging(["Upload-Length": "21"]) { $1 }, body: Data(Self.short[..<9]))
        #expect(first.status == 201 && first.headers["upload-offset"] == "9")
        let path = try #require(first.headers["location"])
        #expect(try await backend.tus.patch(path, at: 9, Self.short[9...]).status == 204)
        let whole = try await backend.tus.create(
            type.merging(["Upload-Length": "21"]) { $1 }, body: Data(Self.short))
        #expect(whole.status == 201 && whole.headers["upload-offset"] == "21")
        for path in [path, try #require(whole.headers["location"])] {
            let item = try await backend.tus.item(path)
            #expect(item.uploads.first?.sha256Recomputed == Digest.sha256(Self.short))
            // Where nobody names a shoot, it is the day's.
            #expect(item.shoot == "2023-11-14")
        }
        #expect(try await backend.tus.create(["Upload-Length": "21"], body: Data(Self.short)).status == 415)
        try await backend.stop()
    }

    // MARK: Creation with a length that comes later

    @Test(.timeLimit(.minutes(1)), arguments: Kind.allCases)
    func aLengthThatIsPutOffComesWithAnyBodyAndStays(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let tus = backend.tus
        // The end is known with the last bytes, after them, or before.
        for (told, ends) in [(1, [9, 21]), (2, [9, 21, 21]), (0, [9, 21])] {
            let path = try await tus.created(nil)
            var offset = 0
            for (index, end) in ends.enumerated() {
                let head = try await tus.head(path)
                #expect(head.headers["upload-defer-length"] == (index > told ? nil : "1"))
                #expect(head.headers["upload-length"] == (index > told ? "21" : nil))
                let answer = try await tus.patch(
                    path, at: offset, Self.short[offset..<end], index == told ? ["Upload-Length": "21"] : [:])
                #expect(answer.status == 204 && answer.headers["upload-offset"] == String(end))
                offset = end
            }
            let item = try await tus.item(path)
            #expect(item.uploads.first?.sha256Recomputed == Digest.sha256(Self.short))
        }
        let path = try await tus.created(nil)
        #expect(try await tus.patch(path, at: 0, [1], ["Upload-Length": "21"]).status == 204)
        for length in ["20", "22"] {
            #expect(try await tus.patch(path, at: 1, [1], ["Upload-Length": length]).status == 400)
        }
        #expect(try await tus.end(path).status == 204)
        try await backend.stop()
    }

    @Test func aBodyBeyondTheEndIsRefused() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let tus = backend.tus
        let path = try await tus.created(10)
        #expect(try await tus.patch(path, at: 0, Self.short).status == 413)
        #expect(try await tus.offset(path) == 0)
        // Its length is not told before.
        var head = "PATCH \(path) HTTP/1.1\r\nHost: test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n"
        for (name, value) in TusClient.patch(0) { head += "\(name): \(value)\r\n" }
        let said = try await tus.client.exchange(Data((head + "\r\n15\r\nsome bytes of a photo\r\n0\r\n\r\n").utf8))
        #expect(String(decoding: said, as: UTF8.self).hasPrefix("HTTP/1.1 413"))
        #expect(String(decoding: said, as: UTF8.self).contains("Tus-Resumable: 1.0.0"))
        // What belongs to the file was kept, and has become it.
        #expect(try await tus.offset(path) == 10)
        try await backend.stop()
    }

    // MARK: Checksum

    @Test(.timeLimit(.minutes(1)), arguments: Kind.allCases)
    func ofABodyThatDoesNotHaveItsChecksumNothingIsKept(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let (tus, bytes) = (backend.tus, Self.long)
        let path = try await tus.created(bytes.count)
        let middle = (8 << 20) + 10
        func sum(_ algorithm: Digest.Algorithm, _ bytes: ArraySlice<UInt8>) -> String {
            let digest = Digest(algorithm)
            digest.update(Array(bytes))
            return digest.finalize().base64
        }
        let wrong = ["Upload-Checksum": "sha1 \(sum(.sha1, bytes[1..<middle]))"]
        let refused = try await tus.patch(path, at: 0, bytes[..<middle], wrong)
        #expect(refused.status == 460 && refused.headers["tus-resumable"] == "1.0.0")
        #expect(try await tus.offset(path) == 0)
        #expect(try await tus.patch(path, at: 0, bytes[..<9], ["Upload-Checksum": "crc32 AAAAAA=="]).status == 400)
        var offset = 0
        for (end, name, algorithm) in [
            (1000, "md5", Digest.Algorithm.md5), (middle, "sha1", .sha1), (bytes.count - 1, "sha256", .sha256),
            (bytes.count, "sha512", .sha512),
        ] {
            let right = ["Upload-Checksum": "\(name) \(sum(algorithm, bytes[offset..<end]))"]
            let answer = try await tus.patch(path, at: offset, bytes[offset..<end], right)
            #expect(answer.status == 204 && answer.headers["upload-offset"] == String(end))
            offset = end
        }
        let item = try await tus.item(path)
        #expect(item.uploads.first?.sha256Recomputed == Digest.sha256(bytes))
        try await backend.stop()
    }

    // MARK: One at a time, and what is cut off

    @Test(.timeLimit(.minutes(1)), arguments: Kind.allCases)
    func whileABodyComesInOthersAreLockedOutAndWhatCameIsKept(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let (tus, bytes) = (backend.tus, Self.long)
        let path = try await tus.created(bytes.count)
        let sending = try OpenRequest(
            tus.client, "PATCH", path, TusClient.patch(0).merging(["Content-Length": String(bytes.count)]) { $1 })
        try await sending.send(bytes[..<((8 << 20) + 333)])
        try await backend.taken((8 << 20) + 333, by: path)
        // The first part is recorded while the rest is still to come.
        #expect(try await tus.offset(path) == 8 << 20)
        let answer = try await tus.patch(path, at: 8 << 20, [1])
        #expect(answer.status == 423 && answer.headers["tus-resumable"] == "1.0.0")
        #expect(try await tus.end(path).status == 423)
        sending.hangUp()
        await backend.locks.idle()
        #expect(try await tus.offset(path) == (8 << 20) + 333)
        #expect(try await tus.patch(path, at: (8 << 20) + 333, bytes[((8 << 20) + 333)...]).status == 204)
        #expect(try await tus.item(path).uploads.first?.sha256Recomputed == Digest.sha256(bytes))
        try await backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aBodyThatHasFallenSilentGivesWayToAnother() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let (tus, locks) = (backend.tus, backend.locks)
        let path = try await tus.created(21)
        let id = try TusBackend.id(path)
        let sending = try OpenRequest(
            tus.client, "PATCH", path, TusClient.patch(0).merging(["Content-Length": "21"]) { $1 })
        try await sending.send(Self.short[..<10])
        // Until the first bytes were taken it is not the client that is waited for.
        try await backend.taken(10, by: path)
        #expect(try await tus.patch(path, at: 0, []).status == 423)
        func knock(after seconds: Int) async -> FailureCode? {
            do throws(Failure) {
                try await locks.holding(id, of: .local, at: .now + .seconds(seconds)) { () throws(Failure) in }
            } catch { return error.code }
            return nil
        }
        #expect(await knock(after: Tus.silenceMax - 2) == .locked)
        #expect(try await tus.offset(path) == 0)
        // It still comes in.
        try await sending.send(Self.short[10..<11])
        try await backend.taken(11, by: path)
        #expect(await knock(after: Tus.silenceMax + 2) == .locked)
        await locks.idle()
        #expect(try await tus.offset(path) == 11)
        #expect(try await tus.patch(path, at: 11, Self.short[11...]).status == 204)
        #expect(try await tus.item(path).uploads.first?.sha256Recomputed == Digest.sha256(Self.short))
        sending.hangUp()
        try await backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func ofABodyWithAChecksumThatIsCutOffNothingIsKept() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let path = try await backend.tus.created(20)
        var headers = TusClient.patch(0)
        headers["Content-Length"] = "20"
        headers["Upload-Checksum"] = "md5 AAAAAAAAAAAAAAAAAAAAAA=="
        let sending = try OpenRequest(backend.test.client, "PATCH", path, headers)
        try await sending.send(Self.short[..<10])
        try await backend.taken(10, by: path)
        #expect(try await backend.tus.patch(path, at: 0, [1]).status == 423)
        sending.hangUp()
        await backend.locks.idle()
        let answer = try await backend.tus.patch(path, at: 0, [])
        #expect(answer.status == 204 && answer.headers["upload-offset"] == "0")
        try await backend.stop(left: 1)
    }

    // MARK: Expiration and termination

    @Test func bytesPutTheEndOff() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let (tus, now) = (backend.tus, backend.test.clock.read())
        let path = try await tus.created(20)
        try Connection(backend.test.data + "/" + Backend.ledgerName).execute(
            "UPDATE uploads SET expires_at = \(now.milliseconds + 1000)")
        #expect(try await tus.head(path).headers["upload-expires"] == now.adding(seconds: 1).httpDate)
        #expect(try await tus.patch(path, at: 0, [1]).status == 204)
        let head = try await tus.head(path)
        #expect(head.status == 200 && head.headers["upload-expires"] == now.adding(seconds: 7 * 24 * 3600).httpDate)
        try await backend.stop(left: 1)
    }

    @Test(.timeLimit(.minutes(1)), arguments: Kind.allCases)
    func anUploadThatRanOutIsGoneAndLeavesNothing(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let (tus, bytes) = (backend.tus, Self.long)
        let path = try await tus.created(bytes.count)
        #expect(try await tus.patch(path, at: 0, bytes[..<((8 << 20) + 50)]).status == 204)
        try Connection(backend.test.data + "/" + Backend.ledgerName).execute("UPDATE uploads SET expires_at = 0")
        let head = try await tus.head(path)
        #expect(head.status == 410 && head.headers["upload-offset"] == nil)
        #expect(try await tus.patch(path, at: (8 << 20) + 50, [1]).status == 410)
        #expect(try await tus.end(path).status == 410)
        await backend.test.backend.stop()
        let next = try #require(try await TusBackend(kind, scratch: backend.test.scratch))
        #expect(try await next.tus.head(path).status == 410)
        try await next.stop()
    }

    @Test(.timeLimit(.minutes(1)), arguments: Kind.allCases)
    func anUploadThatIsEndedIsGoneWithAllItHad(kind: Kind) async throws {
        guard let backend = try await TusBackend(kind) else { return }
        let (tus, bytes) = (backend.tus, Self.long)
        let path = try await tus.created(bytes.count)
        #expect(try await tus.patch(path, at: 0, bytes[..<((8 << 20) + 50)]).status == 204)
        let whole = try await tus.created(21)
        #expect(try await tus.patch(whole, at: 0, Self.short).status == 204)
        _ = try await tus.item(whole)
        // The item that it has become goes with it.
        for path in [path, whole] {
            #expect(try await tus.end(path).status == 204)
            #expect(try await tus.head(path).status == 410)
            #expect(try await tus.patch(path, at: 0, [1]).status == 410)
            #expect(try await tus.end(path).status == 410)
        }
        #expect(try await tus.client.request("GET", "/v1/items/\(whole.split(separator: "/")[2])").status == 410)
        try await backend.stop()
    }

    // MARK: Among the other routes

    @Test func theRoutesOfABoxLeaveATusUploadAlone() async throws {
        let backend = try #require(try await TusBackend(.directory))
        let (tus, client) = (backend.tus, backend.test.client)
        let path = try await tus.created(21)
        #expect(try await tus.patch(path, at: 0, Self.short[..<9]).status == 204)
        let id = try #require(path.split(separator: "/").last)
        var file = try TestFile(String(id), item: String(id), Self.short)
        file.partSize = 8 << 20
        let parts = try await client.send(
            "POST", "/v1/uploads/\(id)/part-urls", PartURLsRequest(generation: 1, parts: file.parts))
        let complete = try await client.send("POST", "/v1/uploads/\(id)/complete", file.complete())
        let reopen = try await client.send("POST", "/v1/uploads/\(id)/reopen", ReopenUploadRequest(generation: 1))
        for answer in [parts, complete, reopen, try await client.send("PUT", "/v1/items/\(id)", file.attach)] {
            #expect(answer.status == 409)
        }
        #expect(try await client.request("HEAD", "/v1/uploads/\(id)").headers["upload-offset"] == nil)
        #expect(try await tus.patch(path, at: 9, Self.short[9...]).status == 204)
        #expect(try await tus.item(path).uploads.first?.sha256Recomputed == Digest.sha256(Self.short))
        try await backend.stop()
    }

    @Test func aTokenOpensWhatIsItsOwnersAndItsShootsAlone() async throws {
        let test = try await TestBackend(listen: .tcp(host: "127.0.0.1", port: 0))
        for (method, path) in [
            ("OPTIONS", "/v1/tus"), ("POST", "/v1/tus"), ("HEAD", "/v1/tus/u"), ("PATCH", "/v1/tus/u"),
            ("DELETE", "/v1/tus/u"),
        ] {
            #expect(try await test.client.request(method, path, headers: TusClient.patch(0)).status == 401, "\(method)")
        }
        let anna = TusClient(client: try await test.client(of: "anna").client)
        let ben = TusClient(client: try await test.client(of: "ben").client)
        let guest = TusClient(client: try await test.client(of: "anna", shoot: "wedding").client)
        let path = try await anna.created(21, ["shoot": "party"])
        for other in [ben, guest] {
            #expect(try await other.head(path).status == 404)
            #expect(try await other.patch(path, at: 0, Self.short).status == 404)
            #expect(try await other.end(path).status == 404)
        }
        let elsewhere = ["Upload-Length": "21", "Upload-Metadata": TusClient.metadata(["shoot": "party"])]
        #expect(try await guest.create(elsewhere).status == 403)
        // One that names no shoot goes to the token's.
        let mine = try await guest.created(21)
        #expect(try await guest.patch(mine, at: 0, Self.short).status == 204)
        #expect(try await guest.item(mine).shoot == "wedding")
        #expect(try await anna.offset(path) == 0)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }
}
