import Digests
import Testing
import Vocabulary

@testable import Backend

/// What the head of a tus request says and what follows from it, without a server.
@Suite struct TusDecisionTests {
    private static func code(_ body: () throws -> Void) -> FailureCode? {
        do { try body() } catch { return (error as? Failure)?.code }
        return nil
    }

    @Test func aLengthIsGivenOrPutOffAndNothingElse() throws {
        #expect(try Tus.Creation(["upload-length": "0"]).length == 0)
        #expect(try Tus.Creation(["upload-length": "12"]).length == 12)
        #expect(try Tus.Creation(["upload-defer-length": "1"]).length == nil)
        let refused: [[String: String]] = [
            [:], ["upload-defer-length": "2"], ["upload-length": "1", "upload-defer-length": "1"],
            ["upload-length": "-1"], ["upload-length": "+1"], ["upload-length": "1e3"], ["upload-length": ""],
            ["upload-length": "99999999999999999999"],
        ]
        for headers in refused { #expect(Self.code { _ = try Tus.Creation(headers) } == .badRequest, "\(headers)") }
    }

    @Test(
        arguments: [
            ("", [:]), ("filename YS5qcGc=", ["filename": "a.jpg"]), ("a YQ==,b ,c", ["a": "a", "b": "", "c": ""]),
            ("a YQ==, b Yg==", ["a": "a", "b": "b"]), ("a YQ==,a Yg==", nil), ("a !", nil), ("a YQ== b", nil),
            (",", nil),
            ("a YQ==,", nil),
        ] as [(String, [String: String]?)])
    func metadataIsPairsOfUniqueKeysAndBase64(header: String, values: [String: String]?) {
        #expect((try? TusMetadata(header).values) == values)
    }

    @Test func metadataIsBounded() throws {
        let fits = "a " + String(repeating: "YWFh", count: (Tus.metadataBytesMax - 2) / 4)
        #expect(try TusMetadata(fits).values["a"] != nil)
        #expect(Self.code { _ = try TusMetadata(fits + "YWFh") } == .badRequest)
    }

    @Test(arguments: [
        ([:], "upload"), (["filename": "a.jpg"], "a.jpg"), (["name": "b.jpg"], "b.jpg"),
        (["filename": "a.jpg", "name": "b.jpg"], "a.jpg"), (["filename": "../x/c.jpg"], "c.jpg"),
        (["filename": "C:\\x\\d.jpg"], "d.jpg"), (["filename": "//"], "upload"), (["filename": ""], "upload"),
    ])
    func aFileIsCalledWhatItsClientCallsItWithoutAPath(values: [String: String], name: String) throws {
        var metadata = try TusMetadata("")
        metadata.values = values
        #expect(metadata.filename == name)
    }

    @Test func partsAreAsLargeAsTheirNumberAsks() {
        let mebibyte = 1 << 20
        let known: [(length: Int?, mebibytes: Int)] = [
            (nil, 32), (0, 8), (1, 8), (80_000 * mebibyte, 8), (80_000 * mebibyte + 1, 9), (Tus.bytesMax, 32),
        ]
        for (length, mebibytes) in known {
            #expect(PartLimits.partSize(for: length) == mebibytes * mebibyte)
            #expect(UploadGrid(size: length, partSize: mebibytes * mebibyte).fault == nil)
        }
        #expect(PartLimits.partSize(for: .max) == PartLimits.bytesRange.upperBound)
    }

    private struct Case: Sendable {
        var size: Int?
        var offset: Int
        var patch: [String: String]
        /// The size afterwards, or why not.
        var outcome: Result<Int?, Failure>
        static func refused(_ code: FailureCode) -> Result<Int?, Failure> { .failure(Failure(code, "")) }
    }

    private static let cases = [
        Case(size: 10, offset: 4, patch: ["upload-offset": "4", "content-length": "6"], outcome: .success(10)),
        Case(size: 10, offset: 4, patch: ["upload-offset": "4"], outcome: .success(10)),
        Case(size: 10, offset: 10, patch: ["upload-offset": "10", "content-length": "0"], outcome: .success(10)),
        Case(size: 10, offset: 4, patch: ["upload-offset": "3"], outcome: Case.refused(.conflict)),
        Case(size: 10, offset: 4, patch: ["upload-offset": "5"], outcome: Case.refused(.conflict)),
        Case(
            size: 10, offset: 4, patch: ["upload-offset": "4", "content-length": "7"],
            outcome: Case.refused(.bodyTooLarge)),
        Case(size: nil, offset: 4, patch: ["upload-offset": "4", "content-length": "7"], outcome: .success(nil)),
        Case(
            size: nil, offset: 4, patch: ["upload-offset": "4", "content-length": "7", "upload-length": "11"],
            outcome: .success(11)),
        Case(
            size: nil, offset: 4, patch: ["upload-offset": "4", "content-length": "7", "upload-length": "10"],
            outcome: Case.refused(.bodyTooLarge)),
        Case(
            size: nil, offset: 4, patch: ["upload-offset": "4", "upload-length": "3"],
            outcome: Case.refused(.badRequest)),
        Case(size: nil, offset: 4, patch: ["upload-offset": "4", "upload-length": "4"], outcome: .success(4)),
        Case(size: 10, offset: 4, patch: ["upload-offset": "4", "upload-length": "10"], outcome: .success(10)),
        Case(
            size: 10, offset: 4, patch: ["upload-offset": "4", "upload-length": "11"],
            outcome: Case.refused(.badRequest)
        ),
        Case(
            size: nil, offset: 4, patch: ["upload-offset": "4", "upload-length": "\(Tus.bytesMax + 1)"],
            outcome: Case.refused(.bodyTooLarge)),
        Case(
            size: nil, offset: 0,
            patch: [
                "upload-offset": "0", "content-length": "\(Tus.checkedBytesMax + 1)",
                "upload-checksum": "md5 AAAAAAAAAAAAAAAAAAAAAA==",
            ], outcome: Case.refused(.bodyTooLarge)),
    ]

    @Test func aBodyGoesOnWhereTheUploadStandsAndEndsWhereTheFileDoes() throws {
        for each in Self.cases {
            let standing = TusStanding(size: each.size, partSize: 8, offset: each.offset)
            let patch = try Tus.Patch(each.patch)
            let outcome = Result { try TusPolicy.admit(patch, at: standing) }
            switch each.outcome {
            case .success(let size):
                #expect(try outcome.get() == TusStanding(size: size, partSize: 8, offset: each.offset), "\(each.patch)")
            case .failure(let failure): #expect(Self.code { _ = try outcome.get() } == failure.code, "\(each.patch)")
            }
        }
        #expect(Self.code { _ = try Tus.Patch([:]) } == .badRequest)
        #expect(Self.code { _ = try Tus.Patch(["upload-offset": "-1"]) } == .badRequest)
    }

    @Test func anOffsetLiesInOnePart() {
        let known: [(size: Int?, offset: Int, number: Int, tail: Int, bytes: Int)] = [
            (20, 0, 1, 0, 8), (20, 7, 1, 7, 8), (20, 8, 2, 0, 8), (20, 16, 3, 0, 4), (20, 19, 3, 3, 4),
            (nil, 19, 3, 3, 8), (5, 0, 1, 0, 5),
        ]
        for (size, offset, number, tail, bytes) in known {
            let standing = TusStanding(size: size, partSize: 8, offset: offset)
            #expect(standing.partNumber == number && standing.tailBytes == tail && standing.partBytes == bytes)
            #expect(!standing.isFull)
        }
        #expect(TusStanding(size: 5, partSize: 8, offset: 5).isWhole)
        #expect(!TusStanding(size: nil, partSize: 8, offset: 5).isWhole)
        #expect(TusStanding(size: 0, partSize: 8, offset: 0).isFull)
    }

    @Test func whatWasRecordedCountsAsLongAsTheStoreHasAllOfIt() {
        let recorded = [(1, 8), (2, 8), (3, 5)].map { SignedPart(number: $0, length: $1, md5: "x") }
        func hasAll(_ recorded: [SignedPart], _ numbers: [Int], hasTail: Bool) -> Bool {
            let held = numbers.map { StoredPart(number: $0, size: 8, md5: "x") }
            return TusPolicy.hasAll(recorded, partSize: 8, held: held, hasTail: hasTail)
        }
        #expect(hasAll(recorded, [1, 2], hasTail: true))
        #expect(hasAll(recorded, [1, 2, 3], hasTail: false))
        #expect(!hasAll(recorded, [1, 2], hasTail: false))
        #expect(!hasAll(recorded, [1, 3], hasTail: true))
        #expect(!hasAll([recorded[0], recorded[2]], [1, 3], hasTail: true))
        #expect(!hasAll([SignedPart(number: 1, length: 7, md5: "x"), recorded[1]], [1, 2], hasTail: false))
        #expect(hasAll([], [], hasTail: false))
    }

    @Test(arguments: [
        ("sha1 Lve95gjOVATpfV8EL5X4nxwjKHE=", true), ("sha1 Lve95gjOVATpfV8EL5X4nxwjKH", false),
        ("md5 Lve95gjOVATpfV8EL5X4nxwjKHE=", false), ("crc32 AAAAAA==", false), ("sha1", false), ("", false),
    ])
    func aChecksumIsAKnownAlgorithmAndAsManyBytes(header: String, isGood: Bool) {
        let code = Self.code { _ = try Tus.Checksum(["upload-checksum": header]) }
        #expect(code == (isGood ? nil : .badRequest))
    }

    @Test func aKeySaysWhatItIs() throws {
        let session = StoreSession(upload: try #require(UploadID(rawValue: "up-1_x")), generation: 2)
        let part = SignedPart(number: 7, bytes: [1, 2, 3])
        let key = BlobKey.tail(part, of: session)
        #expect(BlobKey(rawValue: key.rawValue) == key)
        #expect(key.origin == .tail(part, session))
        #expect(BlobKey.upload(session).origin == .upload(session))
        #expect(BlobKey.copied(session).origin == .copy(session))
        #expect(BlobKey.probe(session.upload).origin == .probe)
        let item = try #require(ItemID(rawValue: "it-1"))
        #expect(BlobKey.made(for: item, epoch: 3, name: OutputName("512")).origin == .made(item, epoch: 3))
        for odd in ["t-up-1.1.x", "u-up-1", "u-up-1.1.1", "d-it-1.x.512", "d-it-1.1", "x-up-1.1", "letter", "u"] {
            #expect(BlobKey(rawValue: odd)?.origin == nil, "\(odd)")
        }
    }

    @Test func aSHA256GoesOnFromItsState() throws {
        let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        for cut in [0, 1, 63, 64, 65, 999, 1000] {
            var first = ResumableSHA256()
            bytes[..<cut].withUnsafeBytes { first.update($0) }
            var second = try #require(ResumableSHA256(state: first.state))
            bytes[cut...].withUnsafeBytes { second.update($0) }
            #expect(second.digest == Digest.sha256(bytes) && second.digest == Digest.sha256(bytes))
        }
        #expect(ResumableSHA256(state: [1]) == nil)
    }
}
