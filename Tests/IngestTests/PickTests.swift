import Files
import Foundation
import Testing
import Vocabulary

@testable import Ingest

@Suite struct PickPlanTests {
    func walked(_ names: [String]) -> [WalkedFile] {
        names.map { WalkedFile(path: RawPath("/card/" + $0), size: 1, modified: 0) }
    }

    @Test(arguments: [
        ".DS_Store", "._CLIP.MP4", "Thumbs.db", "DESKTOP.INI", "GX010001.THM", "GX010001.LRV", "DJI_0001.LRF",
        "M0100.CTG",
        "INDEX.BDM", "00000.CPI", "00000.MPL", "MEDIAPRO.XML", "INDEXMIR.IND", ".rushes-tmp-1",
    ])
    func whatCamerasAndSystemsLeaveIsNoItem(name: String) {
        let plan = PickPlan(walked([name]))
        #expect(plan.items.isEmpty)
        #expect(plan.ignored.map(\.reason) == [.systemFile])
    }

    @Test(arguments: ["CLIP.MP4", "sound.WAV", "noextension", "x.xyz", "📸.jpg", "a\nb.mov", "THM", ".hidden.mp4"])
    func whatSomebodyMayHaveMeantIsAnItem(name: String) {
        #expect(PickPlan(walked([name])).items.map(\.original.path.description) == ["/card/" + name])
    }

    @Test(arguments: [
        (["CLIP.MP4", "CLIP.XMP"], "CLIP.XMP", "CLIP.MP4"),
        (["CLIP.MP4", "CLIP.MP4.xmp", "CLIP.MOV"], "CLIP.MP4.xmp", "CLIP.MP4"),
        (["clip.mp4", "CLIP.SRT"], "CLIP.SRT", "clip.mp4"),
        (["C0001.MP4", "C0001M01.XML"], "C0001M01.XML", "C0001.MP4"),
        (["IMG_1.JPG", "IMG_1.CR3", "IMG_1.xmp"], "IMG_1.xmp", "IMG_1.CR3"),
        (["IMG_1.HEIC", "IMG_1.MOV", "IMG_1.AAE"], "IMG_1.AAE", "IMG_1.HEIC"),
        (["DJI_1.JPG", "DJI_1.MP4", "DJI_1.SRT"], "DJI_1.SRT", "DJI_1.MP4"),
    ])
    func aSidecarGoesWithItsItem(names: [String], sidecar: String, owner: String) {
        let plan = PickPlan(walked(names))
        let found = plan.items.first { $0.sidecars.contains { $0.path.description == "/card/" + sidecar } }
        #expect(found?.original.path.description == "/card/" + owner)
        #expect(plan.ignored.isEmpty)
        #expect(plan.items.count == names.count - 1)
    }

    @Test func aSidecarWithoutItsItemIsReportedAndStemsOfAnotherFolderDoNotCount() {
        let plan = PickPlan(walked(["A/CLIP.XMP", "B/CLIP.MP4"]))
        #expect(plan.items.map(\.sidecars) == [[]])
        #expect(plan.ignored == [IgnoredFile(path: "/card/A/CLIP.XMP", reason: .sidecarWithoutItem)])
    }

    @Test func aPathNamedTwiceIsOneItem() {
        #expect(PickPlan(walked(["A.MP4", "A.MP4"])).items.count == 1)
    }
}

@Suite struct PickWalkTests {
    let scratch: ScratchFolder
    init() throws { scratch = try ScratchFolder() }

    @Test func foldersAreWalkedSystemFoldersAreNotAndLoopsEnd() throws {
        try scratch.write([1], "card/DCIM/a.jpg")
        try scratch.write([1], "card/System Volume Information/b.jpg")
        try FileManager.default.createSymbolicLink(
            atPath: scratch.path + "/card/DCIM/up", withDestinationPath: scratch.path + "/card")
        try FileManager.default.createSymbolicLink(
            atPath: scratch.path + "/card/nothing", withDestinationPath: "/none/at/all")
        let walk = try PickWalk([RawPath(scratch.path + "/card")], home: nil)
        #expect(walk.files.map { String(decoding: $0.path.name, as: UTF8.self) } == ["a.jpg"])
        #expect(walk.ignored.map(\.reason) == [.systemFile, .brokenLink])
    }

    @Test func namesThatAreNotUTF8AreWalkedAndRead() throws {
        let folder = RawPath(scratch.path + "/card")
        try Files.makeFolder(folder.description)
        let odd = folder.appending([0x41, 0xFF, 0x0A, 0xFE] + Array(".jpg".utf8))
        try scratch.write([7, 8], "card/plain.jpg")
        // A second name for the same file, which no String can hold.
        let plain = folder.appending(Array("plain.jpg".utf8))
        let made = plain.bytes.map { CChar(bitPattern: $0) } + [0]
        let wanted = odd.bytes.map { CChar(bitPattern: $0) } + [0]
        #expect(link(made, wanted) == 0)
        let walk = try PickWalk([folder], home: nil)
        #expect(Set(walk.files.map(\.path)) == [odd, plain])
        #expect(try OpenFile.reading(odd).read(count: 9, at: 0) == [7, 8])
    }

    @Test func aMissingPathStopsThePickBeforeAnythingElse() {
        let failure = #expect(throws: Failure.self) { try PickWalk([RawPath(scratch.path), "/none/there"], home: nil) }
        #expect(failure?.code == .sourceMissing)
    }
}

@Suite struct HomeTests {
    let scratch: ScratchFolder
    let card, home: String

    init() throws {
        scratch = try ScratchFolder()
        card = try RawPath(scratch.path).resolved().description + "/card"
        home = card + "/home"
        try scratch.write([1], "card/a.jpg")
        try scratch.write([2], "card/home/kept.jpg")
    }

    private func link(_ name: String, to target: String) throws {
        try FileManager.default.createSymbolicLink(atPath: card + "/" + name, withDestinationPath: target)
    }

    @Test func theHomeIsLeftOutByWhateverPathItIsComeAcross() throws {
        try link("folder", to: "home")
        try link("file.jpg", to: "home/kept.jpg")
        let walk = try PickWalk([RawPath(card)], home: scratch.path + "/card/../card/home")
        #expect(walk.files.map(\.path.description) == [card + "/a.jpg"])
        #expect(walk.ignored.map(\.path.description) == ["file.jpg", "folder", "home"].map { card + "/" + $0 })
        #expect(walk.ignored.allSatisfy { $0.reason == .ownFolder && !$0.reason.isLoss })
    }

    @Test(arguments: ["home", "home/kept.jpg", "folder", "file.jpg"]) func whatLiesInTheHomeIsRefused(name: String)
        throws
    {
        try link("folder", to: "home")
        try link("file.jpg", to: "home/kept.jpg")
        let failure = #expect(throws: Failure.self) { try PickWalk([RawPath(card + "/" + name)], home: home) }
        #expect(failure?.code == .usage)
        let ofInbox = #expect(throws: Failure.self) { try Home.refuseInbox(RawPath(card), home: home) }
        #expect(ofInbox?.code == .usage)
    }

    @Test func anotherHomeAndTheFolderOfABackendAreLeftOutToo() throws {
        for name in ["catalog.db", "staging/x"] { try scratch.write([1], "card/theirs/" + name) }
        for name in ["ledger.sqlite", "signing-key"] { try scratch.write([1], "card/backend/" + name) }
        let walk = try PickWalk([RawPath(card)], home: home)
        #expect(walk.files.map(\.path.description) == [card + "/a.jpg"])
        #expect(walk.ignored.map { String(decoding: $0.path.name, as: UTF8.self) } == ["backend", "home", "theirs"])
    }
}

@Suite struct LinkTests {
    @Test func aLinkStandsForItsFileWhichIsTakenOnce() throws {
        let scratch = try ScratchFolder()
        let card = scratch.path + "/card"
        try FileManager.default.createDirectory(atPath: card, withIntermediateDirectories: true)
        try Files.write([1, 2, 3], to: card + "/a.jpg")
        try Files.write([4], to: scratch.path + "/elsewhere.jpg")
        try FileManager.default.createSymbolicLink(atPath: card + "/b.jpg", withDestinationPath: "a.jpg")
        try FileManager.default.createSymbolicLink(atPath: card + "/c.jpg", withDestinationPath: "../elsewhere.jpg")
        let walk = try PickWalk([RawPath(card)], home: nil)
        let real = try RawPath(scratch.path).resolved().description
        #expect(walk.files.map(\.path.description).sorted() == [real + "/card/a.jpg", real + "/elsewhere.jpg"])
    }
}
