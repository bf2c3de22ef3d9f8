import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// TIFF in tiles and planes, as it is made byte by byte.
@Suite struct TIFFTests {
    private static let size = PixelSize(width: 32, height: 32)

    /// - Parameters:
    ///   - values: of each sample, all over.
    ///   - photometric: 1 grey, 2 RGB, 5 ink.
    private static func file(
        _ values: [Int], depth: Int, photometric: Int, isTiled: Bool, isPlanar: Bool, compression: Int = 1
    ) -> [UInt8] {
        var file = ByteWriter(bigEndian: false)
        file.text("II")
        file.u16(42)
        let pieceSide = 16
        let pieces = isTiled ? 4 : 2
        let planes = isPlanar ? values.count : 1
        let pixels = pieceSide * (isTiled ? pieceSide : size.width)
        let pieceBytes = pixels * (isPlanar ? 1 : values.count) * depth / 8
        let count = pieces * planes
        let (entryCount, first) = (isTiled ? 11 : 10, 8)
        let lists = first + 2 + entryCount * 12 + 4
        let body = lists + 2 * values.count + 8 * count
        file.u32(first)
        file.u16(entryCount)
        func entry(_ tag: Int, _ type: Int, _ count: Int, _ value: Int) {
            file.u16(tag, type)
            file.u32(count, value)
        }
        entry(256, 4, 1, size.width)
        entry(257, 4, 1, size.height)
        entry(258, 3, values.count, values.count == 1 ? depth : lists)
        entry(259, 3, 1, compression)
        entry(262, 3, 1, photometric)
        let (offsets, lengths) = (lists + 2 * values.count, lists + 2 * values.count + 4 * count)
        if !isTiled { entry(273, 4, count, offsets) }
        entry(277, 3, 1, values.count)
        if !isTiled {
            entry(278, 4, 1, pieceSide)
            entry(279, 4, count, lengths)
        }
        entry(284, 3, 1, isPlanar ? 2 : 1)
        if isTiled {
            entry(322, 4, 1, pieceSide)
            entry(323, 4, 1, pieceSide)
            entry(324, 4, count, offsets)
            entry(325, 4, count, lengths)
        }
        file.u32(0)
        for _ in values { file.u16(depth) }
        for piece in 0..<count { file.u32(body + piece * pieceBytes) }
        for _ in 0..<count { file.u32(pieceBytes) }
        for plane in 0..<planes {
            for _ in 0..<(pieces * pixels) {
                for value in isPlanar ? [values[plane]] : values { file.number(value, width: depth / 8) }
            }
        }
        return file.bytes
    }

    private static func thumb(_ bytes: [UInt8]) throws -> (report: ThumbReport, pixel: [Int]) {
        let (file, sink) = (Scratch(bytes), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .tiff, file: "x", settings: ThumbSettings(sizes: [32]), limits: MediaLimits(),
            sink: sink)
        guard let written = sink.files["32"] else { return (report, []) }
        return (report, try Pixels(jpeg: written.bytes)[20, 9])
    }

    /// Whatever lies side by side is the same picture, with the profile of its own kind of colour.
    @Test(arguments: [8, 16], [[60], [200, 40, 90], [30, 200, 10, 20]])
    func tilesAndPlanesAreTheSamePicture(depth: Int, percents: [Int]) throws {
        let values = percents.map { $0 << (depth - 8) | (depth == 16 ? $0 : 0) }
        let photometric = [1: 1, 3: 2, 4: 5][values.count] ?? 1
        func make(_ isTiled: Bool, _ isPlanar: Bool) -> [UInt8] {
            Self.file(values, depth: depth, photometric: photometric, isTiled: isTiled, isPlanar: isPlanar)
        }
        let plain = try Self.thumb(make(false, false))
        #expect(plain.report.outcome == .made)
        for (isTiled, isPlanar) in [(true, false), (false, true), (true, true)] {
            let other = try Self.thumb(make(isTiled, isPlanar))
            #expect(other.report == plain.report && other.pixel == plain.pixel, "\(isTiled) \(isPlanar)")
            // Rows with their own numbers, to which the profile belongs.
            let reader = try TIFFReader(ByteView(make(isTiled, isPlanar)), page: 0)
            #expect(reader.plainRows?.layout == (values.count == 1 ? .grey : values.count == 3 ? .rgb : .cmyk))
        }
    }

    /// Leaves one byte of these tiles, of four a plane: too few to fill one. libtiff makes up lengths
    /// where the first two differ.
    private static func cut(_ tiles: [Int], samples: Int, isPlanar: Bool, _ bytes: inout [UInt8]) {
        let count = 4 * (isPlanar ? samples : 1)
        let lengths = 8 + 2 + 11 * 12 + 4 + 2 * samples + 4 * count
        for tile in 0..<count where tiles.contains(tile % 4) {
            bytes.replaceSubrange((lengths + 4 * tile)..<(lengths + 4 * tile + 4), with: [1, 0, 0, 0])
        }
    }

    @Test(arguments: [1, 3, 4], [false, true])
    func onlyATileThatCannotBeReadIsGrey(sampleCount: Int, isPlanar: Bool) throws {
        let photometric = [1: 1, 3: 2, 4: 5][sampleCount] ?? 1
        let values = Array(repeating: 20, count: sampleCount)
        let sound = Self.file(values, depth: 8, photometric: photometric, isTiled: true, isPlanar: isPlanar)
        func without(_ tiles: [Int]) -> [UInt8] {
            var bytes = sound
            Self.cut(tiles, samples: sampleCount, isPlanar: isPlanar, &bytes)
            return bytes
        }
        func pixels(_ bytes: [UInt8]) throws -> (pixels: Pixels?, report: ThumbReport) {
            let (file, sink) = (Scratch(bytes), RecordingSink())
            let report = try Thumb.make(
                file.descriptor, format: .tiff, file: "x", settings: ThumbSettings(sizes: [32]), limits: MediaLimits(),
                sink: sink)
            return (try sink.files["32"].map { try Pixels(jpeg: $0.bytes) }, report)
        }
        let whole = try #require(try pixels(sound).pixels)
        let (damaged, report) = try pixels(without([2]))
        let picture = try #require(damaged)
        #expect(report.warnings == [DecodedPicture.damaged])
        #expect(!picture.isNear(whole[4, 26], x: 4, y: 26, within: 16))
        for (x, y) in [(4, 4), (26, 4), (26, 26)] { #expect(picture.isNear(whole[x, y], x: x, y: y, within: 4)) }
        // A row of which nothing is left is none.
        #expect(try pixels(without([2, 3])).report.warnings == [DecodedPicture.damaged])
        #expect(try pixels(without([0, 1, 2, 3])).report.reason?.code == .corrupt)
    }

    /// TIFF's own L*a*b* counts a* and b* with a sign.
    @Test(arguments: [false, true]) func aTileThatCannotBeReadHasNoColorInLabEither(isPlanar: Bool) throws {
        var bytes = Self.file([60, 0, 0], depth: 8, photometric: 8, isTiled: true, isPlanar: isPlanar)
        Self.cut([2], samples: 3, isPlanar: isPlanar, &bytes)
        let (file, sink) = (Scratch(bytes), RecordingSink())
        _ = try Thumb.make(
            file.descriptor, format: .tiff, file: "x", settings: ThumbSettings(sizes: [32]), limits: MediaLimits(),
            sink: sink)
        let pixel = try Pixels(jpeg: #require(sink.files["32"]).bytes)[4, 26]
        #expect(pixel.allSatisfy { abs($0 - pixel[0]) <= 3 } && (80...160).contains(pixel[0]), "\(pixel)")
    }

    @Test func aCompressionThatNobodyReadsHereIsUnsupported() throws {
        let bytes = Self.file([60], depth: 8, photometric: 1, isTiled: false, isPlanar: false, compression: 34712)
        #expect(try Self.thumb(bytes).report.reason?.code == .unsupportedCodec)
    }
}
