import Testing
import Vocabulary

@testable import Thumbs

/// EXIF and XMP in the texts of a PNG.
@Suite struct PNGTextTests {
    private static let exif = TIFFBuilder(bigEndian: false).directory([
        .short(0x0112, 6), .text(0x0110, "X100"), .text(0x0132, "2020:01:01 00:00:00"),
    ])
    private static let packet = Array("<x exif:DateTimeOriginal='1999-07-08T10:11:12'/>".utf8)

    private static func hex(_ bytes: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        var text = Array("\nexif\n    \(bytes.count)\n".utf8)
        for (index, byte) in bytes.enumerated() {
            text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] + (index % 36 == 35 ? [0x0A] : [])
        }
        return text + [0x0A]
    }

    private static func header(_ chunk: (String, [UInt8])) throws -> PictureHeader {
        let size = PixelSize(width: 2, height: 1)
        let bytes = Pictures.png(
            size, depth: 8, colorType: 0, rows: [[1, 2]], before: [("tEXt", Array("Comment\0x".utf8)), chunk])
        return try PNGFile(ByteView(bytes), limits: .init()).header
    }

    @Test(arguments: ["exif", "APP1"], [false, true])
    func imageMagicksProfilesAreRead(name: String, isPacked: Bool) throws {
        let profile = name == "APP1" ? Array("Exif\0\0".utf8) + Self.exif : Self.exif
        let keyword = Array("Raw profile type \(name)\0".utf8)
        let text = Self.hex(profile)
        let header = try Self.header(
            isPacked ? ("zTXt", keyword + [0] + Pictures.zlib(text)) : ("tEXt", keyword + text))
        #expect(header.orientation == .turned90)
        #expect(header.metadata.camera == "X100")
    }

    @Test(arguments: [false, true]) func xmpIsReadPackedToo(isPacked: Bool) throws {
        let start = Array("XML:com.adobe.xmp\0".utf8) + [isPacked ? 1 : 0, 0, 0, 0]
        let header = try Self.header(("iTXt", start + (isPacked ? Pictures.zlib(Self.packet) : Self.packet)))
        #expect(header.metadata.taken?.text == "1999-07-08T10:11:12")
    }

    @Test func whatIsDamagedOrTooLongIsLeftAside() throws {
        let keyword = Array("Raw profile type exif\0".utf8)
        let packed = Pictures.zlib(Self.hex(Self.exif))
        for body in [[], [0], [0] + packed.dropLast(9), [1] + packed, [0] + packed.reversed()] as [[UInt8]] {
            #expect(try Self.header(("zTXt", keyword + body)).metadata == PhotoMetadata())
        }
        let long = [UInt8](repeating: 0x20, count: PNGText.byteCountMax + 1)
        let start = Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0]
        var bytesLeft = PNGText.byteCountMax
        #expect(PNGText.block(type: "iTXt", ByteView(start + Pictures.zlib(long)), bytesLeft: &bytesLeft) == nil)
    }

    /// However many there are.
    @Test func allTextTogetherIsBounded() {
        let text = ByteView(Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0] + Pictures.zlib(Self.packet))
        var bytesLeft = Self.packet.count + 1
        for isRead in [true, true, false] {
            #expect((PNGText.block(type: "iTXt", text, bytesLeft: &bytesLeft) != nil) == isRead)
        }
    }

    /// libpng takes no profile of RGB for grey, and none of which it finds anything wrong.
    @Test(arguments: [0, 2, 4], [false, true]) func everyProfileThatCanBeUsedIsUsed(colorType: Int, isOdd: Bool) throws
    {
        var profile = Pictures.profile(gamma: 1)
        // An illuminant that is not D50.
        if isOdd { profile[71] = 1 }
        let iccp = Array("a name\0\0".utf8) + Pictures.zlib(profile)
        let pixel = [0: [128], 2: [128, 128, 128], 4: [128, 255]][colorType] ?? []
        let png = Pictures.png(
            PixelSize(width: 1, height: 1), depth: 8, colorType: colorType, rows: [pixel.map { UInt8($0) }],
            before: [("iCCP", iccp)])
        let (file, sink) = (Scratch(png), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .png, file: "x", settings: ThumbSettings(sizes: [16]), limits: MediaLimits(),
            sink: sink)
        #expect(report.warnings.isEmpty)
        let shown = try Pixels(jpeg: #require(sink.files["16"]).bytes)[0, 0]
        #expect(shown.allSatisfy { abs($0 - 188) <= 2 }, "\(shown)")
    }
}
