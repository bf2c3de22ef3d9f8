import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// TIFF in tiles and planes, as it is made byte by byte.
@Suite struct TIFFTests {
    private static let size = PixelSize(width: 32, height: 32)

    /// - Parameters:
    ///   - values: of each sample, all over; in the lower half of each tile or strip others, where there are any.
    ///   - photometric: 1 grey, 2 RGB, 5 ink.
    ///   - format: 1 unsigned, 2 signed, 3 floating point, whose bit patterns the values are.
    private static func file(
        _ values: [Int], lower: [Int]? = nil, depth: Int, photometric: Int, isTiled: Bool = false,
        isPlanar: Bool = false, compression: Int = 1, format: Int = 1, date: String? = nil
    ) -> [UInt8] {
        var file = ByteWriter(bigEndian: false)
        file.text("II")
        file.u16(42)
        let pieceSide = 16
        let pieces = isTiled ? 4 : 2
        let planes = isPlanar ? values.count : 1
        let columns = isTiled ? pieceSide : size.width
        let pieceBytes = pieceSide * ((columns * (isPlanar ? 1 : values.count) * depth + 7) / 8)
        let count = pieces * planes
        let (entryCount, first) = ((isTiled ? 11 : 10) + 1 + (date == nil ? 0 : 1), 8)
        let lists = first + 2 + entryCount * 12 + 4
        let body = lists + 4 * values.count + 8 * count
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
        let (offsets, lengths) = (lists + 4 * values.count, lists + 4 * values.count + 4 * count)
        if !isTiled { entry(273, 4, count, offsets) }
        entry(277, 3, 1, values.count)
        if !isTiled {
            entry(278, 4, 1, pieceSide)
            entry(279, 4, count, lengths)
        }
        entry(284, 3, 1, isPlanar ? 2 : 1)
        if let date { entry(306, 2, date.utf8.count + 1, body + count * pieceBytes) }
        if isTiled {
            entry(322, 4, 1, pieceSide)
            entry(323, 4, 1, pieceSide)
            entry(324, 4, count, offsets)
            entry(325, 4, count, lengths)
        }
        entry(339, 3, values.count, values.count == 1 ? format : lists + 2 * values.count)
        file.u32(0)
        for _ in values { file.u16(depth) }
        for _ in values { file.u16(format) }
        for piece in 0..<count { file.u32(body + piece * pieceBytes) }
        for _ in 0..<count { file.u32(pieceBytes) }
        for plane in 0..<planes {
            for _ in 0..<pieces {
                for row in 0..<pieceSide {
                    let all = row < pieceSide / 2 ? values : lower ?? values
                    let samples = (0..<columns).flatMap { _ in isPlanar ? [all[plane]] : all }
                    file.bytes += depth % 8 == 0 ? Self.words(samples, depth) : Self.packed(samples, depth)
                }
            }
        }
        file.text(date.map { $0 + "\0" } ?? "")
        return file.bytes
    }

    private static func words(_ samples: [Int], _ depth: Int) -> [UInt8] {
        var writer = ByteWriter(bigEndian: false)
        for sample in samples { writer.number(sample, width: depth / 8) }
        return writer.bytes
    }

    /// From the highest bit on, in whole bytes.
    private static func packed(_ samples: [Int], _ depth: Int) -> [UInt8] {
        let bits = samples.flatMap { sample in (0..<depth).reversed().map { sample >> $0 & 1 } }
        return stride(from: 0, to: bits.count, by: 8).map { start in
            UInt8((0..<8).reduce(0) { $0 << 1 | (start + $1 < bits.count ? bits[start + $1] : 0) })
        }
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
        let lengths = 8 + 2 + 12 * 12 + 4 + 4 * samples + 4 * count
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

    /// The depths of three samples lie outside their entry.
    @Test func aValueBehindTheEndOfTheFileIsAMissingEnd() throws {
        var bytes = Self.file([200, 40, 90], depth: 8, photometric: 2)
        let entry = try #require(bytes.indices.first { bytes[$0...].starts(with: [2, 1, 3, 0]) })
        bytes.replaceSubrange((entry + 8)..<(entry + 12), with: [0xFF, 0xFF, 0xFF, 0x7F])
        #expect(try Self.thumb(bytes).report.reason?.code == .truncated)
    }

    /// Numbers of a kind that stand for shares of all.
    struct Kind: Sendable, CustomStringConvertible {
        var depth: Int
        var isFloat = false
        var description: String { "\(isFloat ? "float" : "")\(depth)" }
        func number(_ share: Double) -> Int {
            guard isFloat else { return Int((share * Double(1 << depth - 1)).rounded()) }
            // Floats are light.
            let light = share <= 0.04045 ? share / 12.92 : pow((share + 0.055) / 1.055, 2.4)
            switch depth {
            case 16: return Int(Float16(light).bitPattern)
            case 32: return Int(Float(light).bitPattern)
            default: return Int(bitPattern: UInt(light.bitPattern))
            }
        }
    }

    @Test(
        arguments: [
            Kind(depth: 4), Kind(depth: 10), Kind(depth: 12), Kind(depth: 32), Kind(depth: 16, isFloat: true),
            Kind(depth: 32, isFloat: true), Kind(depth: 64, isFloat: true),
        ], [[1.0 / 3], [0.8, 0.2, 0.4], [0.2, 0.8, 0, 0.2]])
    func samplesOfEveryKindAreTheSamePicture(kind: Kind, shares: [Double]) throws {
        let photometric = [1: 1, 3: 2, 4: 5][shares.count] ?? 1
        // Ink is not light.
        if kind.isFloat, photometric == 5 { return }
        let plain = try Self.thumb(
            Self.file(shares.map { Int($0 * 255) }, depth: 8, photometric: photometric))
        #expect(plain.pixel.count == 3)
        for (isTiled, isPlanar) in [(false, false), (true, false), (false, true), (true, true)] {
            let other = try Self.thumb(
                Self.file(
                    shares.map(kind.number), depth: kind.depth, photometric: photometric, isTiled: isTiled,
                    isPlanar: isPlanar, format: kind.isFloat ? 3 : 1))
            #expect(other.report.outcome == .made, "\(String(describing: other.report.reason))")
            #expect(
                zip(other.pixel, plain.pixel).allSatisfy { abs($0 - $1) <= 3 },
                "\(other.pixel) \(plain.pixel) \(isTiled) \(isPlanar)")
        }
    }

    @Test func aRowOfBitsIsReadToItsEnd() throws {
        for (value, shade) in [(0, 0), (1, 255)] {
            #expect(try Self.thumb(Self.file([value], depth: 1, photometric: 1)).pixel == [shade, shade, shade])
            #expect(try Self.thumb(Self.file([1 - value], depth: 1, photometric: 0)).pixel == [shade, shade, shade])
        }
    }

    /// Degrees or metres are no light: what is least is black then, and what is most white.
    @Test(arguments: [false, true]) func greyThatLeavesItsRangeIsShownWhole(isTiled: Bool) throws {
        func bits(_ value: Float) -> Int { Int(value.bitPattern) }
        let bytes = Self.file(
            [bits(12.5)], lower: [bits(37.5)], depth: 32, photometric: 1, isTiled: isTiled, format: 3)
        let (file, sink) = (Scratch(bytes), RecordingSink())
        _ = try Thumb.make(
            file.descriptor, format: .tiff, file: "x", settings: ThumbSettings(sizes: [32]), limits: MediaLimits(),
            sink: sink)
        let pixels = try Pixels(jpeg: #require(sink.files["32"]).bytes)
        #expect(pixels[8, 3][0] <= 4 && pixels[8, 12][0] >= 251, "\(pixels[8, 3]) \(pixels[8, 12])")
    }

    /// As an unsigned number and its sign bit.
    @Test(arguments: [8, 16, 32], [false, true]) func numbersWithASignCountFromTheLeast(depth: Int, isTiled: Bool)
        throws
    {
        let value = 60 * ((1 << depth - 1) / 255) ^ 1 << (depth - 1)
        let bytes = Self.file([value], depth: depth, photometric: 1, isTiled: isTiled, format: 2)
        #expect(try Self.thumb(bytes).pixel.allSatisfy { abs($0 - 60) <= 1 })
        #expect(try Self.thumb(bytes).report.outcome == .made)
    }

    @Test func complexNumbersAndDeepJPEGsAreUnsupported() throws {
        for bytes in [
            Self.file([60], depth: 32, photometric: 1, format: 6),
            Self.file([60], depth: 12, photometric: 1, compression: 7),
        ] {
            #expect(try Self.thumb(bytes).report.reason?.code == .unsupportedCodec)
        }
    }

    /// L*a*b* of 60, 40 and -30: TIFF's own with a sign, ICC's of version 2 from 128 on, of which 65280 is all.
    @Test(arguments: [8, 9]) func labOfSixteenBitsIsThatOfEight(photometric: Int) throws {
        let isSigned = photometric == 8
        let eight = isSigned ? [153, 40, 256 - 30] : [153, 168, 98]
        let sixteen = isSigned ? [39321, 40 * 256, 65536 - 30 * 256] : [39168, 168 * 256, 98 * 256]
        let plain = try Self.thumb(Self.file(eight, depth: 8, photometric: photometric)).pixel
        for (isTiled, format) in [(false, 1), (true, 1), (false, isSigned ? 2 : 1)] {
            let bytes = Self.file(sixteen, depth: 16, photometric: photometric, isTiled: isTiled, format: format)
            let other = try Self.thumb(bytes).pixel
            #expect(plain.count == 3 && zip(other, plain).allSatisfy { abs($0 - $1) <= 2 }, "\(other) \(plain)")
        }
        // By the formulas of CIE 15 and the matrix of IEC 61966-2-1, from the white of D50.
        #expect(zip(plain, [187, 117, 197]).allSatisfy { abs($0 - $1) <= 8 }, "\(plain)")
    }

    /// WebP has a tile decoded as a whole, however few of its rows are wanted.
    @Test func aCodecThatDecodesStripsWholeIsAdmittedByTheStrip() throws {
        let strip = Self.size.width * 16 * 3
        let bytes = Self.file([1, 2, 3], depth: 8, photometric: 2, compression: 50001)
        let reader = try TIFFReader(ByteView(bytes), page: 0)
        let rows = try #require(reader.plainRows)
        var codes: [FailureCode?] = []
        for budget in [2 * strip, 1 << 20] {
            do throws(Failure) {
                let target = PixelSize(width: 1, height: 1)
                _ = try reader.decode(rows, target, encoding: .plain, budget: MemoryBudget(bytes: budget))
                codes.append(nil)
            } catch { codes.append(error.code) }
        }
        #expect(codes == [.overBudget, .corrupt])
    }

    @Test func theLargePageHasItsOwnDate() throws {
        var bytes = Self.file([60], depth: 8, photometric: 1, date: "2021:02:03 04:05:06")
        // A thumbnail before it, whose directory lies at the end.
        var directory = ByteWriter(bigEndian: false)
        directory.u16(3)
        for (tag, value) in [(254, 1), (256, 4), (257, 4)] {
            directory.u16(tag, 4)
            directory.u32(1, value)
        }
        directory.u32(8)
        var place = ByteWriter(bigEndian: false)
        place.u32(bytes.count)
        bytes.replaceSubrange(4..<8, with: place.bytes)
        let file = Scratch(bytes + directory.bytes)
        let report = try PhotoProbe.probe(file.descriptor, format: .tiff, file: "x", limits: MediaLimits())
        #expect(report.facts?.width == 32 && report.facts?.takenAt == "2021-02-03T04:05:06")
    }
}
