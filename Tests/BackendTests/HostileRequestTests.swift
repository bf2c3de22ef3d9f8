import Files
import Foundation
import HTTPServer
import Testing
import Vocabulary

@testable import Backend

@Suite(.timeLimit(.minutes(5))) struct HostileRequestTests {
    @Test func requestsOfTheWrongFormAreRefusedWithAProblem() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        let text = String(decoding: try JSON.encode(file.open), as: UTF8.self)
        let bodies: [String] = [
            "", "{", "null", "[]", "{}", "\u{0}\u{1}", String(repeating: "[", count: 100_000),
            text.replacingOccurrences(of: "up-1", with: "../../etc/passwd"),
            text.replacingOccurrences(of: "up-1", with: String(repeating: "a", count: 65)),
            text.replacingOccurrences(of: "\"IMG_1.JPG\"", with: "\"\(String(repeating: "é", count: 128))\""),
            text.replacingOccurrences(of: "\"IMG_1.JPG\"", with: "\"a\\u0000b\""),
            text.replacingOccurrences(of: "\"original\",\"part_size\"", with: "\"\",\"part_size\""),
            text.replacingOccurrences(of: "\"part_size\":5242880", with: "\"part_size\":1"),
            text.replacingOccurrences(of: "\"part_size\":5242880", with: "\"part_size\":33554433"),
            text.replacingOccurrences(of: "\"size_bytes\":10", with: "\"size_bytes\":-1"),
            text.replacingOccurrences(of: "\"size_bytes\":10", with: "\"size_bytes\":9223372036854775807"),
            text.replacingOccurrences(of: "\"size_bytes\":10", with: "\"size_bytes\":1e400"),
            text.replacingOccurrences(of: "\"length\":10", with: "\"length\":11"),
            text.replacingOccurrences(of: "\"part_number\":1", with: "\"part_number\":0"),
            text.replacingOccurrences(of: "\"part_number\":1", with: "\"part_number\":2"),
            text.replacingOccurrences(of: file.parts[0].contentMD5, with: "bm90IGFuIG1kNQ=="),
            text.replacingOccurrences(of: file.sha256.rawValue, with: "XYZ"),
        ]
        for body in bodies {
            #expect(body != text)
            let answer = try await test.client.request("POST", "/v1/uploads", body: Data(body.utf8))
            #expect(answer.status == 400, "\(body.prefix(200))")
            #expect(answer.code == .badRequest)
            #expect(answer.headers["content-type"] == "application/problem+json")
        }
        #expect(
            try await test.client.send("POST", "/v1/uploads", file.open, headers: ["Idempotency-Key": "up-2"]).status
                == 400)
        #expect(try Files.names(in: test.data + "/incoming").isEmpty)
        #expect(try await test.client.request("GET", "/healthz").status == 200)
        await test.backend.stop()
    }

    @Test func aBodyOverItsBoundIs413HoweverItIsSent() async throws {
        let test = try await TestBackend()
        let large = Data(repeating: UInt8(ascii: " "), count: APIBounds.bodyBytesMax + 1)
        let announced = try await test.client.request("POST", "/v1/uploads", body: large)
        #expect(announced.status == 413)
        #expect(announced.code == .bodyTooLarge)
        // Not even the first byte of this one is awaited.
        let endless = try await test.client.request("POST", "/v1/uploads", contentLength: 1 << 60)
        #expect(endless.status == 413)
        var chunked = Data(
            "POST /v1/uploads HTTP/1.1\r\nHost: t\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n".utf8)
        for _ in 0..<33 { chunked += Data("8000\r\n".utf8) + Data(repeating: 32, count: 0x8000) + Data("\r\n".utf8) }
        chunked += Data("0\r\n\r\n".utf8)
        #expect(String(decoding: try await test.client.exchange(chunked).prefix(12), as: UTF8.self) == "HTTP/1.1 413")
        await test.backend.stop()
    }

    @Test(arguments: [
        ("GET", "/", 404), ("GET", "/v1", 404), ("GET", "/v1/uploads/up-1", 405), ("GET", "/v1/items/a%2Fb", 404),
        ("GET", "/v1/items/..%2f..%2fetc", 404), ("GET", "/v1/media/..", 404), ("GET", "/v1/media/.hidden", 404),
        ("PUT", "/v1/parts/", 404),
        ("GET", "/v1/items/nothing", 404), ("POST", "/v1/uploads/nothing/complete", 400), ("DELETE", "/healthz", 405),
        ("BREW", "/v1/items", 405), ("GET", "//v1/items", 404), ("GET", "/v1/items/", 404),
        ("GET", "/v1/items/a/playback/b", 404),
        ("GET", "/v1/media/u-x.1?expires=1&signature=", 403), ("GET", "/v1/items?limit=-5", 200),
        ("GET", "/v1/items?limit=abc&cursor=", 200),
    ])
    func strangeAddressesGetAnHonestAnswer(method: String, path: String, status: Int) async throws {
        let test = try await TestBackend()
        #expect(try await test.client.request(method, path).status == status)
        await test.backend.stop()
    }

    @Test func bytesThatAreNotHTTPDoNoHarm() async throws {
        let test = try await TestBackend(idleTimeout: 1)
        for text in [
            "\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        ] {
            _ = try await test.client.exchange(Data(text.utf8))
        }
        let longHeader = "GET / HTTP/1.1\r\nHost: t\r\nX: \(String(repeating: "x", count: 1 << 20))\r\n\r\n"
        _ = try await test.client.exchange(Data(longHeader.utf8))
        #expect(try await test.client.request("GET", "/healthz").status == 200)
        await test.backend.stop()
    }

    @Test func aPartThatBreaksOffLeavesNothingBehind() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        let url = try #require(try await test.client.open(file).urls["1"])
        let listing = test.data + "/incoming/up-1.1"
        // Announces ten bytes, sends four and hangs up.
        try await test.client.abandon(Data("PUT \(url) HTTP/1.1\r\nHost: t\r\nContent-Length: 10\r\n\r\nsome".utf8))
        while try !Files.names(in: listing).isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        #expect(try await test.client.request("PUT", url, body: Data(file.bytes)).status == 200)
        #expect(try Files.names(in: listing).count == 1)
        await test.backend.stop()
    }

    @Test func theSocketOfALiveBackendIsLeftAloneAndAStaleOneReplaced() async throws {
        let test = try await TestBackend()
        let failure = await #expect(throws: Failure.self) { try await TestBackend(scratch: test.scratch) }
        #expect(failure?.code == .alreadyRunning)
        let rival = await #expect(throws: Failure.self) { try await TestBackend(listen: test.backend.address) }
        #expect(rival?.code == .alreadyRunning)
        #expect(try await test.client.request("GET", "/healthz").status == 200)
        await test.backend.stop()
        #expect(try Files.facts(test.scratch.path + "/s") == nil)
        try TestClient.leaveStaleSocket(test.scratch.path + "/s")
        let next = try await TestBackend(scratch: test.scratch)
        #expect(try await next.client.request("GET", "/healthz").status == 200)
        await next.backend.stop()
        let long = await #expect(throws: Failure.self) {
            try await TestBackend(listen: .unix(path: "/tmp/" + String(repeating: "x", count: 103)))
        }
        #expect(long?.code == .socketPathTooLong)
    }

    @Test func aCompletionMayNameEveryPartWithALongETag() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        _ = try await test.client.open(file)
        var complete = file.complete()
        complete.parts = (1...PartLimits.countMax).map {
            CompleteUploadRequest.Part(partNumber: $0, etag: "\"" + String(repeating: "A", count: 254) + "\"")
        }
        // Refused for what it says, not for how long it is.
        #expect(try await test.client.send("POST", "/v1/uploads/up-1/complete", complete).status == 409)
        #expect(try await test.client.send("POST", "/v1/uploads/up-1/reopen", complete).status == 413)
        await test.backend.stop()
    }
}
