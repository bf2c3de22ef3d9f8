import Foundation
import Testing
import Vocabulary

@testable import Thumbs

@Suite struct ThumbTests {
    static let stored = PixelSize(width: 160, height: 96)

    private static func make(_ bytes: [UInt8], _ format: MediaFormat, sizes: [Int], limits: MediaLimits = MediaLimits())
        throws
        -> (report: ThumbReport, sink: RecordingSink)
    {
        let sink = RecordingSink()
        let file = Scratch(bytes)
        let report = try Thumb.make(
            file.descriptor, format: format, file: "x", settings: ThumbSettings(sizes: sizes), limits: limits,
            sink: sink)
        return (report, sink)
    }

    @Test(arguments: Orientation.allCases)
    func everyEXIFOrientationStandsUpright(orientation: Orientation) throws {
        let bytes = try Pictures.jpeg(Self.stored, exif: Pictures.exif(orientation: orientation.rawValue))
        let (report, sink) = try Self.make(bytes, .jpeg, sizes: [80])
        let upright = orientation.size(ofStored: Self.stored)
        #expect(report.outcome == .made)
        #expect((report.width, report.height) == (upright.width / 2, upright.height / 2))
        let pixels = try Pixels(jpeg: #require(sink.files["80"]).bytes)
        for (x, y) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
            let at = (x * upright.width / 4, y * upright.height / 4)
            let from = orientation.source(x: at.0, y: at.1, stored: Self.stored)
            let expected = Pictures.color(x: from.x, y: from.y, of: Self.stored)
            #expect(pixels.isNear(expected, x: at.0 / 2, y: at.1 / 2), "quarter \(x),\(y)")
        }
    }

    @Test func probeGivesTheUprightSizeAndTheTurn() throws {
        let file = Scratch(try Pictures.jpeg(Self.stored, exif: Pictures.exif(orientation: 8)))
        let report = try PhotoProbe.probe(file.descriptor, format: .jpeg, file: "a.jpg", limits: MediaLimits())
        #expect(report.outcome == .accept)
        #expect(report.facts?.kind == .photo)
        #expect(report.facts?.width == 96 && report.facts?.height == 160)
        #expect(report.facts?.rotationClockwise == 270)
        #expect(report.facts?.codec == "mjpeg" && report.facts?.pixelFormat == "yuvj420p")
    }

    @Test func everySizeComesFromOneDecodeLargestFirstAndNeverLargerThanTheSource() throws {
        let (report, sink) = try Self.make(Pictures.jpeg(Self.stored), .jpeg, sizes: [40, 2048, 100])
        #expect(sink.opened == ["2048", "100", "40"])
        #expect(
            sink.sealed == [
                "2048 thumbnail image/jpeg 160x96", "100 thumbnail image/jpeg 100x60", "40 thumbnail image/jpeg 40x24",
            ])
        #expect(report.width == 160)
        for (name, width) in [("2048", 160), ("100", 100), ("40", 40)] {
            let pixels = try Pixels(jpeg: #require(sink.files[name]).bytes)
            #expect(pixels.raster.size.width == width)
            #expect(pixels.isNear(Pictures.quarters[1], x: width * 3 / 4, y: width / 8))
        }
    }

    @Test func nothingOfTheCameraIsLeftInAThumbnail() throws {
        let exif = TIFFBuilder(bigEndian: true).directory([
            .text(0x010F, "Canon"), .short(0x0112, 6),
            .directory(
                0x8825,
                [
                    .text(1, "N"), .rational(2, (1, 1), (2, 1), (3, 1)), .text(3, "E"),
                    .rational(4, (1, 1), (2, 1), (3, 1)),
                ]),
        ])
        let (_, sink) = try Self.make(Pictures.jpeg(Self.stored, exif: exif), .jpeg, sizes: [80])
        let written = try #require(sink.files["80"]).bytes
        #expect(JPEGStructure(ByteView(written))?.exif.isEmpty == true)
        #expect(JPEGStructure(ByteView(written))?.profile == nil)
        #expect(String(decoding: written, as: UTF8.self).contains("Canon") == false)
    }

    @Test func aRejectedPictureOpensNoOutputAndHasTheReasonOfTheProbe() throws {
        let whole = try Pictures.jpeg(PixelSize(width: 400, height: 300))
        let cut = Array(whole.prefix(whole.count / 2))
        let (report, sink) = try Self.make(cut, .jpeg, sizes: [80])
        #expect(report.outcome == .reject && report.reason?.code == .truncated)
        #expect(sink.opened.isEmpty)
        let file = Scratch(cut)
        let probed = try PhotoProbe.probe(file.descriptor, format: .jpeg, file: "x", limits: MediaLimits())
        #expect(probed.reason == report.reason)
    }

    @Test func anEmptyFileIsEmpty() throws {
        let file = Scratch()
        let report = try PhotoProbe.probe(file.descriptor, format: .jpeg, file: "x", limits: MediaLimits())
        #expect(report.reason?.code == .empty && report.facts == nil)
    }

    @Test func aPictureThatDoesNotFitTheMemoryIsNoVerdictOnIt() throws {
        let bytes = try Pictures.jpeg(PixelSize(width: 800, height: 600))
        let limits = MediaLimits(memoryBytes: 100_000)
        #expect { try Self.make(bytes, .jpeg, sizes: [700], limits: limits) } throws: {
            ($0 as? Failure)?.code == .overBudget
        }
        let file = Scratch(bytes)
        let report = try PhotoProbe.probe(file.descriptor, format: .jpeg, file: "x", limits: limits)
        #expect(report.outcome == .accept)
    }

    @Test func aCancelledJobStopsBeforeItWrites() throws {
        final class Cancelled: OutputSink {
            var opened = 0
            func open(_ name: OutputName) throws(Failure) -> Int32 {
                opened += 1
                return -1
            }
            func seal(
                _ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?
            ) throws(Failure) {}
            func progress(_ progress: MediaProgress) throws(Failure) { throw Failure(.cancelled, "Stopped.") }
        }
        let (sink, file) = (Cancelled(), Scratch(try Pictures.jpeg(Self.stored)))
        #expect {
            try Thumb.make(
                file.descriptor, format: .jpeg, file: "x", settings: ThumbSettings(sizes: [80]), limits: MediaLimits(),
                sink: sink)
        } throws: {
            ($0 as? Failure)?.code == .cancelled
        }
        #expect(sink.opened == 0)
    }
}
