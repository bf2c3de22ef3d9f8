import Digests
import Files
import Foundation
import Testing
import Vocabulary

@testable import Ingest

@Suite struct PartHashesTests {
    let scratch: ScratchFolder
    let staging: Staging
    let bytes = pattern(2_500_000)
    let file: FileRow
    let grid: PartGrid
    var path: String { staging.path(of: file) }

    init() throws {
        scratch = try ScratchFolder()
        staging = try Staging.open(home: scratch.path + "/home")
        let item = ItemID.named("item-1")
        let wanted = FileRow(
            item: item, role: .original, name: "CLIP.MP4",
            source: RawPath(try scratch.write(bytes, "card/CLIP.MP4")),
            path: Staging.path(of: item, sidecar: nil), contentType: "video/mp4", state: .wanted)
        file = try staging.adopt(wanted, isMoved: false, stop: StopFlag())
        grid = try PartGrid(size: bytes.count, partSize: 1_000_000)
    }

    private func write(_ bytes: [UInt8], at offset: Int) throws {
        let open = try #require(FileHandle(forUpdatingAtPath: path))
        try open.seek(toOffset: UInt64(offset))
        open.write(Data(bytes))
        try open.close()
    }
    private func code(_ body: () async throws -> Void) async -> FailureCode? {
        do { try await body() } catch { return (error as? Failure)?.code }
        return nil
    }

    @Test func whatIsSignedIsTheMD5OfEachPart() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts {
            let request = try await hashes.requests([part])[0]
            let slice = Array(bytes[part.offset..<part.offset + part.length])
            #expect(request.contentMD5 == Digest.contentMD5(slice) && request.length == slice.count)
        }
        try await hashes.confirm()
    }

    @Test(arguments: 1...5) func partsThatAreReadSideBySideAreSignedAlike(count: Int) async throws {
        let grid = try PartGrid(size: bytes.count, partSize: 576_000)
        #expect(grid.count == 5)
        let hashes = PartHashes(file, in: staging)
        for start in stride(from: 0, to: grid.count, by: count) {
            let parts = Array(grid.parts[start..<min(start + count, grid.count)])
            let requests = try await hashes.requests(parts)
            for (part, request) in zip(parts, requests) {
                let slice = Array(bytes[part.offset..<part.offset + part.length])
                #expect(request.contentMD5 == Digest.contentMD5(slice) && request.partNumber == part.number)
            }
        }
        try await hashes.confirm()
    }

    @Test(arguments: 1...4, [0, 1, 2, 7]) func fourMessagesSideBySideHaveTheHashesOfEachAlone(count: Int, blocks: Int) {
        let messages = (0..<count).map { message in pattern(blocks * 128).map { $0 &+ UInt8(message * 31) } }
        let hashes = MD5Four(count: count)
        for half in 0..<2 {
            let pieces = messages.flatMap { $0[half * blocks * 64..<(half + 1) * blocks * 64] }
            pieces.withUnsafeBytes { hashes.update($0, length: blocks * 64) }
        }
        #expect(hashes.finalize().map(\.base64) == messages.map { Digest.contentMD5($0) })
    }

    @Test func aFileWithoutItsQuickHashIsComparedByTheOther() async throws {
        var old = file
        old.xxh128 = nil
        for isDamaged in [false, true] {
            if isDamaged { old.sha256 = Digest.sha256([1]) }
            let hashes = PartHashes(old, in: staging)
            _ = try await hashes.requests(grid.parts)
            #expect(await code { try await hashes.confirm() } == (isDamaged ? .stagingDamaged : nil))
        }
    }

    @Test func aFileThatChangesAfterItsPartsWereSignedIsNotSealed() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.requests([part]) }
        try write([1, 2, 3], at: 1_500_000)
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func aFileThatHadChangedBeforeIsNotSealed() async throws {
        // Its times are as they were: only the bytes tell.
        let times = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
        try write([1, 2, 3], at: 10)
        try FileManager.default.setAttributes([.modificationDate: times as Any], ofItemAtPath: path)
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.requests([part]) }
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test(arguments: [[1, 3], [3, 1, 2], [2, 1, 3], [3]]) func partsOfAnEarlierProcessAreReadBeforeTheEnd(parts: [Int])
        async throws
    {
        let hashes = PartHashes(file, in: staging)
        for number in parts { _ = try await hashes.requests([grid.part(number)]) }
        try await hashes.confirm()
        try write([1, 2, 3], at: 10)
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func aPartThatWasReadTwiceMayHaveChangedInBetween() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.requests([part]) }
        let times = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
        try write([1, 2, 3], at: 1_500_000)
        try FileManager.default.setAttributes([.modificationDate: times as Any], ofItemAtPath: path)
        await hashes.forget(2)
        _ = try await hashes.requests([grid.part(2)])
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func anotherFileInItsPlaceIsReadWhole() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.requests([part]) }
        try FileManager.default.removeItem(atPath: path)
        try Files.write(bytes, to: path)
        try await hashes.confirm()
    }

    @Test func aFileThatIsGoneOrShorterIsToldAsSuch() async throws {
        let hashes = PartHashes(file, in: staging)
        _ = try await hashes.requests([grid.part(1)])
        try FileManager.default.removeItem(atPath: path)
        #expect(await code { _ = try await hashes.requests([grid.part(2)]) } == .stagingMissing)
        #expect(await code { try await hashes.confirm() } == .stagingMissing)
        try Files.write(Array(bytes.prefix(1_200_000)), to: path)
        #expect(await code { _ = try await hashes.requests([grid.part(3)]) } == .stagingDamaged)
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func anEmptyFileIsOneEmptyPart() async throws {
        var empty = file
        try FileManager.default.removeItem(atPath: path)
        try Files.write([], to: path)
        (empty.bytes, empty.sha256) = (0, Digest.sha256([]))
        let hashes = PartHashes(empty, in: staging)
        #expect(try await hashes.requests([PartGrid(size: 0, partSize: 8 << 20).part(1)])[0].length == 0)
        try await hashes.confirm()
    }
}
