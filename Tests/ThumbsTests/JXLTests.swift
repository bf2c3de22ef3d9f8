import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// JPEG XL: a codestream by cjxl in boxes that are written here.
@Suite struct JXLTests {
    /// 8 x 16, red above and blue below; stored lying, with the codestream's own orientation. Lossless.
    private static let codestream = Data(
        base64Encoded: "/wrBLRBQXBIIAgEAgABLGIsVANQiY4wkdYEQABAmFgACyTmVJEm9Y2gQ8gAKDw=="
    ).map { [UInt8]($0) }

    private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        var writer = ByteWriter()
        writer.u32(body.count + 8)
        writer.text(type)
        return writer.bytes + body
    }

    private static func file(_ boxes: [UInt8]) throws -> [UInt8] {
        box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jxl \0\0\0\0jxl ".utf8)) + boxes
            + box("jxlc", try #require(codestream))
    }

    private static func probe(_ bytes: [UInt8]) throws -> ProbeReport {
        let file = Scratch(bytes)
        return try PhotoProbe.probe(file.descriptor, format: .jxl, file: "x", limits: MediaLimits())
    }

    private static let exif = TIFFBuilder(bigEndian: true).directory([
        .short(0x0112, 3), .text(0x0110, "X100"), .text(0x0132, "2020:01:01 00:00:00"),
    ])

    /// Brotli's stream of one block that is only stored (RFC 7932, section 9.2).
    private static func brotli(_ bytes: [UInt8]) -> [UInt8] {
        let head = (bytes.count - 1) << 4 | 1 << 20
        return [head, head >> 8, head >> 16].map { UInt8(truncatingIfNeeded: $0) } + bytes + [3]
    }

    /// Four bytes say how many lie before the TIFF header.
    @Test(arguments: [0, 3], [false, true]) func aBoxTellsOfTheCamera(skipped: Int, isPacked: Bool) throws {
        let body = [0, 0, 0, UInt8(skipped)] + [UInt8](repeating: 7, count: skipped) + Self.exif
        let boxes = isPacked ? Self.box("brob", Array("Exif".utf8) + Self.brotli(body)) : Self.box("Exif", body)
        let facts = try #require(try Self.probe(Self.file(boxes)).facts)
        #expect(facts.camera == "X100" && facts.takenAt == "2020-01-01T00:00:00")
        // Only the codestream's orientation counts, and libjxl applies it.
        #expect((facts.width, facts.height) == (8, 16) && facts.rotationClockwise == 90)
    }

    @Test func thePictureIsTurnedOnce() throws {
        for boxes in [[], Self.box("Exif", [0, 0, 0, 0] + Self.exif)] {
            let pixels = try Pictures.thumbnail(Self.file(boxes), .jxl)
            #expect(pixels.isNear([200, 40, 60], x: 4, y: 3) && pixels.isNear([30, 60, 210], x: 4, y: 12))
        }
    }

    @Test func aGainMapHasABoxOfItsOwn() throws {
        #expect(try Self.probe(Self.file(Self.box("jhgm", [0]))).facts?.hasGainMap == true)
        #expect(try Self.probe(Self.file([])).facts?.hasGainMap == false)
    }

    /// 8 x 8, magenta and yellow in full, below with all of black. By libjxl.
    private static let ink = Data(
        base64Encoded:
            "AAAADEpYTCANCocKAAAAFGZ0eXBqeGwgAAAAAGp4bCAAAAAJanhsbAoAAAAzanhsY/8KQcAoAAkICBAAeABLGIsVwgmqlx+sFxABIH/17zoc+T8AAADAAQAAAAA="
    ).map { [UInt8]($0) }

    @Test func blackInkIsSeen() throws {
        let pixels = try Pictures.thumbnail(#require(Self.ink), .jxl)
        #expect(pixels.isNear([255, 0, 0], x: 4, y: 1) && pixels.isNear([0, 0, 0], x: 4, y: 6))
    }

    /// Three pictures of 16 x 16 by cjxl.
    private static let animation = Data(
        base64Encoded:
            "/wpDBAFYUFwSCAigAgAAaABLGIsVANSMMRjHC0gAoEgJA7BI4N8PSIX2BwgIoAIAAEQASxiLFYBd4P8CEgCADIbR+AMICKBCAABcAEsYixUAHBhjcPAuIAEAQWCamH8/6Kk5"
    ).map { [UInt8]($0) }

    @Test func aCutAnimationIsToldToo() throws {
        let whole = try #require(Self.animation)
        #expect(try Self.probe(whole).facts?.frames == 3)
        for length in 30..<(whole.count - 1) {
            #expect(try Self.probe(Array(whole[..<length])).reason?.code == .truncated, "\(length)")
        }
    }

    @Test func everyCutIsToldAndWrongBytesNeverTrap() throws {
        let whole = try Self.file(Self.box("brob", Array("Exif".utf8) + Self.brotli([0, 0, 0, 0] + Self.exif)))
        for length in stride(from: 40, to: whole.count - 1, by: 7) {
            #expect(try Self.probe(Array(whole[..<length])).reason?.code == .truncated, "\(length)")
        }
        var numbers = SeededNumbers(state: 9)
        for _ in 0..<300 {
            var bytes = whole
            for _ in 0..<3 {
                bytes[Int.random(in: 12..<bytes.count, using: &numbers)] = UInt8.random(in: 0...255, using: &numbers)
            }
            let file = Scratch(bytes)
            _ = try? PhotoProbe.probe(
                file.descriptor, format: .jxl, file: "x", limits: MediaLimits(pixelCountMax: 1 << 16))
        }
    }
}
