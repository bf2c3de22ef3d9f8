import Digests
import Foundation
import HTTPServer
import Testing
import Vocabulary

@testable import Backend

@Suite struct ItemTests {
    @Test func attachingIsRepeatableAndUploadsOnlyGrow() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.deliver(file)
        let again = try await test.client.attach(file)
        #expect(again.state == .ready)
        #expect(again.generation == 1)
        var sidecar = try TestFile("up-2", Array("<xmp/>".utf8))
        (sidecar.role, sidecar.name) = (.sidecar, "IMG_1.XMP")
        try await test.client.upload(sidecar)
        let grown = try await test.client.attach(sidecar)
        #expect(grown.state == .processing)
        #expect(grown.generation == 2)
        let item = try await test.client.item(file.item) { $0.state == .ready }
        #expect(Set(item.uploads.map(\.uploadID)) == [file.upload, sidecar.upload])
        #expect(item.uploads.allSatisfy { $0.sha256Recomputed != nil && $0.verifiedAt != nil })
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func anUploadThatIsIncompleteForeignOrUnderATakenNameIsNotAttached() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        _ = try await test.client.open(file)
        #expect(try await test.client.send("PUT", "/v1/items/item-1", file.attach).status == 409)
        #expect(try await test.client.send("PUT", "/v1/items/item-2", file.attach).status == 409)
        try await test.client.upload(file)
        _ = try await test.client.attach(file)
        let rival = try TestFile("up-2", Array("other bytes".utf8))
        try await test.client.upload(rival)
        let refused = try await test.client.send("PUT", "/v1/items/item-1", rival.attach)
        #expect(refused.status == 409)
        #expect(refused.code == .conflict)
        await test.backend.stop()
    }

    @Test func whatBelongsToAnotherOwnerIsNotThere() async throws {
        let test = try await TestBackend(listen: .tcp(host: "127.0.0.1", port: 0))
        let (anna, annasToken) = try await test.client(of: "anna")
        let (ben, _) = try await test.client(of: "ben")
        let file = try TestFile("up-1")
        try await anna.upload(file)
        _ = try await anna.attach(file)
        _ = try await anna.item(file.item) { $0.state == .ready }

        let requests: [(String, String, any Encodable & Sendable)] = [
            ("GET", "/v1/items/item-1", ""), ("DELETE", "/v1/items/item-1", ""),
            ("GET", "/v1/items/item-1/playback", ""),
            ("GET", "/v1/uploads/up-1/parts", ""), ("DELETE", "/v1/uploads/up-1", ""),
            ("POST", "/v1/uploads", file.open),
            ("POST", "/v1/uploads/up-1/complete", file.complete()),
            ("POST", "/v1/uploads/up-1/reopen", ReopenUploadRequest(generation: 1)),
            ("POST", "/v1/uploads/up-1/part-urls", PartURLsRequest(generation: 1, parts: file.parts)),
            ("PUT", "/v1/items/item-1", AttachRequest(kind: nil, shoot: "s", uploads: [])),
        ]
        for (method, path, message) in requests {
            let answer = try await ben.send(method, path, message)
            #expect(answer.status == 404, "\(method) \(path)")
            #expect(answer.code == .notFound)
        }
        // The same bytes of another owner are no "already there".
        let same = try TestFile("up-2", item: "item-2")
        #expect(try await !ben.open(same).alreadyStored)
        // Another's upload is a conflict where the item is one's own.
        let theft = try await ben.send("PUT", "/v1/items/item-2", file.attach)
        #expect(theft.status == 409)
        #expect(try await ben.request("GET", "/v1/items").decoded(ItemPage.self).items.isEmpty)
        for headers in [
            [:], ["Authorization": "Bearer wrong"], ["Authorization": "Basic \(annasToken)"],
            ["Authorization": "Bearer"], ["Authorization": "Bearer \(annasToken.dropLast())"],
            ["Authorization": "Bearer \(annasToken.dropLast(8))AAAAAAA\(annasToken.last ?? "A")"],
            ["Authorization": "Bearer \(annasToken) "],
        ] {
            var stranger = test.client
            stranger.headers = headers
            let answer = try await stranger.request("GET", "/v1/items/item-1")
            #expect(answer.status == 401)
            #expect(answer.code == .unauthorized)
            #expect(answer.headers["www-authenticate"] == "Bearer")
        }
        await test.backend.stop()
    }

    @Test func aListComesInPagesAndLeavesOutWhatWasDeleted() async throws {
        let test = try await TestBackend()
        for number in 1...5 {
            let file = try TestFile("up-\(number)", item: "item-\(number)")
            try await test.client.upload(file)
            _ = try await test.client.attach(file)
        }
        _ = try await test.client.request("DELETE", "/v1/items/item-2")
        var seen: [String] = []
        var cursor: String?
        repeat {
            let query = cursor.map { "&cursor=\($0)" } ?? ""
            let page: ItemPage = try await test.client.request("GET", "/v1/items?shoot=wedding&limit=2\(query)")
                .decoded()
            #expect(page.items.count <= 2)
            seen += page.items.map(\.itemID.rawValue)
            cursor = page.cursor
        } while cursor != nil
        #expect(seen == ["item-1", "item-3", "item-4", "item-5"])
        #expect(try await test.client.request("GET", "/v1/items?shoot=other").decoded(ItemPage.self).items.isEmpty)
        #expect(try await test.client.request("GET", "/v1/items?cursor=%2F%2F").status == 400)
        await test.backend.stop()
    }

    @Test func aDeletedItemLeavesATombstoneThatTakesNothingMore() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.upload(file)
        _ = try await test.client.attach(file)
        for _ in 0..<2 { #expect(try await test.client.request("DELETE", "/v1/items/item-1").status == 204) }
        #expect(try await test.client.request("GET", "/v1/items/item-1").status == 410)
        #expect(try await test.client.request("GET", "/v1/items/item-1/playback").status == 410)
        #expect(try await test.client.send("PUT", "/v1/items/item-1", file.attach).code == .gone)
        #expect(try await test.client.send("POST", "/v1/uploads", try TestFile("up-9").open).code == .gone)
        #expect(try await test.client.request("DELETE", "/v1/items/never").status == 404)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func whatAnItemOffersIsServedInRangesUnderItsSignatureAlone() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.upload(file)
        _ = try await test.client.attach(file)
        let item = try await test.client.item(file.item) { $0.state == .ready }
        let rendition = try #require(item.renditions.first)
        let url = try #require(rendition.url)
        let whole = try await test.client.request("GET", url)
        #expect(whole.status == 200)
        #expect(Digest.sha256(Array(whole.body)) == rendition.sha256)
        #expect(whole.headers["etag"] == "\"\(rendition.sha256)\"")
        #expect(whole.headers["x-content-type-options"] == "nosniff")
        let range = try await test.client.request("GET", url, headers: ["Range": "bytes=4-5"])
        #expect(range.status == 206)
        #expect(Array(range.body) == Array(Array(whole.body)[4...5]))
        #expect(range.headers["content-range"] == "bytes 4-5/\(rendition.sizeBytes)")
        let head = try await test.client.request("HEAD", url)
        #expect(head.headers["content-length"] == String(rendition.sizeBytes))
        #expect(head.body.isEmpty)
        #expect(
            try await test.client.request("GET", url, headers: ["If-None-Match": "\"\(rendition.sha256)\""]).status
                == 304)
        #expect(try await test.client.request("GET", url, headers: ["Range": "bytes=999999-"]).status == 416)
        #expect(try await test.client.request("GET", url + "A").code == .urlExpired)
        #expect(try await test.client.request("GET", String(url.prefix { $0 != "?" })).status == 403)
        test.clock.advance(seconds: 3601)
        #expect(try await test.client.request("GET", url).status == 403)
        await test.backend.stop()
    }
}
