import Digests
import Files
import Foundation
import Testing
import Vocabulary

@testable import Backend

@Suite struct UploadTests {
    @Test func aFileOfThreePartsArrivesWholeAndIsReadBackByHash() async throws {
        let test = try await TestBackend()
        var file = try TestFile("up-1", (0..<11_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 9) })
        file.partSize = 5 << 20
        try await test.client.upload(file)
        _ = try await test.client.attach(file)
        let item = try await test.client.item(file.item) { $0.state == .ready }
        #expect(item.uploads.first?.sha256Recomputed == file.sha256)
        #expect(item.uploads.first?.sizeBytes == file.bytes.count)
        #expect(try Files.names(in: test.data + "/incoming").isEmpty)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func anOpenIsRepeatableAndAnotherBodyUnderItsKeyIsAConflict() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        let first = try await test.client.send("POST", "/v1/uploads", file.open)
        let again = try await test.client.send("POST", "/v1/uploads", file.open)
        #expect(first.status == 201)
        #expect(again.status == 200)
        #expect(try again.decoded(UploadSession.self).urls.count == 1)
        var other = file.open
        other.filename = "OTHER.JPG"
        let refused = try await test.client.send("POST", "/v1/uploads", other)
        #expect(refused.status == 409)
        #expect(refused.code == .conflict)
        await test.backend.stop()
    }

    @Test func aDamagedPartIsRefusedAndLeavesNothing() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        let url = try #require(try await test.client.open(file).urls["1"])
        for wrong in ["some bytez", "some byte", "some bytes and more"] {
            let answer = try await test.client.request("PUT", url, body: Data(wrong.utf8))
            #expect(answer.status == 400)
            #expect(answer.code == .badDigest)
        }
        #expect(try Files.names(in: test.data + "/incoming/up-1.1").isEmpty)
        let right = try await test.client.request("PUT", url, body: Data(file.bytes))
        #expect(right.status == 200)
        #expect(
            right.headers["etag"]
                == "\"\([UInt8](try #require(Data(base64Encoded: file.parts[0].contentMD5))).hexadecimal)\"")
        await test.backend.stop()
    }

    @Test func aPartURLIsGoodForItsPartAloneAndOnlyUntilItExpires() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        let url = try #require(try await test.client.open(file).urls["1"])
        for forged in [
            url + "A", url.replacingOccurrences(of: "up-1", with: "up-2"), "/v1/parts/x",
            "/v1/parts/" + String(repeating: "a.", count: 3000),
        ] {
            let answer = try await test.client.request("PUT", forged, body: Data(file.bytes))
            #expect(answer.status == 403)
            #expect(answer.code == .urlExpired)
        }
        test.clock.advance(seconds: 3601)
        #expect(try await test.client.request("PUT", url, body: Data(file.bytes)).code == .urlExpired)
        await test.backend.stop()
    }

    @Test func aLatePartIsGoneAfterCompleteAndAfterAbort() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        let url = try #require(try await test.client.open(file).urls["1"])
        try await test.client.upload(file)
        let late = try await test.client.request("PUT", url, body: Data(file.bytes))
        #expect(late.status == 404)
        #expect(late.code == .gone)
        let other = try TestFile("up-2", item: "item-2")
        let otherURL = try #require(try await test.client.open(other).urls["1"])
        #expect(try await test.client.request("DELETE", "/v1/uploads/up-2").status == 204)
        #expect(try await test.client.request("DELETE", "/v1/uploads/up-2").status == 204)
        #expect(try await test.client.request("PUT", otherURL, body: Data(other.bytes)).status == 404)
        await test.backend.stop()
    }

    @Test func theListNamesWhatIsHeldAndCompleteAsksForTheRest() async throws {
        let test = try await TestBackend()
        var file = try TestFile("up-1", [UInt8](repeating: 7, count: 6 << 20))
        file.partSize = 5 << 20
        let urls = try await test.client.open(file).urls
        #expect(try await test.client.request("PUT", try #require(urls["1"]), body: Data(file.chunks[0])).status == 200)
        let listed: StoredParts = try await test.client.request("GET", "/v1/uploads/up-1/parts").decoded()
        #expect(listed.parts.map(\.partNumber) == [1])
        let head = try await test.client.request("HEAD", "/v1/uploads/up-1")
        #expect(head.headers["upload-offset"] == String(5 << 20))
        #expect(head.headers["upload-length"] == String(6 << 20))
        #expect(head.headers["cache-control"] == "no-store")
        let early = try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete())
        #expect(early.status == 409)
        #expect(early.code == .incomplete)
        #expect(try await test.client.request("PUT", try #require(urls["2"]), body: Data(file.chunks[1])).status == 200)
        for _ in 0..<2 {
            #expect(try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete()).status == 200)
        }
        var other = file.complete()
        other.sizeBytes -= 1
        #expect(try await test.client.send("POST", "/v1/uploads/up-1/complete", other).code == .conflict)
        await test.backend.stop()
    }

    @Test func manyCompletesAtOnceAreOneCompletion() async throws {
        let test = try await TestBackend()
        var file = try TestFile("up-1", [UInt8](repeating: 7, count: 11 << 20))
        file.partSize = 5 << 20
        _ = try await test.client.open(file)
        try await test.client.sendParts(file)
        let client = test.client
        let request = file.complete()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<6 {
                group.addTask { try await client.send("POST", "/v1/uploads/up-1/complete", request).status }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses == [200, 200, 200, 200, 200, 200])
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func aSessionThatVanishedFromTheStoreIsReopenedInTheNextGeneration() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        _ = try await test.client.open(file)
        let alive: UploadSession = try await test.client.send(
            "POST", "/v1/uploads/up-1/reopen", ReopenUploadRequest(generation: 1)
        ).decoded()
        #expect(alive.generation == 1)
        try Files.removeTree(test.data + "/incoming/up-1.1")
        for _ in 0..<2 {
            let next: UploadSession = try await test.client.send(
                "POST", "/v1/uploads/up-1/reopen", ReopenUploadRequest(generation: 1)
            ).decoded()
            #expect(next.generation == 2)
            #expect(next.state == .open)
        }
        let stale = try await test.client.send(
            "POST", "/v1/uploads/up-1/part-urls", PartURLsRequest(generation: 1, parts: file.parts))
        #expect(stale.status == 409)
        #expect(stale.code == .staleGeneration)
        try await test.client.sendParts(file, generation: 2)
        #expect(
            try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete(generation: 2)).status == 200)
        await test.backend.stop()
    }

    @Test func bytesThatAreThereAlreadyAreNotSentAgainAndGoWithTheLastItem() async throws {
        let test = try await TestBackend()
        let first = try TestFile("up-1")
        try await test.client.deliver(first)
        let second = try TestFile("up-2", item: "item-2")
        let session = try await test.client.open(second)
        #expect(session.alreadyStored)
        #expect(session.state == .complete)
        _ = try await test.client.attach(second)
        _ = try await test.client.item(second.item) { $0.state == .ready }
        #expect(try await test.client.request("DELETE", "/v1/items/item-1").status == 204)
        let kept = try await test.client.item(second.item)
        #expect(kept.uploads.first?.sha256Recomputed == second.sha256)
        #expect(try await test.client.request("DELETE", "/v1/items/item-2").status == 204)
        #expect(try await test.client.request("GET", "/v1/items/item-2").status == 410)
        await test.backend.stop()
        let again = try await TestBackend(scratch: test.scratch)
        await again.backend.stop()
        #expect(
            try Files.names(in: test.data + "/blobs").allSatisfy {
                try Files.names(in: test.data + "/blobs/" + $0).isEmpty
            })
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }
}
