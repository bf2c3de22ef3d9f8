import Digests
import Files
import Foundation
import Testing
import Vocabulary
import XML

@testable import Ingest

@Suite struct ProofTests {
    private let sha256 = Digest.sha256("x")
    private let hash = XXH128().finalize()

    private func known(
        _ card: RawPath?, _ below: RawPath?, hashed: Bool = true, quick: Bool = true, item: String = "i"
    ) -> ProofPlan.Known {
        ProofPlan.Known(
            item: .named(item), role: .original, state: .ready, card: card, below: below, bytes: 1, modified: 0,
            sha256: hashed ? sha256 : nil, xxh128: quick ? hash : nil)
    }

    @Test(
        arguments: [
            (["/m/card": ["DCIM/a", "b"]], ["DCIM/a", "b"]),
            // Two cards lie side by side; of the same name they get numbers, in the order of their paths.
            (["/m/A": ["a"], "/m/B": ["a"]], ["A/a", "B/a"]),
            (["/m/1/card": ["a"], "/m/2/card": ["a"]], ["card-2/a", "card/a"]),
            // A folder of a card that was picked as a whole before is the same card.
            (["/m/card": ["x"], "/m/card/DCIM": ["a"]], ["DCIM/a", "x"]),
        ] as [([String: [String]], [String])])
    func aFileIsNamedByWhereItLiesInACopyOfTheCard(cards: [String: [String]], paths: [String]) {
        let files = cards.flatMap { card, names in names.map { known(RawPath(card), RawPath($0)) } }
        let plan = ProofPlan(files)
        #expect(plan.files.map(\.path) == paths)
        #expect(plan.gaps.isEmpty)
    }

    @Test func ofTwoUnderOnePathTheLaterCounts() {
        let plan = ProofPlan([known("/c", "a", item: "old"), known("/c", "a", item: "new")])
        #expect(plan.files.map(\.known.item) == [.named("new")])
    }

    /// Swift holds them for equal, disks and other hash lists do not.
    @Test func namesThatDifferOnlyInTheirFormOfUnicodeAreTwoFiles() {
        let plan = ProofPlan([known("/c", "caf\u{E9}.wav"), known("/c", "cafe\u{301}.wav")])
        #expect(plan.files.map { Array($0.path.utf8).count } == [10, 9])
    }

    @Test func whatCannotBeInTheListIsCounted() {
        let plan = ProofPlan([
            known("/c", "a", hashed: false), known("/c", "b", quick: false), known(nil, nil), known("/c", "d"),
            known("/c", RawPath([0x61, 0xFF])), known("/c", "bell\u{7}"),
        ])
        #expect(plan.files.map(\.path) == ["d"])
        #expect(plan.gaps == [.notHashed: 1, .takenBefore: 2, .unnameable: 2])
    }

    @Test func namesOfEveryKindComeBackFromTheManifest() throws {
        let names = ["a & b <c> \"d\".mov", "two\nlines\t.mp4", "été 📸.jpg", "]]>.mp4", " blank "]
        let plan = ProofPlan(names.map { known("/c", RawPath($0)) })
        let manifest = MHLManifest(
            files: plan.files.map { ($0, .original) }, creationDate: Date(timeIntervalSince1970: 0), hostName: "a&b",
            toolVersion: "1", ignored: ["ascmhl"])
        let root = try XMLDocument.parse(Array(manifest.text.utf8))
        #expect(root["creatorinfo"]?.text("hostname") == "a&b")
        #expect(root["creatorinfo"]?.text("creationdate") == "1970-01-01T00:00:00+00:00")
        let hashes = try #require(root["hashes"]?.all("hash"))
        #expect(Set(hashes.compactMap { $0.text("path") }) == Set(names))
        #expect(hashes.allSatisfy { $0["xxh128"]?.attributes == ["action": "original"] })
        #expect(hashes.allSatisfy { $0["path"]?.attributes["size"] == "1" })
    }

    @Test func aC4IdentifierIsTheOneOfTheStandard() {
        // SMPTE ST 2114 names these two.
        #expect(
            C4.id(of: "")
                == "c459dsjfscH38cYeXXYogktxf4Cd9ibshE3BHUo6a58hBXmRQdZrAkZzsWcbWtDg5oQstpDuni4Hirj75GEmTc1sFT")
        #expect(
            C4.id(of: "alfa")
                == "c43zYcLni5LF9rR4Lg4B8h3Jp8SBwjcnyyeh4bc6gTPHndKuKdjUWx1kJPYhZxYt3zV6tQXpDs2shPsPYjgG81wZM1")
    }

    @Test func aHistoryThatIsThereIsComparedAndContinued() throws {
        let scratch = try ScratchFolder()
        let folder = scratch.path + "/ascmhl"
        #expect(try MHLHistory.read(folder).lastGeneration == 0)
        let plan = ProofPlan([known("/c", "a"), known("/c", "b")])
        let manifest = MHLManifest(
            files: [(plan.files[0], .original), (plan.files[1], .failed)], creationDate: Date(), hostName: "h",
            toolVersion: "1", ignored: []
        ).text
        let chain = try #require(
            MHLManifest.chain(nil, appending: "0007_x.mhl", generation: 7, manifest: manifest))
        try Files.makeFolder(folder)
        try Files.write(Array(manifest.utf8), to: folder + "/0007_x.mhl")
        // Manifests without a chain are no history to go on with.
        #expect(throws: Failure.self) { try MHLHistory.read(folder) }
        try Files.write(Array(chain.utf8), to: folder + "/ascmhl_chain.xml")
        // A number beyond all generations is none.
        try Files.write([], to: folder + "/\(Int.max)_x.mhl")
        let history = try MHLHistory.read(folder)
        #expect(history.lastGeneration == 7)
        // A hash that failed is nothing to compare with.
        #expect(history.hashes == [Array("a".utf8): hash])
        let longer = try #require(
            MHLManifest.chain(history.chain, appending: "0008_x.mhl", generation: 8, manifest: "m"))
        let links = try XMLDocument.parse(Array(longer.utf8)).all("hashlist")
        #expect(links.map { $0.text("path") } == ["0007_x.mhl", "0008_x.mhl"])
        #expect(links.map { $0.attributes["sequencenr"] } == ["7", "8"])
        #expect(links.last?.text("c4") == C4.id(of: "m"))
        try Files.write(Array("<hashlist>".utf8), to: folder + "/0009_x.mhl")
        #expect(throws: Failure.self) { try MHLHistory.read(folder) }
    }
}
