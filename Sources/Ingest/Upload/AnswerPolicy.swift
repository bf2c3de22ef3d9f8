import Curl
import Foundation
import Vocabulary

/// What an answer means: to a request of the wire API, or to a part that was sent to its URL. Pure.
///
/// Between the box and the backend, and between the box and the store, stand proxies and venue networks that answer in their place: with a page,
/// with a redirect, with any status. Only what the other side itself would say counts as its word.
enum AnswerPolicy {
    /// Bytes of an answer that are looked at for words.
    private static let wordsMax = 2048

    // MARK: The wire API

    /// - Throws: what a refusal means.
    static func expectSuccess(_ response: HTTPResponse) throws(Failure) {
        guard (200..<300).contains(response.status), !isPage(response) else { throw timed(failure(response), response) }
    }

    private static func failure(_ response: HTTPResponse) -> Failure {
        if let failure = problem(response) { return failure }
        return foreign(response, in: .backend) ?? common(response, by: .backend, detail(response))
    }

    // MARK: Parts

    /// - Parameters:
    ///   - url: that the part was sent to.
    ///   - wasRefused: the URL of this part before was refused as well: this one was signed just now.
    /// - Returns: the store's name for the part; a store that shows none is no error.
    /// - Throws: what a refusal means.
    static func part(_ response: HTTPResponse, url: String, wasRefused: Bool) throws(Failure) -> String? {
        // Stores say that they took a part with 200 and nothing else; with a body it is an error that came too late for another status, or
        // nobody's word.
        if response.status == 200, isBlank(response.body) { return response.headers["ETag"] }
        throw timed(partFailure(response, url: url, wasRefused: wasRefused), response)
    }

    /// A part that found nobody, where its URL leads to a store of its own: the backend may be well.
    static func unreachable(_ failure: Failure) -> Failure {
        guard failure.code == .backendUnreachable else { return failure }
        var failure = failure
        failure.message =
            failure.remedy == .askUser
            ? "The store's certificate is not valid: check \(storeAddress) at the backend."
            : "The store cannot be reached: check the network and the store."
        return failure
    }

    private static func partFailure(_ response: HTTPResponse, url: String, wasRefused: Bool) -> Failure {
        if let failure = problem(response) { return failure }
        let detail = detail(response)
        let code = storeCode(response)
        if let code, let failure = storeFailure(code, detail) { return failure }
        switch response.status {
        case 401 where !isPage(response), 403 where !isPage(response):
            return wasRefused
                ? refusedAnew(response, url: url, detail)
                : Failure(.urlExpired, "The address for a part is not valid any more.", detail: detail)
        case 404 where code != nil, 410 where code != nil:
            return Failure(.gone, "The store does not have this upload any more.", detail: detail)
        case 200..<300:
            return Failure(.foreignAnswer, "What answers in the store's place is no store.", detail: detail)
        case _ where code != nil: return common(response, by: .store, detail)
        default: return foreign(response, in: .store) ?? common(response, by: .store, detail)
        }
    }

    /// Of a URL that was signed just now: nothing that this part could mend.
    private static func refusedAnew(_ response: HTTPResponse, url: String, _ detail: String) -> Failure {
        clockFailure(response, url: url, detail)
            ?? Failure(
                .backendError,
                "The store refuses what the backend has signed just now: check the backend's key and the bucket's rules.",
                detail: detail)
    }

    /// A store's own words, as far as they say more than its status (docs.aws.amazon.com, "Error responses"; Ceph's and MinIO's beside them).
    private static func storeFailure(_ code: String, _ detail: String) -> Failure? {
        switch code {
        case "BadDigest", "InvalidDigest", "IncompleteBody":
            return Failure(.badDigest, "A part arrived damaged.", detail: detail)
        case "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded":
            return quota(at: .store, detail)
        case "RequestTimeTooSkewed", "RequestNotYetValid":
            return clock("The backend's clock and its store's are far apart: set the backend's right.", detail)
        case "InvalidAccessKeyId":
            return Failure(
                .backendError, "The store does not accept the backend's key: check its settings.", detail: detail)
        case "EntityTooLarge": return tooLarge(for: .store, detail)
        case "NoSuchUpload", "NoSuchKey":
            return Failure(.gone, "The store does not have this upload any more.", detail: detail)
        case "SlowDown", "ServiceUnavailable", "RequestTimeout":
            return Failure(.busy, "The store is busy.", detail: detail)
        case "InternalError", "OperationAborted":
            return Failure(.backendError, "The store reported a fault of its own.", detail: detail)
        case "TemporaryRedirect", "PermanentRedirect", "AuthorizationHeaderMalformed":
            return Failure(
                .redirected, "The store wants this at another address: correct \(storeAddress) at the backend.",
                detail: detail)
        default: return nil
        }
    }

    /// A URL that was signed just now and is refused: by the store's clock it may not be valid yet, or not be valid any more.
    private static func clockFailure(_ response: HTTPResponse, url: String, _ detail: String) -> Failure? {
        guard let theirs = response.date, let signed = signingTime(url), abs(signed - theirs) > clockToleranceSeconds,
            let standing = response.standing(ofClock: signed)
        else { return nil }
        return clock("The backend's clock is \(standing) its store's: set it right.", detail)
    }
    /// What stores bear (docs.aws.amazon.com, `RequestTimeTooSkewed`).
    private static let clockToleranceSeconds = 900.0

    /// `X-Amz-Date=20261130T082200Z` in a presigned URL, in seconds since 1970.
    private static func signingTime(_ url: String) -> Double? {
        let field = URLComponents(string: url)?.queryItems?.first { $0.name == "X-Amz-Date" }?.value
        guard let field, field.utf8.count == 16, field.hasSuffix("Z") else { return nil }
        let digits = Array(field)
        return HTTPDate.seconds(
            "\(String(digits[..<8])) \(String(digits[9..<11])):\(String(digits[11..<13])):\(String(digits[13..<15]))")
    }

    // MARK: Both

    /// What the backend itself says; also of a part, where the store is its own.
    private static func problem(_ response: HTTPResponse) -> Failure? {
        guard let problem = try? JSON.decode(Problem.self, from: Data(response.body)) else { return nil }
        return Failure(problem.code, problem.title, detail: problem.detail ?? "HTTP \(response.status)")
    }

    private static let storeAddress = "RUSHES_S3_ENDPOINT"

    /// In the words that name it to a person.
    private enum Side: String { case backend, store }

    /// Not of the backend or the store, but of something on the way.
    private static func foreign(_ response: HTTPResponse, in whose: Side) -> Failure? {
        let detail = detail(response)
        switch response.status {
        case 300..<400:
            let host = response.headers["Location"].flatMap { URLComponents(string: $0)?.host }
            let address = whose == .store ? "\(storeAddress) at the backend" : "the server's address"
            return Failure(
                .redirected,
                "The answer points to \(host.map { "“\($0)”" } ?? "another address"), where nothing is sent unasked: log in to the network if it wants that, or correct \(address).",
                detail: "\(detail) Location: \(response.headers["Location"] ?? "none")")
        // Network Authentication Required (RFC 6585), and a proxy that wants a login of its own.
        case 407, 511: return page(in: whose, detail)
        // These a proxy may say of what it passes on: the body's size, and that nobody answers behind it.
        case 408, 413, 429, 500...: return nil
        // Whoever refuses without words of its own is somebody else: a proxy says 404 while what it stands for is started again.
        default: return page(in: whose, detail)
        }
    }

    private static func page(in whose: Side, _ detail: String) -> Failure {
        Failure(
            .foreignAnswer,
            "Something on the way answers in the \(whose.rawValue)'s place: log in to the network if it wants that, or check its proxy.",
            detail: detail)
    }

    private static func common(_ response: HTTPResponse, by who: Side, _ detail: String) -> Failure {
        switch response.status {
        case 408, 429, 503: Failure(.busy, "The \(who.rawValue) is busy.", detail: detail)
        case 413: tooLarge(for: who, detail)
        case 507: quota(at: who, detail)
        case 400..<500: Failure(.badRequest, "The \(who.rawValue) refused the request.", detail: detail)
        default: Failure(.backendError, "The \(who.rawValue) reported a fault of its own.", detail: detail)
        }
    }

    private static func quota(at who: Side, _ detail: String) -> Failure {
        Failure(
            .quotaExceeded, "The quota at the \(who.rawValue) is used up: make room there, or have it raised.",
            detail: detail)
    }
    private static func clock(_ message: String, _ detail: String) -> Failure {
        Failure(.clockSkewed, message, detail: detail)
    }
    private static func tooLarge(for who: Side, _ detail: String) -> Failure {
        Failure(
            .bodyTooLarge,
            "The \(who.rawValue), or a proxy before it, does not take so much at once: raise its limit to \(PartLimits.bytesRange.upperBound >> 20) MiB.",
            detail: detail)
    }

    // MARK: Pieces

    /// HTML, which neither the backend nor a store speaks. Swift calls answers without a body so too.
    static func isPage(_ response: HTTPResponse) -> Bool {
        guard !isBlank(response.body) else { return false }
        if response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") ?? false { return true }
        // JSON hardly ever has one; to look for words in every answer would cost more than to read it.
        guard response.body.prefix(wordsMax).contains(UInt8(ascii: "<")) else { return false }
        let words = words(response).lowercased()
        return words.contains("<!doctype html") || words.contains("<html")
    }

    /// The `<Code>` of an S3 error document.
    private static func storeCode(_ response: HTTPResponse) -> String? {
        let words = words(response)
        guard words.contains("<Error>") || words.contains("<Error "), let start = words.range(of: "<Code>"),
            let end = words.range(of: "</Code>", range: start.upperBound..<words.endIndex)
        else { return nil }
        return String(words[start.upperBound..<end.lowerBound])
    }

    private static func isBlank(_ body: [UInt8]) -> Bool {
        body.allSatisfy {
            [UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n")].contains($0)
        }
    }
    private static func words(_ response: HTTPResponse) -> String {
        String(decoding: response.body.prefix(wordsMax), as: UTF8.self)
    }
    private static func detail(_ response: HTTPResponse) -> String {
        "HTTP \(response.status) \(String(decoding: response.body.prefix(512), as: UTF8.self))"
    }

    /// Seconds. Dates (RFC 9110, section 10.2.3) are not read: they would make the wait a matter of whose clock is right.
    static func retryAfter(_ response: HTTPResponse) -> Double? {
        response.headers["Retry-After"].flatMap { UInt32($0) }.map(Double.init)
    }
    private static func timed(_ failure: Failure, _ response: HTTPResponse) -> Failure {
        var failure = failure
        failure.retryAfter = retryAfter(response)
        return failure
    }
}
