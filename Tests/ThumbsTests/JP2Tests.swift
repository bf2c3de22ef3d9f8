import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// JPEG 2000: its headers, and what its samples mean.
@Suite struct JP2Tests {
    @Test func jpeg2000TellsItsSizeBeforeItIsDecoded() throws {
        var stream = ByteWriter()
        stream.u16(0xFF4F, 0xFF51, 47, 0)
        stream.u32(1030, 520, 30, 20, 1030, 520, 0, 0)
        stream.u16(3)
        stream.u8(15, 1, 1, 15, 2, 2, 15, 2, 2)
        let structure = try #require(JP2Structure(ByteView(stream.bytes)))
        #expect(structure.size == PixelSize(width: 1000, height: 500) && structure.depth == 16)
        #expect(structure.pixelFormat == "yuv420p16le" && !structure.hasEnd)
        var boxed = ByteWriter()
        boxed.u32(stream.bytes.count + 9)
        boxed.text("jp2c")
        #expect(JP2Structure(ByteView(boxed.bytes + stream.bytes))?.isCut == true)
        let file = Scratch(stream.bytes)
        let report = try PhotoProbe.probe(
            file.descriptor, format: .jp2, file: "x", limits: MediaLimits(pixelCountMax: 499_999))
        #expect(report.reason?.code == .tooLarge)
        for length in 0..<stream.bytes.count { _ = JP2Structure(ByteView(Array(stream.bytes[..<length]))) }
    }

    /// 16 x 16 by OpenJPEG: magenta and yellow in full above, black in full below.
    private static let ink = Data(
        base64Encoded:
            "AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAABPanAyaAAAABZpaGRyAAAAEAAAABAABAcHAAAAAAAPY29scgEAAAAAAAwAAAAiY2RlZgAEAAAAAAABAAEAAAACAAIAAAADAAMAAQAAAAABC2pwMmP/T/9RADIAAAAAABAAAAAQAAAAAAAAAAAAAAAQAAAAEAAAAAAAAAAAAAQHAQEHAQEHAQEHAQH/UgAMAAAAAQAEBAQAAf9cABBAQEhIUEhIUEhIUEhIUP9kACUAAUNyZWF0ZWQgYnkgT3BlbkpQRUcgdmVyc2lvbiAyLjUuNP+QAAoAAAAAAIQAAf+T34AIB8+0CARfz7QIBF/PtAgHH4Cn4AQJp6fgBAmnp+AEAGmAp+AKA5KYur+n4AoDkpi6v6fgCgZCoYNvgKfgDg8oVQdDBHOn4A4PKFUHQwRzp+ASDHhNCAMsCfrEgKfgCgOEz5x/p+AKA4TPnH+j7QQAANTAW//Z"
    ).map { [UInt8]($0) }

    @Test func inkInJPEG2000IsInk() throws {
        let pixels = try Pictures.thumbnail(#require(Self.ink), .jp2)
        #expect(pixels.isNear([255, 0, 0], x: 4, y: 2) && pixels.isNear([0, 0, 0], x: 4, y: 13))
    }

    /// 14 is L*a*b*.
    @Test func whatFFmpegTakesForRGBIsUnsupported() throws {
        var bytes = try #require(Self.ink)
        let box = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("colr".utf8)) })
        bytes[box + 10] = 14
        let file = Scratch(bytes)
        let report = try PhotoProbe.probe(file.descriptor, format: .jp2, file: "x", limits: MediaLimits())
        #expect(report.reason?.code == .unsupportedCodec)
    }

    /// 16 x 16 of half the signal, by OpenJPEG.
    private static let grey = Data(
        base64Encoded:
            "/0//UQApAAAAAAAQAAAAEAAAAAAAAAAAAAAAEAAAABAAAAAAAAAAAAABBwEB/1IADAAAAAEABAQEAAH/XAAQQEBISFBISFBISFBISFD/ZAAlAAFDcmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjT/kAAKAAAAAAATAAH/k4CAgICA/9k="
    ).map { [UInt8]($0) }

    /// Half the light is 188 of sRGB.
    @Test(arguments: [(false, 128), (true, 188)]) func greyHasItsProfile(hasProfile: Bool, shown: Int) throws {
        func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
            var writer = ByteWriter()
            writer.u32(body.count + 8)
            writer.text(type)
            return writer.bytes + body
        }
        let size: [UInt8] = [0, 0, 0, 16, 0, 0, 0, 16, 0, 1, 7, 7, 0, 0]
        let color = hasProfile ? [2, 0, 0] + Pictures.profile(gamma: 1) : [1, 0, 0, 0, 0, 0, 17]
        let bytes =
            box("jP  ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jp2 \0\0\0\0jp2 ".utf8))
            + box("jp2h", box("ihdr", size) + box("colr", color)) + box("jp2c", try #require(Self.grey))
        #expect(try Pictures.thumbnail(bytes, .jp2)[8, 8].allSatisfy { abs($0 - shown) <= 2 })
    }

    /// The boxes before the codestream are cut already.
    @Test func jpeg2000WithoutItsCodestreamIsTruncated() throws {
        let whole = try #require(Self.ink)
        var profile = ByteWriter()
        profile.u32(8 + 20_000)
        profile.text("uuid")
        let file = Scratch(Array(whole[..<111]) + profile.bytes + [UInt8](repeating: 1, count: 9000))
        let failure = #expect(throws: Failure.self) {
            try JP2File(PictureInput(file.descriptor), limits: MediaLimits())
        }
        #expect(failure?.code == .truncated)
    }
}
