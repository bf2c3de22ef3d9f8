import Curl
import Testing
import Vocabulary

@testable import Ingest

@Suite struct AnswerPolicyTests {
    static func s3(_ status: Int, _ code: String) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "application/xml"],
            body: Array(
                "<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message></Message><HostId>h</HostId></Error>".utf8))
    }
    static func page(_ status: Int, _ headers: HTTPHeaders = ["Content-Type": "text/html; charset=utf-8"])
        -> HTTPResponse
    {
        HTTPResponse(status: status, headers: headers, body: Array("<!DOCTYPE html><html>Welcome, guest</html>".utf8))
    }
    static func text(_ status: Int) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "text/plain"], body: Array("\(status) page not found\n".utf8))
    }
    static func empty(_ status: Int, _ headers: HTTPHeaders = [:]) -> HTTPResponse {
        HTTPResponse(status: status, headers: headers)
    }
    static func problem(_ code: String, _ status: Int) -> HTTPResponse {
        HTTPResponse(
            status: status, headers: ["Content-Type": "application/problem+json"],
            body: Array("{\"type\":\"about:blank\",\"title\":\"t\",\"status\":\(status),\"code\":\"\(code)\"}".utf8))
    }

    /// What a part's answer means, and whose fault it is when it meets a part once.
    static let parts: [(HTTPResponse, FailureCode, RetryPolicy.Blame)] = [
        (s3(200, "InternalError"), .backendError, .everybody), (s3(200, "SlowDown"), .busy, .everybody),
        (s3(200, "NoSuchUpload"), .gone, .item), (page(200), .foreignAnswer, .everybody),
        (HTTPResponse(status: 200, body: Array("ok".utf8)), .foreignAnswer, .everybody),
        (empty(204), .foreignAnswer, .everybody), (empty(202), .foreignAnswer, .everybody),
        (page(206), .foreignAnswer, .everybody),
        (empty(302, ["Location": "https://login.venue.example/"]), .redirected, .everybody),
        (s3(307, "TemporaryRedirect"), .redirected, .everybody),
        (s3(301, "PermanentRedirect"), .redirected, .everybody),
        (s3(400, "BadDigest"), .badDigest, .item), (s3(400, "InvalidDigest"), .badDigest, .item),
        (s3(400, "IncompleteBody"), .badDigest, .item), (s3(400, "RequestTimeout"), .busy, .everybody),
        (s3(400, "EntityTooLarge"), .bodyTooLarge, .final), (s3(400, "Whatever"), .badRequest, .final),
        (page(400), .foreignAnswer, .everybody),
        (empty(401), .urlExpired, .item), (empty(403), .urlExpired, .item),
        (s3(403, "AccessDenied"), .urlExpired, .item),
        (s3(403, "ExpiredRequest"), .urlExpired, .item), (s3(403, "SignatureDoesNotMatch"), .urlExpired, .item),
        (s3(403, "QuotaExceeded"), .quotaExceeded, .everybody),
        (s3(507, "XMinioStorageFull"), .quotaExceeded, .everybody),
        (empty(507), .quotaExceeded, .everybody), (s3(403, "RequestTimeTooSkewed"), .clockSkewed, .everybody),
        (s3(403, "InvalidAccessKeyId"), .backendError, .everybody), (page(403), .foreignAnswer, .everybody),
        (empty(404), .foreignAnswer, .everybody), (text(404), .foreignAnswer, .everybody),
        (s3(404, "Whatever"), .gone, .item), (s3(404, "NoSuchUpload"), .gone, .item),
        (page(404), .foreignAnswer, .everybody),
        (empty(410), .foreignAnswer, .everybody), (text(400), .foreignAnswer, .everybody),
        (empty(407), .foreignAnswer, .everybody), (page(511), .foreignAnswer, .everybody),
        (empty(408), .busy, .everybody), (empty(413), .bodyTooLarge, .final), (page(413), .bodyTooLarge, .final),
        (empty(429), .busy, .everybody), (s3(503, "SlowDown"), .busy, .everybody), (page(503), .busy, .everybody),
        (empty(500), .backendError, .everybody), (page(502), .backendError, .everybody),
        (problem("bad-digest", 400), .badDigest, .item), (problem("gone", 404), .gone, .item),
        (problem("disk-full", 507), .diskFull, .everybody),
    ]

    @Test(arguments: parts.indices) func aPartIsStoredOnlyWhenTheStoreItselfSaysSo(index: Int) throws {
        let (response, code, blame) = Self.parts[index]
        let failure = try #require(throws: Failure.self) {
            try AnswerPolicy.part(response, url: "https://s/b/k", wasRefused: false)
        }
        #expect(failure.code == code, "\(response.status) \(failure)")
        #expect(RetryPolicy().blame(failure, faults: 1, othersSucceeded: false) == blame, "\(failure)")
    }

    @Test(arguments: ["ETag", "etag", "ETAG"]) func anETagIsTakenInAnySpellingAndNoneIsNoError(name: String) throws {
        let spelt = HTTPResponse(status: 200, headers: HTTPHeaders(dictionaryLiteral: (name, "W/\"x\"")), body: [])
        #expect(try AnswerPolicy.part(spelt, url: "u", wasRefused: false) == "W/\"x\"")
        let blank = HTTPResponse(status: 200, headers: ["Content-Type": "text/html"], body: Array("\r\n ".utf8))
        #expect(try AnswerPolicy.part(blank, url: "u", wasRefused: false) == nil)
    }

    @Test(arguments: [
        // The store's clock is ahead of the one that signed, and behind it.
        ("Mon, 30 Nov 2026 11:22:00 GMT", "The backend's clock is 3 hours behind its store's: set it right."),
        ("Mon, 30 Nov 2026 07:42:00 GMT", "The backend's clock is 40 minutes ahead of its store's: set it right."),
    ]) func aURLThatIsRefusedAsSoonAsItIsSignedMeansAClockThatIsOff(date: String, words: String) throws {
        let url = "https://s/b/k?X-Amz-Date=20261130T082200Z&X-Amz-Expires=3600"
        var response = Self.s3(403, "AccessDenied")
        response.headers["Date"] = date
        let first = #expect(throws: Failure.self) { try AnswerPolicy.part(response, url: url, wasRefused: false) }
        // It may have waited for hours.
        #expect(first?.code == .urlExpired)
        let second = #expect(throws: Failure.self) { try AnswerPolicy.part(response, url: url, wasRefused: true) }
        #expect(second?.code == .clockSkewed && second?.message == words && second?.remedy == .askUser)
        response.headers["Date"] = "Mon, 30 Nov 2026 08:30:00 GMT"
        let near = #expect(throws: Failure.self) { try AnswerPolicy.part(response, url: url, wasRefused: true) }
        // Not this part's fault: what is signed is refused.
        #expect(near?.code == .backendError && near?.message.contains("the bucket's rules") == true)
    }

    static let answers: [(HTTPResponse, FailureCode?)] = [
        (empty(204), nil), (HTTPResponse(status: 200, body: Array("{}".utf8)), nil), (page(200), .foreignAnswer),
        (empty(302, ["Location": "https://login.venue.example/"]), .redirected), (page(403), .foreignAnswer),
        (page(404), .foreignAnswer), (page(511), .foreignAnswer),
        // Of a proxy that guards the backend, or has not found it yet.
        (empty(401), .foreignAnswer), (text(403), .foreignAnswer), (text(404), .foreignAnswer),
        (empty(404), .foreignAnswer), (text(409), .foreignAnswer), (empty(410), .foreignAnswer),
        (text(400), .foreignAnswer), (problem("unauthorized", 401), .unauthorized),
        (problem("not-found", 404), .notFound), (empty(408), .busy), (text(413), .bodyTooLarge),
        (problem("incomplete", 409), .incomplete), (problem("clock-skewed", 503), .clockSkewed),
        (problem("quota-exceeded", 507), .quotaExceeded), (page(502), .backendError), (empty(503), .busy),
    ]

    @Test(arguments: answers.indices) func onlyTheBackendItselfIsBelieved(index: Int) {
        let (response, code) = Self.answers[index]
        var failure: Failure?
        do throws(Failure) { try AnswerPolicy.expectSuccess(response) } catch { failure = error }
        #expect(failure?.code == code, "\(response.status) \(String(describing: failure))")
    }

    /// Whoever reads that nothing gets on has to look at the right one of the two.
    @Test func theStoreIsNotCalledTheBackend() {
        let answers = [
            Self.page(511), Self.page(413), Self.empty(507), Self.s3(403, "QuotaExceeded"),
            Self.s3(400, "EntityTooLarge"),
            Self.empty(302, ["Location": "https://login.venue.example/"]),
        ]
        for answer in answers {
            let ofPart = #expect(throws: Failure.self) { try AnswerPolicy.part(answer, url: "u", wasRefused: false) }
            #expect(ofPart?.message.contains("server") == false)
            let words = ofPart?.message.replacing("at the backend", with: "") ?? "backend"
            #expect(!words.contains("backend"), "\(words)")
        }
        for answer in answers.prefix(3) {
            let ofCall = #expect(throws: Failure.self) { try AnswerPolicy.expectSuccess(answer) }
            #expect(ofCall?.message.contains("backend") == true && ofCall?.message.contains("store") == false)
        }
        let away = AnswerPolicy.unreachable(Failure(.backendUnreachable, "The backend cannot be reached."))
        #expect(away.code == .backendUnreachable && away.message.hasPrefix("The store cannot be reached"))
    }

    @Test func whereSomethingIsSentToIsNamed() {
        let failure = #expect(throws: Failure.self) {
            try AnswerPolicy.expectSuccess(Self.empty(302, ["Location": "https://login.venue.example/?next=x"]))
        }
        #expect(failure?.message.contains("“login.venue.example”") == true)
    }
}
