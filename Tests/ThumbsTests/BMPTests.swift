import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// BMP of every kind of pixel, written byte by byte.
@Suite struct BMPTests {
    private static let size = PixelSize(width: 48, height: 32)

    /// - Parameters:
    ///   - masks: red, green, blue, alpha, behind the shortest header or inside a longer one.
    ///   - body: from the bottom row up.
    private static func file(
        bits: Int, compression: Int = 0, masks: [Int] = [], headerBytes: Int = 40, palette: [[Int]] = [], body: [UInt8]
    ) -> [UInt8] {
        var head = ByteWriter(bigEndian: false)
        if headerBytes == 12 {
            head.u32(12)
            head.u16(size.width, size.height, 1, bits)
        } else {
            head.u32(headerBytes, size.width, size.height)
            head.u16(1, bits)
            head.u32(compression, body.count, 2835, 2835, palette.count, 0)
            for mask in masks { head.u32(mask) }
            while head.bytes.count < headerBytes { head.u8(0) }
        }
        for color in palette {
            head.u8(color[2], color[1], color[0])
            if headerBytes > 12 { head.u8(0) }
        }
        var file = ByteWriter(bigEndian: false)
        file.text("BM")
        file.u32(14 + head.bytes.count + body.count, 0, 14 + head.bytes.count)
        return file.bytes + head.bytes + body
    }

    private static func body(bits: Int, _ pixel: ([Int]) -> Int) -> [UInt8] {
        var writer = ByteWriter(bigEndian: false)
        for y in (0..<size.height).reversed() {
            for x in 0..<size.width { writer.number(pixel(Pictures.color(x: x, y: y, of: size)), width: bits / 8) }
        }
        return writer.bytes
    }

    private static func thumb(_ bytes: [UInt8], budget: Int = 1 << 30) throws -> (ThumbReport, Pixels?) {
        let (file, sink) = (Scratch(bytes), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .bmp, file: "x", settings: ThumbSettings(sizes: [48]),
            limits: MediaLimits(memoryBytes: budget), sink: sink)
        return (report, try sink.files["48"].map { try Pixels(jpeg: $0.bytes) })
    }

    private static func expectQuarters(_ bytes: [UInt8], within tolerance: Int = 14) throws {
        let (report, found) = try thumb(bytes)
        let pixels = try #require(found, "\(String(describing: report.reason))")
        for (x, y) in [(12, 8), (36, 8), (12, 24), (36, 24)] {
            let expected = Pictures.color(x: x, y: y, of: size)
            #expect(pixels.isNear(expected, x: x, y: y, within: tolerance), "\(x) \(y): \(pixels[x, y])")
        }
    }

    @Test func threeBytesShowTheirColoursAndTheirMissingEnd() throws {
        let bytes = Self.file(bits: 24, body: Self.body(bits: 24) { $0[0] << 16 | $0[1] << 8 | $0[2] })
        try Self.expectQuarters(bytes)
        #expect(try Self.thumb(Array(bytes.dropLast(30))).0.reason?.code == .truncated)
    }

    /// The fourth byte is filled with anything.
    @Test func onlyAMaskMakesTransparency() throws {
        func pixel(_ color: [Int]) -> Int { color[0] << 16 | color[1] << 8 | color[2] | color[0] << 24 }
        try Self.expectQuarters(Self.file(bits: 32, body: Self.body(bits: 32, pixel)))
        let masks = [0xFF0000, 0xFF00, 0xFF, 0xFF00_0000]
        // All but the last quarter is clear.
        let clear = Self.file(
            bits: 32, compression: 3, masks: masks, headerBytes: 108,
            body: Self.body(bits: 32) { $0 == Pictures.quarters[3] ? 0xFF10_2030 : 0x0010_2030 })
        let pixels = try #require(try Self.thumb(clear).1)
        #expect(pixels.isNear([255, 255, 255], x: 12, y: 8) && pixels.isNear([16, 32, 48], x: 36, y: 24))
        // Where all of it is, nobody has written any transparency.
        try Self.expectQuarters(
            Self.file(
                bits: 32, compression: 3, masks: masks, headerBytes: 108,
                body: Self.body(bits: 32) { $0[0] << 16 | $0[1] << 8 | $0[2] }))
    }

    private static let masked: [(bits: Int, masks: [Int])] = [
        (16, [0x7C00, 0x3E0, 0x1F]), (16, [0xF800, 0x7E0, 0x1F]), (16, [0xF00, 0xF0, 0xF]),
        (16, [0x1F, 0x7E0, 0xF800]),
        (32, [0xFF, 0xFF00, 0xFF0000]), (32, [0xFFE0_0000, 0x1F_FC00, 0x3FF]), (32, [0xFF00_0000, 0xFF0000, 0xFF00]),
    ]

    @Test(arguments: 0..<7, [3, 6]) func channelsLieWhereTheirMasksAre(row: Int, compression: Int) throws {
        let (bits, masks) = Self.masked[row]
        let body = Self.body(bits: bits) { color in
            zip(color, masks).reduce(0) { sum, part in
                let top = part.1 >> part.1.trailingZeroBitCount
                return sum | ((part.0 * top + 127) / 255) << part.1.trailingZeroBitCount
            }
        }
        try Self.expectQuarters(
            Self.file(bits: bits, compression: compression, masks: masks + (compression == 6 ? [0] : []), body: body),
            within: 18)
        try Self.expectQuarters(
            Self.file(bits: bits, compression: compression, masks: masks, headerBytes: 56, body: body), within: 18)
    }

    private static func index(x: Int, y: Int) -> Int { y * 2 / size.height * 2 + x * 2 / size.width }

    @Test(arguments: [1, 2, 4, 8], [12, 40]) func palettesAreOfEveryDepth(bits: Int, headerBytes: Int) throws {
        var body: [UInt8] = []
        for y in (0..<Self.size.height).reversed() {
            var row = [UInt8](repeating: 0, count: (Self.size.width * bits + 31) / 32 * 4)
            for x in 0..<Self.size.width {
                let index = bits == 1 ? Self.index(x: x, y: y) & 1 : Self.index(x: x, y: y)
                row[x * bits / 8] |= UInt8(index << (8 - bits - x * bits % 8))
            }
            body += row
        }
        let bytes = Self.file(
            bits: bits, headerBytes: headerBytes, palette: Array(Pictures.quarters.prefix(1 << bits)), body: body)
        guard bits == 1 else { return try Self.expectQuarters(bytes) }
        let pixels = try #require(try Self.thumb(bytes).1)
        #expect(pixels.isNear(Pictures.quarters[0], x: 12, y: 24) && pixels.isNear(Pictures.quarters[1], x: 36, y: 8))
    }

    private static func runs(bits: Int) -> [UInt8] {
        var body: [UInt8] = []
        for y in (0..<size.height).reversed() {
            for half in [0, size.width / 2] {
                let index = UInt8(index(x: half, y: y))
                body += [UInt8(size.width / 2), bits == 8 ? index : index << 4 | index]
            }
            body += [0, 0]
        }
        return body + [0, 1]
    }

    @Test(arguments: [(8, 1), (4, 2)]) func runsAreUnpackedOnceTheyAreAdmitted(bits: Int, compression: Int) throws {
        let body = Self.runs(bits: bits)
        func file(_ body: [UInt8]) -> [UInt8] {
            Self.file(bits: bits, compression: compression, palette: Pictures.quarters, body: body)
        }
        try Self.expectQuarters(file(body))
        // The mark of the end and the last row's are left out by some.
        try Self.expectQuarters(file(Array(body.dropLast(4))))
        #expect(try Self.thumb(file(Array(body.dropLast(12)))).0.reason?.code == .truncated)
        var large = file(body)
        large.replaceSubrange(18..<26, with: [0, 0x40, 0, 0, 0, 0x40, 0, 0])
        let failure = #expect(throws: Failure.self) { try Self.thumb(large, budget: 64 << 20) }
        #expect(failure?.code == .overBudget)
    }

    @Test(arguments: [UInt64(11), 12]) func wrongBytesNeverTrap(seed: UInt64) throws {
        var numbers = SeededNumbers(state: seed)
        let files = [
            Self.file(bits: 8, compression: 1, palette: Pictures.quarters, body: Self.runs(bits: 8)),
            Self.file(
                bits: 16, compression: 3, masks: [0xF00, 0xF0, 0xF], body: Self.body(bits: 16) { $0[0] }),
        ]
        for round in 0..<400 {
            var bytes = files[round % 2]
            for _ in 0..<Int.random(in: 1...4, using: &numbers) {
                bytes[Int.random(in: 14..<140, using: &numbers)] =
                    [0, 1, 0xFF, 0x7F, 8].randomElement(using: &numbers) ?? 0
            }
            let limits = MediaLimits(pixelCountMax: 1 << 16)
            guard let picture = try? BMPFile(ByteView(bytes), limits: limits) else { continue }
            _ = try? picture.tryPixels(budget: Pictures.roomy)
        }
    }

    @Test(arguments: [4, 5]) func aPictureOfAnotherFormatInItIsUnsupported(compression: Int) throws {
        let report = try Self.thumb(Self.file(bits: 0, compression: compression, body: [0xFF, 0xD8])).0
        #expect(report.reason?.code == .unsupportedCodec)
    }
}
