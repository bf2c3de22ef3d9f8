import Digests
import Files
import Foundation
@testable import SQLite
import Testing
import Vocabulary

@testable import Ingest

/// Each finding is shown by the damage that it is there to find.
@Suite struct BoxCheckTests {
    let scratch: ScratchFolder
    let catalog: Catalog
    let staging: Staging
    let item = ItemID.named("item-1")
    let upload = UploadID.named("upload-1")
    var home: String { scratch.path + "/home" }
    var original: String { staging.root + "/item-1/original" }

    /// A home with one item, staged and about to be uploaded.
    init() async throws {
        scratch = try ScratchFolder()
        let home = scratch.path + "/home"
        try Files.makeFolder(home)
        staging = try Staging.open(home: home)
        catalog = try await Catalog.open(home: home)
        let source = try scratch.write(pattern(1000), "card/a.mp4")
        let walked = WalkedFile(path: RawPath(source), size: 1000, modified: 1)
        let file = FileRow(
            item: item, role: .original, name: "a.mp4", source: walked.path, sourceSize: 1000, sourceModified: 1,
            path: Staging.path(of: item, sidecar: nil), contentType: "video/mp4", state: .wanted)
        let new = Catalog.NewItem(
            id: item, shoot: "s", name: "a.mp4", source: walked, isMoved: false, prepare: .auto, files: [file],
            created: 1)
        _ = try await catalog.picked(.init(new: [new]), since: 0)
        let row = try #require(try catalog.item(item))
        try await catalog.staged(try staging.adopt(file, isMoved: false, stop: StopFlag()), of: row)
        try await catalog.probed(row, nil, contentType: nil)
        try await catalog.prepared(
            row, derived: [],
            uploads: [UploadRow(id: upload, item: item, role: .original, name: "a.mp4", partSize: 8 << 20)])
    }

    func codes() async throws -> [String] { try await BoxCheck.run(home: home).map(\.code) }

    @Test func aHomeInOrderHasNoFindings() async throws { #expect(try await codes() == []) }

    @Test func aHomeThatWasNeverUsedHasNoFindings() async throws {
        #expect(try await BoxCheck.run(home: scratch.path + "/other") == [])
    }

    @Test func aStagedFileThatIsGone() async throws {
        try Files.remove(original)
        #expect(try await codes() == ["staged-missing"])
    }

    @Test func aStagedFileThatIsShorter() async throws {
        try Files.write(pattern(999), to: original)
        #expect(try await codes() == ["staged-size"])
    }

    @Test func aStagedFileWithAnotherByte() async throws {
        var bytes = pattern(1000)
        bytes[500] ^= 1
        try Files.write(bytes, to: original)
        #expect(try await codes() == ["staged-damaged"])
    }

    @Test func aStagedFileWithoutItsHash() async throws {
        try Connection(catalog.database.path).run("UPDATE file SET sha256 = NULL")
        #expect(try await codes() == ["staged-unhashed"])
    }

    @Test func anOriginalThatLeftWithoutConfirmation() async throws {
        try Connection(catalog.database.path).run("UPDATE file SET state = 'released'")
        try Files.remove(original)
        #expect(try await codes() == ["released-unconfirmed"])
        // With the hash of something else it is no better; with its own it is in order.
        try Connection(catalog.database.path).run(
            "UPDATE upload SET confirmed_sha256 = ?1", [SQLValue(Digest.sha256("something else"))])
        #expect(try await codes() == ["released-unconfirmed"])
        try Connection(catalog.database.path).run("UPDATE upload SET confirmed_sha256 = (SELECT sha256 FROM file)")
        #expect(try await codes() == [])
    }

    @Test func anItemThatIsReadyWithoutConfirmation() async throws {
        try Connection(catalog.database.path).run("UPDATE item SET state = 'ready'")
        #expect(try await codes() == ["ready-unconfirmed"])
    }

    @Test func anItemThatCountsAsStagedWithoutItsBytes() async throws {
        try Connection(catalog.database.path).run("UPDATE file SET state = 'wanted'")
        #expect(try await codes() == ["staged-without-bytes"])
    }

    @Test func moreAttemptsThanAllowed() async throws {
        try Connection(catalog.database.path).run("UPDATE item SET attempts = 6")
        #expect(try await codes() == ["attempts-over-limit"])
    }

    @Test func anUploadWithoutItsFile() async throws {
        try Connection(catalog.database.path).run("UPDATE upload SET name = 'other'")
        #expect(try await codes() == ["upload-without-file"])
    }

    @Test(arguments: [
        "INSERT INTO file(item, role, name, path, content_type, state) VALUES('no', 'original', 'a', 'no/a', '', 'wanted')",
        "INSERT INTO upload(id, item, role, name, state, part_size) VALUES('u', 'no', 'original', 'a', 'queued', 1)",
        "INSERT INTO part(upload, number, bytes) VALUES('no', 1, 1000)",
        "INSERT INTO history(item, number, at, entry) VALUES('no', 1, 1, '{}')",
    ]) func aRowThatBelongsToNothing(sql: String) async throws {
        try Connection(catalog.database.path).run(sql)
        #expect(try await codes() == ["row-orphaned"])
    }

    @Test func anItemWithoutItsOriginal() async throws {
        let database = try Connection(catalog.database.path)
        try database.run("UPDATE file SET role = 'sidecar'")
        try database.run("UPDATE upload SET role = 'sidecar'")
        #expect(try await codes() == ["original-missing"])
    }

    @Test func anItemThatIsToBeTakenWithNothingLeftToTake() async throws {
        let database = try Connection(catalog.database.path)
        try database.run("UPDATE item SET state = 'picked'")
        #expect(try await codes() == ["picked-with-bytes"])
        try database.run("UPDATE upload SET confirmed_sha256 = (SELECT sha256 FROM file)")
        try database.run("UPDATE file SET state = 'released'")
        try Files.remove(original)
        #expect(try await codes() == ["picked-with-bytes"])
        // A cancellation that came between is no damage: what it finds, it puts in order.
        try database.run("UPDATE item SET intent = 'cancelled'")
        #expect(try await codes() == [])
        try database.run("UPDATE item SET intent = 'run'")
        // Something of it is still to be taken.
        try database.run(
            "INSERT INTO file(item, role, name, path, content_type, state) VALUES('item-1', 'sidecar', 'a.xmp', 'item-1/sidecar-0', '', 'wanted')"
        )
        #expect(try await codes() == [])
    }

    @Test func anUploadWithAnImpossibleGrid() async throws {
        try Connection(catalog.database.path).run("UPDATE upload SET part_size = 0")
        #expect(try await codes() == ["upload-grid"])
    }

    @Test(arguments: [(2, 1000), (0, 1000), (1, 999)]) func anAcknowledgedPartThatIsNone(number: Int, bytes: Int)
        async throws
    {
        try Connection(catalog.database.path).run(
            "INSERT INTO part(upload, number, bytes) VALUES('upload-1', ?1, ?2)", [.int(number), .int(bytes)])
        #expect(try await codes() == ["part-off-grid"])
    }

    @Test(arguments: ["item-1/unknown", "item-2/original", "loose"]) func aFileInStagingThatIsNobodys(path: String)
        async throws
    {
        try Files.makeFolder(Files.folder(of: staging.root + "/" + path))
        try Files.write([1], to: staging.root + "/" + path)
        #expect(try await codes() == ["staging-stranger"])
    }

    @Test func aHalfWrittenFileOfAFinishedItem() async throws {
        _ = try OpenFile.creating(staging.folder(of: item) + "/" + Files.temporaryPrefix + "x")
        #expect(try await codes() == [])
        try Connection(catalog.database.path).run("UPDATE item SET state = 'failed'")
        #expect(try await codes() == ["staging-stranger"])
    }
}
