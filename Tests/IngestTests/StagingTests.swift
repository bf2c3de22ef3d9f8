import Digests
import Files
import Foundation
import Testing
import Vocabulary

@testable import Ingest

@Suite struct StagingTests {
    let scratch: ScratchFolder
    let staging: Staging
    let item = ItemID.named("item-1")
    init() throws {
        scratch = try ScratchFolder()
        staging = try Staging.open(home: scratch.path + "/home")
    }

    func file(_ source: String) -> FileRow {
        FileRow(
            item: item, role: .original, name: "CLIP.MP4", source: RawPath(source),
            path: Staging.path(of: item, sidecar: nil), contentType: "video/mp4", state: .wanted)
    }

    @Test func stagingIsPrivateAndKeptOutOfBackups() throws {
        let mode = try FileManager.default.attributesOfItem(atPath: staging.root)[.posixPermissions] as? Int
        #expect(mode == 0o700)
        let tag = try OpenFile.reading(staging.root + "/CACHEDIR.TAG").read(count: 43, at: 0)
        #expect(String(decoding: tag, as: UTF8.self) == "Signature: 8a477f597d28d172789f06886806bc55")
    }

    @Test func aCloneHasTheHashOfItsSourceWhichStays() throws {
        let bytes = pattern(3_000_000)
        let source = try scratch.write(bytes, "card/CLIP.MP4")
        let staged = try staging.adopt(file(source), isMoved: false, stop: StopFlag())
        #expect(staged.sha256 == Digest.sha256(bytes) && staged.bytes == bytes.count && staged.state == .staged)
        #expect(!staged.isSourceRemoved)
        #expect(try OpenFile.reading(staging.path(of: staged)).read(count: bytes.count + 1, at: 0) == bytes)
        #expect(try Files.facts(source) != nil)
    }

    @Test func aMoveOnOneFileSystemTakesTheSourceAway() throws {
        let bytes = pattern(100_000)
        let source = try scratch.write(bytes, "inbox/CLIP.MP4")
        let staged = try staging.adopt(file(source), isMoved: true, stop: StopFlag())
        #expect(staged.sha256 == Digest.sha256(bytes) && staged.isSourceRemoved)
        #expect(try Files.facts(source) == nil)
    }

    @Test(.enabled(if: otherFileSystem != nil, "no second file system to move from"))
    func aMoveBetweenFileSystemsLeavesTheSourceUntilItIsFinished() throws {
        let bytes = pattern(2_000_000)
        let source = (otherFileSystem ?? "") + "/rushes-" + UUID().uuidString
        try Files.write(bytes, to: source)
        defer { try? Files.remove(source) }
        let staged = try staging.adopt(file(source), isMoved: true, stop: StopFlag())
        #expect(staged.sha256 == Digest.sha256(bytes) && !staged.isSourceRemoved)
        #expect(try Files.facts(source) != nil)
        #expect(try staging.finishMove(staged, stop: StopFlag()))
        #expect(try Files.facts(source) == nil)
    }

    @Test func aMoveDoesNotRemoveASourceThatHasOtherBytesByNow() throws {
        let source = try scratch.write(pattern(1000), "card/CLIP.MP4")
        let staged = try staging.adopt(file(source), isMoved: false, stop: StopFlag())
        try Files.write(pattern(1000, seed: 2), to: source)
        #expect(try !staging.finishMove(staged, stop: StopFlag()))
        #expect(try Files.facts(source) != nil)
    }

    @Test func aFileThatAKilledProcessFinishedIsAdoptedByItsOwnHash() throws {
        let bytes = pattern(50_000)
        try Files.makeFolder(staging.folder(of: item))
        try Files.write(bytes, to: staging.root + "/" + Staging.path(of: item, sidecar: nil))
        // The card is gone: only staging has the bytes.
        let staged = try staging.adopt(file("/gone/CLIP.MP4"), isMoved: false, stop: StopFlag())
        #expect(staged.sha256 == Digest.sha256(bytes))
    }

    @Test func halfWrittenFilesGoAndWholeOnesStay() throws {
        try Files.makeFolder(staging.folder(of: item) + "/made")
        let folder = staging.folder(of: item)
        try Files.write([1], to: folder + "/original")
        _ = try OpenFile.creating(folder + "/" + Files.temporaryPrefix + "x")
        try Files.write([1], to: folder + "/made/1080p.mp4")
        try staging.removeUnfinished(of: item, keepsDerived: true)
        #expect(try Files.names(in: folder) == ["made", "original"])
        try staging.removeUnfinished(of: item, keepsDerived: false)
        #expect(try Files.names(in: folder) == ["original"])
    }

    @Test func aSourceThatIsWrittenMeanwhileIsNotTaken() throws {
        let source = try scratch.write(pattern(3_000_000), "card/CLIP.MP4")
        var writes = 0
        let failure = #expect(throws: Failure.self) {
            try staging.adopt(file(source), isMoved: false, stop: StopFlag()) { _ in
                writes += 1
                let opened = FileHandle(forWritingAtPath: source)
                opened?.seekToEndOfFile()
                opened?.write(Data([1]))
                try? opened?.close()
            }
        }
        #expect(failure?.code == .sourceChanged)
        #expect(writes >= Staging.changedMax)
        #expect(try Files.names(in: staging.folder(of: item)).isEmpty)
    }

    @Test func aMissingSourceIsItsOwnFailure() throws {
        let failure = #expect(throws: Failure.self) {
            try staging.adopt(file(scratch.path + "/none"), isMoved: false, stop: StopFlag())
        }
        #expect(failure?.code == .sourceMissing)
    }

    @Test(arguments: ["../precious", "item-1/../../precious", "precious", "/precious", "item-1//x", "item 1/x", ""])
    func releaseRefusesAPathOutsideStaging(path: String) throws {
        try scratch.write([1], "home/precious")
        try Files.makeFolder(staging.folder(of: item))
        var row = file("/none")
        row.path = path
        row.state = .released
        #expect(throws: Failure.self) { try staging.remove([row], of: item, withFolder: true) }
        #expect(try Files.facts(scratch.path + "/home/precious") != nil)
    }

    @Test func releaseRefusesALinkThatLeadsOut() throws {
        try scratch.write([1], "outside/original")
        try FileManager.default.createSymbolicLink(
            atPath: staging.folder(of: item), withDestinationPath: scratch.path + "/outside")
        var row = file("/none")
        row.state = .released
        #expect(throws: Failure.self) { try staging.remove([row], of: item, withFolder: true) }
        #expect(try Files.facts(scratch.path + "/outside/original") != nil)
    }

    @Test func aFileThatTheCatalogDoesNotLetGoStays() throws {
        let source = try scratch.write(pattern(10), "card/CLIP.MP4")
        let staged = try staging.adopt(file(source), isMoved: false, stop: StopFlag())
        #expect(throws: Failure.self) { try staging.remove([staged], of: item, withFolder: true) }
        #expect(try Files.facts(staging.path(of: staged)) != nil)
    }

    @Test func theEndsTellFilesOfOneSizeApart() throws {
        var bytes = pattern(300_000)
        let one = try scratch.write(bytes, "a")
        bytes[299_999] ^= 1
        let two = try scratch.write(bytes, "b")
        func ends(_ path: String) throws -> SHA256Digest {
            try FileEnds.sha256(of: OpenFile.reading(path), size: bytes.count)
        }
        #expect(try ends(one) != ends(two))
        #expect(try FileEnds.sha256(of: .reading(try scratch.write([], "c")), size: 0) == Digest.sha256([]))
    }
}

/// A writable folder on another file system than the temporary folder's.
private let otherFileSystem: String? = {
    guard let here = try? Files.facts(NSTemporaryDirectory()) else { return nil }
    return ["/dev/shm", "/run", NSHomeDirectory()].first { folder in
        guard let there = try? Files.facts(folder), there.device != here.device else { return false }
        return FileManager.default.isWritableFile(atPath: folder)
    }
}()

@Suite struct ReleasePolicyTests {
    let hash = Digest.sha256("a")
    func decide(
        _ role: FileRole, _ state: ItemState, _ reason: FailureCode? = nil, isMoved: Bool = false,
        confirmed: SHA256Digest? = nil
    ) -> ReleasePolicy {
        ReleasePolicy.decide(
            role: role, sha256: hash, state: state, reason: reason, isMoved: isMoved, confirmed: confirmed)
    }

    @Test(arguments: ItemState.allCases) func anOriginalGoesByItsConfirmedHashWhateverTheState(state: ItemState) {
        #expect(decide(.original, state, confirmed: hash) == .go)
        #expect(decide(.original, state) == .stay)
        #expect(decide(.sidecar, state, confirmed: Digest.sha256("b")) == .stay)
    }

    @Test func whatIsNoMediaGoesOnlyAsACloneOfALivingSource() {
        #expect(decide(.original, .rejected, .notMedia) == .goIfSourceHasIt)
        #expect(decide(.original, .rejected, .empty) == .goIfSourceHasIt)
        #expect(decide(.original, .rejected, .notMedia, isMoved: true) == .stay)
        #expect(decide(.original, .rejected, .truncated) == .stay)
        #expect(decide(.original, .failed, .notMedia) == .stay)
    }

    @Test func whatWasMadeGoesAtTheEnd() {
        #expect(decide(.rendition, .uploading) == .stay)
        #expect(decide(.rendition, .ready) == .go)
    }
}
