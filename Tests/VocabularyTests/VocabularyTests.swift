import Foundation
import Testing
import Vocabulary

@Suite struct VocabularyTests {
    @Test func everyFailureCodeHasOneRow() {
        #expect(Set(FailureCode.all.map(\.code)).count == FailureCode.all.count)
        #expect(FailureCode.all.allSatisfy { (400...599).contains($0.status) })
    }

    @Test(arguments: ["", "a/b", "..", "a b", "é", String(repeating: "x", count: 65)])
    func anIdentifierThatCouldBeAPathIsRefused(text: String) { #expect(ItemID(rawValue: text) == nil) }

    @Test func idsSortByTheTimeTheyWereMade() {
        var random = SystemRandomNumberGenerator()
        let ids = [1, 2, 70_000, 1_800_000_000_000].map { ItemID.make(milliseconds: $0, using: &random).rawValue }
        #expect(ids == ids.sorted())
        #expect(ids.allSatisfy { $0.utf8.count == 36 && Array($0)[14] == "7" })
    }

    @Test func aProbeReportSpellsOutWhatIsNotKnown() throws {
        let report = ProbeReport(file: "a.jpg", facts: nil, reason: Reason(.empty, "The file has no bytes."))
        let object = try #require(JSONSerialization.jsonObject(with: JSON.encode(report)) as? [String: Any])
        #expect(object["outcome"] as? String == "reject")
        #expect(object["hdr"] is NSNull && object["duration_s"] is NSNull && object["kind"] is NSNull)
        #expect(try JSON.decode(ProbeReport.self, from: JSON.encode(report)) == report)
    }

    @Test func messagesToAndFromTheWorkerKeepTheirValues() throws {
        let job = MediaJob(
            id: 3, file: "né\n.mov", work: .transcode(.init(outputs: [.rendition1080, .poster])), limits: .init())
        #expect(try JSON.decode(WorkerOrder.self, from: JSON.encode(WorkerOrder.job(job))) == .job(job))
        let answer = WorkerAnswer.failure(job: 3, Failure(.corrupt, "Damaged.", detail: "x"))
        #expect(try JSON.decode(WorkerAnswer.self, from: JSON.encode(answer)) == answer)
    }

    @Test(
        arguments: [
            ([0xFF, 0xD8, 0xFF, 0xE0], MediaFormat.jpeg),
            (Array("\0\0\0\u{18}ftypheic\0\0\0\0mif1heic".utf8), .heif),
            (Array("\0\0\0\u{18}ftypmif1\0\0\0\0avifmif1".utf8), .avif),
            (Array("\0\0\0\u{18}ftypjpeg\0\0\0\0mif1miaf".utf8), .heif),
            (Array("\0\0\0\u{14}ftypqt  \0\0\0\0qt  ".utf8), .isoMedia),
            (Array("FOVb\0\0\u{2}\0".utf8), .x3f),
            (Array("RIFF\0\0\0\0WEBPVP8 ".utf8), .webp),
            ([0xFF, 0x4F, 0xFF, 0x51, 0, 47], .jp2),
            (Array("BM\u{1A}\0\0\0\u{1D}\0\u{27}\0J\0\0\0\u{C}\0\0\0".utf8), .bmp),
            (Array("BM is how this text begins".utf8), nil),
            (Array("hello, this is text".utf8), nil),
            ([], nil),
        ] as [([UInt8], MediaFormat?)])
    func theFirstBytesTellTheFormat(head: [UInt8], expected: MediaFormat?) {
        #expect(MediaFormat.sniff(head) == expected)
    }

    @Test func sniffingSurvivesEveryShortHead() {
        for length in 0..<600 {
            var head = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 167 &+ length &* 31) }
            if length > 12 { head.replaceSubrange(4..<8, with: Array("ftyp".utf8)) }
            _ = MediaFormat.sniff(head)
        }
        #expect(MediaFormat.sniff(Array("\0\0\0\u{0}ftyp".utf8)) == .isoMedia)
    }
}
