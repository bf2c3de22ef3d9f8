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
            let request = try await hashes.request(part)
            let slice = Array(bytes[part.offset..<part.offset + part.length])
            #expect(request.contentMD5 == Digest.contentMD5(slice) && request.length == slice.count)
        }
        try await hashes.confirm()
    }

    @Test func aFileThatChangesAfterItsPartsWereSignedIsNotSealed() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.request(part) }
        try write([1, 2, 3], at: 1_500_000)
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func aFileThatHadChangedBeforeIsNotSealed() async throws {
        // Its times are as they were: only the bytes tell.
        let times = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
        try write([1, 2, 3], at: 10)
        try FileManager.default.setAttributes([.modificationDate: times as Any], ofItemAtPath: path)
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.request(part) }
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test(arguments: [[1, 3], [3, 1, 2], [2, 1, 3], [3]]) func partsOfAnEarlierProcessAreReadBeforeTheEnd(parts: [Int])
        async throws
    {
        let hashes = PartHashes(file, in: staging)
        for number in parts { _ = try await hashes.request(grid.part(number)) }
        try await hashes.confirm()
        try write([1, 2, 3], at: 10)
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func aPartThatWasReadTwiceMayHaveChangedInBetween() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.request(part) }
        let times = try FileManager.default.attributesOfItem(atPath: path)[.modificationDate]
        try write([1, 2, 3], at: 1_500_000)
        try FileManager.default.setAttributes([.modificationDate: times as Any], ofItemAtPath: path)
        await hashes.forget(2)
        _ = try await hashes.request(grid.part(2))
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func anotherFileInItsPlaceIsReadWhole() async throws {
        let hashes = PartHashes(file, in: staging)
        for part in grid.parts { _ = try await hashes.request(part) }
        try FileManager.default.removeItem(atPath: path)
        try Files.write(bytes, to: path)
        try await hashes.confirm()
    }

    @Test func aFileThatIsGoneOrShorterIsToldAsSuch() async throws {
        let hashes = PartHashes(file, in: staging)
        _ = try await hashes.request(grid.part(1))
        try FileManager.default.removeItem(atPath: path)
        #expect(await code { _ = try await hashes.request(grid.part(2)) } == .stagingMissing)
        #expect(await code { try await hashes.confirm() } == .stagingMissing)
        try Files.write(Array(bytes.prefix(1_200_000)), to: path)
        #expect(await code { _ = try await hashes.request(grid.part(3)) } == .stagingDamaged)
        #expect(await code { try await hashes.confirm() } == .stagingDamaged)
    }

    @Test func anEmptyFileIsOneEmptyPart() async throws {
        var empty = file
        try FileManager.default.removeItem(atPath: path)
        try Files.write([], to: path)
        (empty.bytes, empty.sha256) = (0, Digest.sha256([]))
        let hashes = PartHashes(empty, in: staging)
        #expect(try await hashes.request(PartGrid(size: 0, partSize: 8 << 20).part(1)).length == 0)
        try await hashes.confirm()
    }
}
