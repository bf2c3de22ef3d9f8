import Foundation
import Testing
import Vocabulary

@testable import Backend
@testable import HTTPServer

@Suite struct DecisionTests {
    @Test(
        arguments: [
            (nil, nil, FileAnswer.whole), ("bytes=0-0", nil, .part(0...0)), ("bytes=2-", nil, .part(2...9)),
            ("bytes=-3", nil, .part(7...9)), ("bytes=-99", nil, .part(0...9)), ("bytes=5-99", nil, .part(5...9)),
            ("bytes=10-", nil, .rangeNotSatisfiable), ("bytes=-0", nil, .rangeNotSatisfiable),
            ("bytes=5-2", nil, .whole), ("bytes=0-1,4-5", nil, .whole), ("bytes=a-b", nil, .whole),
            ("lines=1-2", nil, .whole),
            ("bytes=99999999999999999999-", nil, .rangeNotSatisfiable),
            ("bytes=0-99999999999999999999", nil, .part(0...9)),
            ("bytes=0-1", "\"tag\"", .part(0...1)), ("bytes=0-1", "\"old\"", .whole),
            ("bytes=0-1", "W/\"tag\"", .whole),
            ("bytes=0-1", "Mon, 30 Nov 2026 01:48:40 GMT", .whole),
        ] as [(String?, String?, FileAnswer)])
    func aRangeIsAnswered(range: String?, condition: String?, answer: FileAnswer) {
        var headers: [String: String] = [:]
        headers["range"] = range
        headers["if-range"] = condition
        #expect(FileAnswer(headers: headers, etag: "\"tag\"", size: 10) == answer)
    }

    @Test func nothingCanBeTakenOutOfAnEmptyFile() {
        #expect(FileAnswer(headers: ["range": "bytes=0-"], etag: "\"t\"", size: 0) == .rangeNotSatisfiable)
        #expect(FileAnswer(headers: ["if-none-match": "\"a\", W/\"t\""], etag: "\"t\"", size: 0) == .notModified)
        #expect(FileAnswer(headers: ["if-none-match": "*"], etag: "\"t\"", size: 0) == .notModified)
    }

    @Test(
        arguments: [
            (0, 1, 0, true), (0, 1, 1, false), (0, 2, 0, false), (5 << 20, 1, 5 << 20, true),
            ((5 << 20) + 1, 1, 5 << 20, true),
            ((5 << 20) + 1, 2, 1, true), ((5 << 20) + 1, 2, 2, false), ((5 << 20) + 1, 1, 1, false),
            (nil, 10_000, 3, true),
            (nil, 10_001, 3, false), (nil, 1, (5 << 20) + 1, false), (10, 0, 10, false), (10, -1, 10, false),
        ] as [(Int?, Int, Int, Bool)])
    func aPartHasItsPlaceInTheGrid(size: Int?, number: Int, length: Int, fits: Bool) {
        #expect(UploadGrid(size: size, partSize: 5 << 20).contains(number: number, length: length) == fits)
    }

    @Test func aFileThatNeedsTooManyPartsIsRefused() {
        let partSize = PartLimits.bytesRange.lowerBound
        #expect(UploadGrid(size: partSize * PartLimits.countMax, partSize: partSize).fault == nil)
        #expect(UploadGrid(size: partSize * PartLimits.countMax + 1, partSize: partSize).fault?.code == .badRequest)
    }

    @Test func failuresAreFollowedByWhatCanHelp() {
        let policy = RetryPolicy(attemptMax: 10, failureMax: 3, firstDelay: 2, delayMax: 20, machineDelay: 7)
        func step(_ code: FailureCode, _ failureCount: Int, attempt: Int = 1) -> RetryPolicy.Step {
            policy.step(after: Failure(code, "m"), failureCount: failureCount, attempt: attempt)
        }
        #expect(step(.mediaCrashed, 1) == .retry(after: 2))
        #expect(step(.mediaCrashed, 2) == .retry(after: 8))
        #expect(step(.mediaCrashed, 3) == .reject(Reason(.mediaCrashed, "m")))
        #expect(step(.mediaCrashed, 1, attempt: 10) == .reject(Reason(.mediaCrashed, "m")))
        #expect(step(.corrupt, 1) == .reject(Reason(.corrupt, "m")))
        #expect(step(.overBudget, 1) == .reject(Reason(.overBudget, "m")))
        // The machine's fault burns no attempts.
        for code in [FailureCode.diskFull, .readOnly, .workerMissing, .sandboxUnavailable, .databaseError] {
            #expect(step(code, 99) == .wait(seconds: 7))
        }
        #expect(policy.delay(after: 3) == 20)
        #expect(policy.delay(after: .max) == 20)
        #expect(policy.stepAfterLostLease(attempt: 9, isRestart: true) == .retry(after: 0))
        #expect(policy.stepAfterLostLease(attempt: 9, isRestart: false) == .retry(after: 2))
        if case .reject(let reason) = policy.stepAfterLostLease(attempt: 10, isRestart: true) {
            #expect(reason.code == .mediaCrashed)
        } else {
            Issue.record("the limit of attempts does not hold")
        }
    }

    private func row(_ id: String, _ role: FileRole, _ name: String) throws -> UploadRow {
        UploadRow(
            id: try #require(UploadID(rawValue: id)), owner: .local, item: try #require(ItemID(rawValue: "item")),
            role: role, name: name,
            filename: name, size: 10, partSize: 5 << 20, generation: 1, state: .complete, isAlreadyStored: false,
            isAttached: true, isTus: false,
            expiresAt: Timestamp(milliseconds: 0))
    }

    @Test func onlyWhatIsMissingIsMade() throws {
        let original = try row("o", .original, "original")
        let rendition = try row("r", .rendition, "1080p")
        let poster = try row("p", .poster, "poster")
        func plan(
            _ kind: MediaFacts.Kind, _ delivery: MediaFacts.Delivery? = nil, derived: [UploadRow] = [],
            gps: [Double]? = nil,
            source: UploadRow? = nil, keepsLocation: Bool = false,
            sizes: [Int] = ThumbSettings.standardSizes
        ) -> ProcessingPlan {
            var facts = MediaFacts(kind: kind)
            (facts.delivery, facts.gps) = (delivery, gps)
            return ProcessingPlan(
                source: source ?? original, facts: facts, derived: derived, keepsLocation: keepsLocation,
                thumbnailSizes: sizes)
        }
        let stills: [OutputName] = [.poster, .storyboard, .storyboardIndex]
        #expect(plan(.video, .encode).transcode == [.rendition1080] + stills)
        #expect(plan(.video, .remux).transcode == [.rendition1080] + stills)
        let alias = plan(.video, .original)
        #expect(alias.isAlias)
        #expect(alias.transcode == stills)
        // An original that says where it was taken is not served as it is.
        #expect(plan(.video, .original, gps: [1, 2]).transcode == [.rendition1080] + stills)
        #expect(plan(.video, .original, gps: [1, 2], keepsLocation: true).isAlias)
        let board = try row("b", .storyboard, "storyboard")
        let sent = plan(.video, .original, derived: [rendition, poster, board])
        #expect(!sent.isAlias && sent.transcode.isEmpty && sent.thumbSizes.isEmpty)
        #expect(plan(.video, .original, derived: [rendition], source: rendition).transcode == stills)
        #expect(plan(.photo).thumbSizes == [2048, 512, 256])
        #expect(plan(.photo, sizes: [1600, 300]).thumbSizes == [1600, 300])
        let animation = plan(.animation)
        #expect(animation.thumbSizes == [2048, 512, 256] && animation.transcode == [.rendition1080])
        #expect(plan(.photo, derived: [try row("t", .thumbnail, "512")]).thumbSizes == [2048, 256])
        let audio = plan(.audio)
        #expect(audio.transcode.isEmpty && audio.thumbSizes.isEmpty && !audio.isAlias)
    }

    @Test(
        arguments: [
            ("unix:/run/x", ListenAddress.unix(path: "/run/x")), ("127.0.0.1:80", .tcp(host: "127.0.0.1", port: 80)),
            ("[::1]:8080", .tcp(host: "::1", port: 8080)), (":80", nil), ("host", nil), ("host:99999", nil),
            ("host:x", nil),
        ] as [(String, ListenAddress?)])
    func aListenAddressIsRead(text: String, address: ListenAddress?) { #expect(ListenAddress(text) == address) }

    @Test func aSignatureForOneThingIsNoneForAnother() throws {
        let signer = URLSigner(key: [UInt8](repeating: 1, count: 32))
        let now = Timestamp(milliseconds: 1_000_000)
        let permit = PartPermit(
            session: StoreSession(upload: try #require(UploadID(rawValue: "up")), generation: 3),
            part: SignedPart(number: 7, length: 9, md5: String(repeating: "a", count: 32)),
            expiresAt: now.adding(seconds: 1))
        let token = String(signer.url(for: permit).dropFirst("/v1/parts/".count))
        #expect(try signer.permit(token, now: now) == permit)
        #expect(throws: Failure.self) { try signer.permit(token, now: now.adding(seconds: 1)) }
        #expect(throws: Failure.self) { try URLSigner(key: [UInt8](repeating: 2, count: 32)).permit(token, now: now) }
        #expect(throws: Failure.self) {
            try signer.permit(token.replacingOccurrences(of: ".7.", with: ".8."), now: now)
        }
        let key = try #require(BlobKey(rawValue: "u-up.3"))
        let url = signer.url(for: key, expiresAt: now.adding(seconds: 10))
        let signature = String(try #require(url.split(separator: "=").last))
        #expect(signer.allows(key, expires: "1010", signature: signature, now: now))
        #expect(!signer.allows(key, expires: "1011", signature: signature, now: now))
        #expect(
            !signer.allows(try #require(BlobKey(rawValue: "u-up.4")), expires: "1010", signature: signature, now: now))
        #expect(!signer.allows(key, expires: "1010", signature: signature, now: now.adding(seconds: 10)))
    }

    @Test func datesAreWrittenAsTheirStandardsSay() {
        let moment = Timestamp(milliseconds: 784_111_777_000)
        #expect(moment.iso8601 == "1994-11-06T08:49:37Z")
        #expect(moment.httpDate == "Sun, 06 Nov 1994 08:49:37 GMT")
    }
}
