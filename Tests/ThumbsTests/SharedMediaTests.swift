import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// Formats for which nothing here can write a file: cameras' own files from the shared folder, when it is there.
@Suite struct SharedMediaTests {
    static let media: String? = {
        let shared = ProcessInfo.processInfo.environment["RUSHES_SHARED"] ?? "../shared"
        let folder = shared + "/media"
        if FileManager.default.fileExists(atPath: folder) { return folder }
        print("SKIPPED: SharedMediaTests, for there is no \(folder); set RUSHES_SHARED")
        return nil
    }()

    struct Row: Sendable {
        var file: String
        var kind: MediaFacts.Kind
        var width: Int
        var height: Int
        var codec: String
        var takenAt: String?
        var rotation: Int = 0
        var frames: Int = 1
    }

    static let rows: [Row] = [
        Row(
            file: "iphone_15_pro.heic", kind: .photo, width: 3024, height: 4032, codec: "hevc",
            takenAt: "2023-10-31T11:44:43.432+01:00", rotation: 90),
        Row(file: "nokia-C003.heic", kind: .photo, width: 1280, height: 720, codec: "hevc"),
        Row(file: "rot1mir1.avif", kind: .photo, width: 640, height: 427, codec: "av1", rotation: 90),
        Row(
            file: "animated.avif", kind: .animation, width: 150, height: 150, codec: "av1",
            takenAt: "2023-09-06T17:35:53Z",
            frames: 5),
        Row(
            file: "canon_eos_6d.dng", kind: .photo, width: 1224, height: 816, codec: "dng",
            takenAt: "2019-06-06T07:29:51.00"),
        Row(
            file: "canon-r6-pruned.CR3", kind: .photo, width: 3408, height: 2272, codec: "cr3",
            takenAt: "2021-05-12T12:21:21.92+02:00"),
        Row(file: "animated.webp", kind: .animation, width: 80, height: 80, codec: "webp", frames: 9),
        Row(file: "8bit-sRGB.jxl", kind: .photo, width: 1440, height: 1080, codec: "jpegxl"),
    ]

    @Test(.enabled(if: media != nil), arguments: rows)
    func theFactsOfACamerasFileAreFound(row: Row) throws {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(Self.media ?? "")/\(row.file)"))
        let file = Scratch([UInt8](bytes))
        let format = try #require(MediaFormat.sniff([UInt8](bytes.prefix(MediaFormat.headLength))))
        let report = try PhotoProbe.probe(file.descriptor, format: format, file: row.file, limits: MediaLimits())
        let facts = try #require(report.facts)
        #expect(report.outcome == .accept)
        #expect(facts.kind == row.kind && facts.codec == row.codec && facts.frames == row.frames)
        #expect((facts.width, facts.height) == (row.width, row.height))
        #expect(facts.rotationClockwise == row.rotation)
        #expect(facts.takenAt == row.takenAt)
    }

    @Test(
        .enabled(if: media != nil),
        arguments: ["iphone_15_pro.heic", "8bit-sRGB.jxl", "canon_eos_6d.dng", "rot1mir1.avif"])
    func aFileCutInTheMiddleIsTruncated(name: String) throws {
        let bytes = try [UInt8](Data(contentsOf: URL(fileURLWithPath: "\(Self.media ?? "")/\(name)")))
        let file = Scratch(Array(bytes.prefix(bytes.count * 6 / 10)))
        let format = try #require(MediaFormat.sniff(Array(bytes.prefix(MediaFormat.headLength))))
        let report = try PhotoProbe.probe(file.descriptor, format: format, file: name, limits: MediaLimits())
        #expect(report.reason?.code == .truncated)
    }
}
