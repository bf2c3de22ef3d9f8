import Foundation
import Testing
import Vocabulary

@testable import Thumbs

@Suite struct RAWStructureTests {
    private static func raw(_ entries: [TIFFBuilder.Entry], magic: UInt8) -> RAWStructure? {
        var bytes = TIFFBuilder(bigEndian: false).directory(entries)
        bytes[2] = magic
        return RAWStructure(ByteView(bytes))
    }

    /// Panasonic's strips say that they lie nowhere.
    @Test func panasonicsDataBeginsWhereItsOwnTagSays() {
        let strips: [TIFFBuilder.Entry] = [.long(273, 0xFFFF_FFFF), .long(279, 4096)]
        #expect(Self.raw(strips + [.long(0x118, 8)], magic: 0x55)?.lacksBytes == false)
        #expect(Self.raw(strips, magic: 0x55)?.lacksBytes == false)
        #expect(Self.raw(strips + [.long(0x118, 4000)], magic: 0x55)?.lacksBytes == true)
        #expect(Self.raw(strips + [.long(0x118, 8)], magic: 42)?.lacksBytes == true)
    }

    /// Fujifilm's header: the camera's JPEG, its tags and the sensor's samples, each with place and length.
    private static func raf(tail: Int = 200) throws -> (bytes: [UInt8], size: PixelSize) {
        let size = PixelSize(width: 120, height: 80)
        let exif = TIFFBuilder(bigEndian: false).directory([.short(0x0112, 6), .text(0x0110, "X-T9")])
        let picture = try Pictures.jpeg(size, exif: exif)
        var file = ByteWriter()
        file.text("FUJIFILMCCD-RAW 0201FF000000X-T9")
        while file.bytes.count < 84 { file.u8(0) }
        let start = 148
        file.u32(start, picture.count, start + picture.count, 100, start + picture.count + 100, tail)
        while file.bytes.count < start { file.u8(0) }
        return (file.bytes + picture + [UInt8](repeating: 0, count: 100 + tail), size)
    }

    private static func probe(_ bytes: [UInt8]) throws -> ProbeReport {
        let file = Scratch(bytes)
        return try PhotoProbe.probe(file.descriptor, format: .raf, file: "x", limits: MediaLimits())
    }

    @Test func fujifilmsPictureIsFoundByItsHeader() throws {
        let (bytes, size) = try Self.raf()
        let facts = try #require(try Self.probe(bytes).facts)
        #expect((facts.width, facts.height) == (size.height, size.width) && facts.camera == "X-T9")
        let (file, sink) = (Scratch(bytes), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .raf, file: "x", settings: ThumbSettings(sizes: [60]), limits: MediaLimits(),
            sink: sink)
        #expect(report.outcome == .made)
        let pixels = try Pixels(jpeg: #require(sink.files["60"]).bytes)
        // Turned a quarter with the clock: what was left below is left above.
        #expect(pixels.isNear(Pictures.quarters[2], x: 10, y: 15) && pixels.isNear(Pictures.quarters[0], x: 30, y: 15))
    }

    @Test(arguments: [1, 250, 600]) func fujifilmsMissingEndIsTruncated(missing: Int) throws {
        let bytes = try Self.raf().bytes
        #expect(try Self.probe(Array(bytes.dropLast(missing))).reason?.code == .truncated)
    }

    @Test func wrongPlacesOfFujifilmNeverTrap() throws {
        let whole = try Self.raf().bytes
        var numbers = SeededNumbers(state: 3)
        for _ in 0..<200 {
            var bytes = whole
            for _ in 0..<3 {
                bytes[Int.random(in: 84..<150, using: &numbers)] =
                    [0, 1, 0x7F, 0xFF].randomElement(using: &numbers) ?? 0
            }
            _ = try? Self.probe(bytes)
        }
    }

    /// LibRaw is told of sRGB's curve by its power and its slope, and gives what the formula says.
    @Test func whatIsDevelopedHasTheCurveOfSRGB() throws {
        let side = 64
        // A DNG of grey cells whose samples are linear: a half of all in the left half, a tenth in the right.
        let rows = (0..<side).flatMap { _ in (0..<side).map { $0 < side / 2 ? 32768 : 6554 } }
        var samples = ByteWriter(bigEndian: false)
        for value in rows { samples.number(value, width: 2) }
        func directory(_ place: Int) -> [UInt8] {
            TIFFBuilder(bigEndian: false).directory([
                .long(254, 0), .long(256, side), .long(257, side), .short(258, 16), .short(259, 1), .short(262, 32803),
                .text(271, "Nobody"), .text(272, "None"), .long(273, place), .short(277, 1), .long(278, side),
                .long(279, samples.bytes.count), .short(33421, 2, 2),
                TIFFBuilder.Entry(tag: 33422, type: 1, count: 4, value: [0, 1, 1, 2]),
                TIFFBuilder.Entry(tag: 50706, type: 1, count: 4, value: [1, 4, 0, 0]),
                .text(50708, "Nobody None"), .short(50714, 0), .long(50717, 65535),
                // The camera's own primaries are those of sRGB, and grey is neutral.
                TIFFBuilder.Entry(
                    tag: 50721, type: 10, count: 9, value: Self.signed(Self.toCamera)),
                .rational(50728, (1, 1), (1, 1), (1, 1)), .short(50778, 21),
            ])
        }
        let bytes = directory(directory(0).count) + samples.bytes
        let raw = try RAWDevelopment(ByteView(bytes), limits: MediaLimits())
        #expect(raw.pixelFormat == "bayer_rggb16le")
        let raster = try raw.develop(longSide: side, budget: Pictures.roomy).raster
        let shown = raster.row(raster.size.height / 2).assumingMemoryBound(to: UInt8.self)
        let (light, dark) = (raster.size.width / 4 * 3, raster.size.width * 3 / 4 * 3)
        // LibRaw brightens until a hundredth of all is white; the two keep their ratio of five in light.
        func linear(_ value: UInt8) -> Double {
            let share = Double(value) / 255
            return share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4)
        }
        #expect(abs(linear(shown[light]) / linear(shown[dark]) - 5) < 0.25, "\(shown[light]) \(shown[dark])")
    }

    /// From XYZ to linear sRGB (IEC 61966-2-1).
    private static let toCamera = [3.2406, -1.5372, -0.4986, -0.9689, 1.8758, 0.0415, 0.0557, -0.2040, 1.0570]
    private static func signed(_ values: [Double]) -> [UInt8] {
        var writer = ByteWriter(bigEndian: false)
        for value in values { writer.u32(Int((value * 10000).rounded()), 10000) }
        return writer.bytes
    }
}
