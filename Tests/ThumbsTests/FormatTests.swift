import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// Each format's reader on files made here.
@Suite struct FormatTests {
    static let size = PixelSize(width: 24, height: 16)

    private static func probe(_ bytes: [UInt8], _ format: MediaFormat, limits: MediaLimits = MediaLimits()) throws
        -> ProbeReport
    {
        let file = Scratch(bytes)
        return try PhotoProbe.probe(file.descriptor, format: format, file: "x", limits: limits)
    }

    private static func thumbnail(_ bytes: [UInt8], _ format: MediaFormat) throws -> Pixels {
        try Pictures.thumbnail(bytes, format, size: 1000, quality: 95)
    }

    /// The picture of four colours, its samples widened to `width` bytes each.
    private static func rows(width: Int = 1, alpha: Bool = false) -> [[UInt8]] {
        (0..<size.height).map { y in
            var row: [UInt8] = []
            for x in 0..<size.width {
                let color = Pictures.color(x: x, y: y, of: size) + (alpha ? [255] : [])
                for value in color { row += [UInt8](repeating: UInt8(value), count: width) }
            }
            return row
        }
    }

    private static func expectQuarters(_ pixels: Pixels, within tolerance: Int = 12) {
        #expect(pixels.raster.size == size)
        for (index, color) in Pictures.quarters.enumerated() {
            let (x, y) = (6 + (index % 2) * 12, 4 + (index / 2) * 8)
            #expect(pixels.isNear(color, x: x, y: y, within: tolerance), "quarter \(index): \(pixels[x, y])")
        }
    }

    // MARK: - PNG

    @Test(arguments: [(8, 2, false), (16, 2, false), (8, 6, true), (16, 6, true)])
    func pngOfEveryDepthShowsItsColours(depth: Int, colorType: Int, alpha: Bool) throws {
        let png = Pictures.png(
            Self.size, depth: depth, colorType: colorType, rows: Self.rows(width: depth / 8, alpha: alpha))
        let report = try Self.probe(png, .png)
        #expect(report.outcome == .accept && report.facts?.codec == "png")
        #expect(report.facts?.width == 24 && report.facts?.height == 16)
        Self.expectQuarters(try Self.thumbnail(png, .png))
    }

    @Test func transparentPNGLiesOnWhite() throws {
        let rows = [[UInt8]](repeating: [0, 0, 128, 0], count: 4)
        let pixels = try Self.thumbnail(
            Pictures.png(PixelSize(width: 1, height: 4), depth: 16, colorType: 4, rows: rows), .png)
        #expect(pixels.isNear([127, 127, 127], x: 0, y: 2, within: 2))
        let clear = Pictures.png(PixelSize(width: 1, height: 1), depth: 8, colorType: 6, rows: [[9, 9, 9, 0]])
        #expect(try Self.thumbnail(clear, .png).isNear([255, 255, 255], x: 0, y: 0, within: 1))
    }

    /// Few pixels, but each row has its price.
    @Test(arguments: [(1, PictureHeader.sideMax + 1), (PictureHeader.sideMax + 1, 1)])
    func aSideLongerThanAnyPictureIsTooLarge(width: Int, height: Int) throws {
        let png = Pictures.png(PixelSize(width: width, height: height), depth: 8, colorType: 0, rows: [[0]])
        #expect(try Self.probe(png, .png).reason?.code == .tooLarge)
    }

    @Test func pngTakesItsTurnFromEXIF() throws {
        let png = Pictures.png(
            Self.size, depth: 8, colorType: 2, rows: Self.rows(), before: [("eXIf", Pictures.exif(orientation: 6))])
        let report = try Self.probe(png, .png)
        #expect(report.facts?.width == 16 && report.facts?.rotationClockwise == 90)
        #expect(try Self.thumbnail(png, .png).isNear(Pictures.quarters[2], x: 4, y: 6))
    }

    @Test func animatedPNGIsAnAnimation() throws {
        var control = ByteWriter()
        control.u32(0, 24, 16, 0, 0)
        control.u16(1, 10)
        control.u8(0, 0)
        let png = Pictures.png(
            Self.size, depth: 8, colorType: 2, rows: Self.rows(),
            before: [("acTL", [0, 0, 0, 2, 0, 0, 0, 0]), ("fcTL", control.bytes)], after: [("fcTL", control.bytes)])
        let facts = try #require(Self.probe(png, .png).facts)
        #expect(facts.kind == .animation && facts.frames == 2)
        #expect(abs((facts.duration ?? 0) - 0.2) < 1e-9)
    }

    @Test func pngInWideColoursIsConverted() throws {
        // The same numbers in BT.2020 are stronger colours than in sRGB.
        let row: [UInt8] = [90, 160, 90]
        func shown(_ chunks: [(String, [UInt8])]) throws -> [Int] {
            try Self.thumbnail(
                Pictures.png(PixelSize(width: 1, height: 1), depth: 8, colorType: 2, rows: [row], before: chunks), .png)[
                    0, 0]
        }
        let plain = try shown([])
        let wide = try shown([("cICP", [9, 13, 0, 1])])
        #expect(wide[0] < plain[0] - 10 && wide[1] > plain[1] + 3)
    }

    @Test func pngInPQIsToneMapped() throws {
        // 203 cd/m² is signal 0.58 of PQ, the white of SDR.
        let png = Pictures.png(
            PixelSize(width: 1, height: 1), depth: 8, colorType: 2, rows: [[148, 148, 148]],
            before: [("cICP", [9, 16, 0, 1])])
        #expect(try Self.probe(png, .png).facts?.hdr == "pq")
        #expect(try Self.thumbnail(png, .png).isNear([254, 254, 254], x: 0, y: 0, within: 3))
    }

    @Test(arguments: [(33, FailureCode.truncated), (60, .truncated), (1, .truncated)])
    func pngWithoutItsEndIsTruncated(missing: Int, code: FailureCode) throws {
        let png = Pictures.png(Self.size, depth: 8, colorType: 2, rows: Self.rows())
        #expect(try Self.probe(Array(png.dropLast(missing)), .png).reason?.code == code)
    }

    @Test func pngWithAWrongChecksumIsCorrupt() throws {
        var png = Pictures.png(Self.size, depth: 8, colorType: 2, rows: Self.rows())
        png[png.count - 20] ^= 0x55
        #expect(try Self.probe(png, .png).reason?.code == .corrupt)
    }

    @Test func aBombIsRefusedByItsHeader() throws {
        let png = Pictures.png(PixelSize(width: 65536, height: 65536), depth: 1, colorType: 0, rows: [[0]])
        let report = try Self.probe(png, .png)
        #expect(report.reason?.code == .tooLarge)
        #expect(report.facts == nil)
    }

    // MARK: - GIF

    /// Two by two pixels of two colours, one code of three bits a pixel.
    private static func gif(top: Int = 0, frames: Int = 1, delay: Int = 30, trailer: Bool = true) -> [UInt8] {
        var writer = ByteWriter(bigEndian: false)
        writer.text("GIF89a")
        writer.u16(2, 2)
        writer.u8(0x80, 0, 0, 220, 30, 30, 30, 30, 220)
        for _ in 0..<frames {
            writer.u8(0x21, 0xF9, 4, 0)
            writer.u16(delay)
            writer.u8(0, 0, 0x2C)
            writer.u16(0, top, 2, 2)
            // Clear is 4, end is 5; with the third index the table has 8 entries, so codes of 4 bits follow.
            var (bits, place) = (0, 0)
            for (code, width) in [(4, 3), (0, 3), (1, 3), (1, 3), (0, 4), (5, 4)] {
                bits |= code << place
                place += width
            }
            writer.u8(0, 2, 3, bits & 255, bits >> 8 & 255, bits >> 16, 0)
        }
        if trailer { writer.u8(0x3B) }
        return writer.bytes
    }

    @Test func aGIFShowsItsFirstPicture() throws {
        let file = try GIFFile(ByteView(Self.gif()), limits: MediaLimits())
        let raster = try file.decode(longSide: 2, budget: Pictures.roomy).raster
        #expect(Array(raster.pixels) == [220, 30, 30, 255, 30, 30, 220, 255, 30, 30, 220, 255, 220, 30, 30, 255])
    }

    @Test func aGIFOfSeveralPicturesIsAnAnimation() throws {
        let facts = try #require(Self.probe(Self.gif(frames: 3, delay: 30), .gif).facts)
        #expect(facts.kind == .animation && facts.frames == 3)
        #expect(abs((facts.duration ?? 0) - 0.9) < 1e-9)
        #expect(try Self.probe(Self.gif(frames: 1), .gif).facts?.kind == .photo)
    }

    @Test func aGIFWhosePictureLiesOutsideItsScreenIsCorrupt() throws {
        #expect(try Self.probe(Self.gif(top: 65280), .gif).reason?.code == .corrupt)
    }

    @Test func aGIFThatEndsInsideABlockIsTruncated() throws {
        #expect(try Self.probe(Array(Self.gif(frames: 2).dropLast(4)), .gif).reason?.code == .truncated)
        #expect(try Self.probe(Self.gif(trailer: false), .gif).outcome == .accept)
    }

    // MARK: - TIFF, PSD, BMP

    private static func tiff(
        photometric: Int, samples: Int, bits: Int, data: [UInt8], bigEndian: Bool = false,
        extra: [TIFFBuilder.Entry] = []
    ) -> [UInt8] {
        // The pixels come first, so their place is known.
        var entries: [TIFFBuilder.Entry] = [
            .long(256, size.width), .long(257, size.height), .short(258, bits), .short(259, 1),
            .short(262, photometric),
            .short(277, samples), .long(278, size.height), .long(279, data.count), .bytes(65000, data),
        ]
        entries += extra
        func built(at offset: Int) -> [UInt8] {
            TIFFBuilder(bigEndian: bigEndian).directory(entries + [.long(273, offset)])
        }
        let first = built(at: 0)
        let place = first.indices.first { first[$0...].starts(with: data) } ?? 0
        return built(at: place)
    }

    @Test(arguments: [false, true])
    func tiffOfEightAndSixteenBitsShowsItsColours(bigEndian: Bool) throws {
        for width in [1, 2] {
            let bytes = Self.tiff(
                photometric: 2, samples: 3, bits: width * 8, data: Self.rows(width: width).flatMap { $0 },
                bigEndian: bigEndian)
            #expect(MediaFormat.sniff(bytes) == .tiff)
            #expect(try Self.probe(bytes, .tiff).facts?.codec == "tiff")
            Self.expectQuarters(try Self.thumbnail(bytes, .tiff))
        }
    }

    @Test func tiffOfInkIsConverted() throws {
        var data: [UInt8] = []
        for row in Self.rows() {
            for x in 0..<Self.size.width { data += [255 - row[x * 3], 255 - row[x * 3 + 1], 255 - row[x * 3 + 2], 0] }
        }
        let bytes = Self.tiff(photometric: 5, samples: 4, bits: 8, data: data)
        Self.expectQuarters(try Self.thumbnail(bytes, .tiff))
    }

    @Test func aTIFFWhoseNextPageLiesBehindItsEndIsTruncated() throws {
        var bytes = Self.tiff(photometric: 2, samples: 3, bits: 8, data: Self.rows().flatMap { $0 })
        let link = 8 + 2 + 10 * 12
        #expect(try Self.probe(bytes, .tiff).outcome == .accept)
        bytes.replaceSubrange(link..<(link + 4), with: [0, 0, 0, 1])
        #expect(try Self.probe(bytes, .tiff).reason?.code == .truncated)
    }

    @Test func aTIFFWithMoreColoursThanLibtiffLooksUpIsUnsupported() throws {
        let colors = [UInt8](repeating: 0, count: 3 * 2 << 16)
        let palette = TIFFBuilder.Entry(tag: 320, type: 3, count: 3 << 16, value: colors)
        let data = [UInt8](repeating: 5, count: Self.size.width * Self.size.height * 2)
        let bytes = Self.tiff(photometric: 3, samples: 1, bits: 16, data: data, extra: [palette])
        #expect(try Self.probe(bytes, .tiff).reason?.code == .unsupportedCodec)
    }

    @Test func tiffWhoseStripsAreMissingIsTruncated() throws {
        let bytes = Self.tiff(photometric: 2, samples: 3, bits: 8, data: Self.rows().flatMap { $0 })
        #expect(try Self.probe(Array(bytes.prefix(bytes.count - 40)), .tiff).reason?.code == .truncated)
    }

    /// - Parameters:
    ///   - layers: their number; below 0 where a channel of the merged picture is its transparency.
    ///   - isMerged: nil: nothing is said of it.
    private static func psd(
        mode: Int, depth: Int, channels: Int, planes: [[UInt8]], packed: Bool = false, layers: Int? = nil,
        isMerged: Bool? = nil
    ) -> [UInt8] {
        var writer = ByteWriter()
        writer.text("8BPS")
        writer.u16(1)
        writer.u8(0, 0, 0, 0, 0, 0)
        writer.u16(channels)
        writer.u32(size.height, size.width)
        writer.u16(depth, mode)
        writer.u32(0)
        if let isMerged {
            writer.u32(18)
            writer.text("8BIM")
            writer.u16(1057, 0)
            writer.u32(5, 1)
            writer.u8(isMerged ? 1 : 0, 0)
        } else {
            writer.u32(0)
        }
        if let layers {
            writer.u32(10, 2)
            writer.u16(layers)
            writer.u32(0)
        } else {
            writer.u32(0)
        }
        writer.u16(packed ? 1 : 0)
        if packed {
            let rowBytes = size.width * depth / 8
            var rows: [[UInt8]] = []
            for plane in planes {
                for start in stride(from: 0, to: plane.count, by: rowBytes) {
                    rows.append(Array(plane[start..<(start + rowBytes)]))
                }
            }
            for _ in rows { writer.u16(rowBytes + 1) }
            for row in rows {
                writer.u8(row.count - 1)
                writer.bytes += row
            }
        } else {
            for plane in planes { writer.bytes += plane }
        }
        return writer.bytes
    }

    private static func plane(_ rows: [[UInt8]], channel: Int) -> [UInt8] {
        var plane: [UInt8] = []
        for row in rows { plane += stride(from: channel, to: row.count, by: 3).map { row[$0] } }
        return plane
    }

    @Test(arguments: [false, true])
    func photoshopsRGBShowsItsColours(packed: Bool) throws {
        let rows = Self.rows()
        let planes = (0..<3).map { Self.plane(rows, channel: $0) }
        Self.expectQuarters(
            try Self.thumbnail(Self.psd(mode: 3, depth: 8, channels: 3, planes: planes, packed: packed), .psd))
    }

    /// The merged picture lies on white already, as Photoshop writes it.
    @Test(arguments: [(1, "gbrp"), (-1, "gbrap")]) func transparencyOfAMergedPictureIsToldOf(
        layers: Int, format: String
    ) throws {
        let rows = Self.rows()
        let clear = [UInt8](repeating: 0, count: Self.size.width * Self.size.height)
        let planes = (0..<3).map { Self.plane(rows, channel: $0) } + [clear]
        let bytes = Self.psd(mode: 3, depth: 8, channels: 4, planes: planes, layers: layers)
        Self.expectQuarters(try Self.thumbnail(bytes, .psd))
        #expect(try Self.probe(bytes, .psd).facts?.pixelFormat == format)
    }

    /// Of layers without it there is nothing to show but a blank.
    @Test func aMergedPictureThatWasLeftOutIsNotShown() throws {
        let planes = (0..<3).map { Self.plane(Self.rows(), channel: $0) }
        for (layers, isMerged, code) in [
            (1, false, FailureCode.unsupportedCodec), (nil, false, nil), (1, true, nil),
        ] as [(Int?, Bool, FailureCode?)] {
            let bytes = Self.psd(mode: 3, depth: 8, channels: 3, planes: planes, layers: layers, isMerged: isMerged)
            #expect(try Self.probe(bytes, .psd).reason?.code == code)
        }
    }

    @Test func photoshopsInkIsStoredUpsideDown() throws {
        let rows = Self.rows()
        let ink = (0..<3).map { Self.plane(rows, channel: $0) }
        let black = [UInt8](repeating: 255, count: Self.size.width * Self.size.height)
        Self.expectQuarters(try Self.thumbnail(Self.psd(mode: 4, depth: 8, channels: 4, planes: ink + [black]), .psd))
    }

    @Test func photoshopsFloatsAreUnsupportedAndAMissingEndIsTruncated() throws {
        #expect(
            try Self.probe(Self.psd(mode: 3, depth: 32, channels: 3, planes: []), .psd).reason?.code
                == .unsupportedCodec)
        #expect(
            try Self.probe(Self.psd(mode: 3, depth: 8, channels: 3, planes: [[1, 2]]), .psd).reason?.code == .truncated)
    }

    // MARK: - JPEG

    @Test func aJPEGWithDamageInsideIsAcceptedWithAWarning() throws {
        var bytes = try Pictures.jpeg(PixelSize(width: 400, height: 300))
        bytes.removeSubrange((bytes.count / 2)..<(bytes.count / 2 + 60))
        let report = try Self.probe(bytes, .jpeg)
        #expect(report.outcome == .accept)
        #expect(report.warnings.map(\.code) == ["damaged-picture"])
    }

    @Test func aWholeJPEGWithoutItsEndMarkIsAcceptedWithAWarning() throws {
        let bytes = try Pictures.jpeg(PixelSize(width: 400, height: 300))
        let report = try Self.probe(Array(bytes.dropLast(2)), .jpeg)
        #expect(report.outcome == .accept)
        #expect(report.warnings.map(\.code) == ["end-marker-missing"])
    }

    /// A comment whose length leaves out even itself.
    @Test func aSegmentOfNoLengthIsPassed() throws {
        var bytes = try Pictures.jpeg(Self.size)
        bytes.insert(contentsOf: [0xFF, 0xFE, 0, 0, 1, 2, 3], at: 2)
        #expect(try Self.probe(bytes, .jpeg).outcome == .accept)
    }

    @Test func strayBytesBetweenSegmentsCostNoPixel() throws {
        var bytes = try Pictures.jpeg(Self.size)
        let table = try #require(bytes.indices.first { bytes[$0] == 0xFF && bytes[$0 + 1] == 0xDB })
        bytes.insert(contentsOf: [1, 2, 3, 4, 5], at: table)
        let report = try Self.probe(bytes, .jpeg)
        #expect(report.outcome == .accept && report.warnings.isEmpty)
    }

    @Test func aProfileOfWhichAPartIsMissingIsToldOf() throws {
        var bytes = try Pictures.jpeg(Self.size)
        var part = ByteWriter()
        part.u16(0xFFE2, 18)
        part.text("ICC_PROFILE\0")
        part.u8(1, 2, 3, 4)
        bytes.insert(contentsOf: part.bytes, at: 2)
        #expect(try Self.probe(bytes, .jpeg).warnings.map(\.code) == ["profile-ignored"])
    }

    /// Phones put it behind the picture, and say so in the second picture's XMP only.
    @Test(arguments: [true, false]) func aGainMapIsFoundInTheSecondPicture(isThere: Bool) throws {
        let plain = try Pictures.jpeg(Self.size)
        var packet = ByteWriter()
        let xmp = isThere ? "<x apdi:AuxiliaryImageType='urn:com:apple:photo:2020:aux:hdrgainmap'/>" : "<x/>"
        packet.u16(0xFFE1, xmp.utf8.count + 31)
        packet.text("http://ns.adobe.com/xap/1.0/\0" + xmp)
        let second = Array(plain[..<2]) + packet.bytes + Array(plain[2...])
        func file(offset: Int) -> [UInt8] {
            var entries = ByteWriter()
            entries.u32(0, plain.count, 0, 0, 0, second.count, offset, 0)
            let tags = TIFFBuilder(bigEndian: true).directory([.bytes(0xB002, entries.bytes)])
            var segment = ByteWriter()
            segment.u16(0xFFE2, tags.count + 6)
            segment.text("MPF\0")
            return Array(plain[..<2]) + segment.bytes + tags + Array(plain[2...]) + second
        }
        // Counted from the directory's own start, 10 bytes into the file.
        let bytes = file(offset: file(offset: 0).count - second.count - 10)
        #expect(try Self.probe(bytes, .jpeg).facts?.hasGainMap == isThere)
    }

    @Test func aWebPThatIsOneByteShortIsTruncated() {
        var file = ByteWriter(bigEndian: false)
        file.text("RIFF")
        file.u32(4 + 8 + 20)
        file.text("WEBPVP8L")
        file.u32(20)
        file.bytes += [UInt8](repeating: 0, count: 20)
        #expect(WebPStructure(ByteView(file.bytes))?.isCut == false)
        #expect(WebPStructure(ByteView(Array(file.bytes.dropLast())))?.isCut == true)
    }

    @Test func whatFollowsTheEndOfAJPEGDoesNotMatter() throws {
        let bytes = try Pictures.jpeg(Self.size) + [UInt8](repeating: 0x42, count: 5000)
        #expect(try Self.probe(bytes, .jpeg).warnings.isEmpty)
    }

    @Test func losslessAndTwelveBitJPEGsAreUnsupported() throws {
        var lossless = try Pictures.jpeg(Self.size)
        let frame = try #require(lossless.indices.first { lossless[$0] == 0xFF && lossless[$0 + 1] == 0xC0 })
        lossless[frame + 1] = 0xC3
        #expect(try Self.probe(lossless, .jpeg).reason?.code == .unsupportedCodec)
        var deep = try Pictures.jpeg(Self.size)
        deep[frame + 4] = 12
        #expect(try Self.probe(deep, .jpeg).reason?.code == .unsupportedCodec)
    }

    @Test func aJPEGLargerThanTheBoundIsTooLarge() throws {
        let bytes = try Pictures.jpeg(Self.size)
        #expect(try Self.probe(bytes, .jpeg, limits: MediaLimits(pixelCountMax: 383)).reason?.code == .tooLarge)
        #expect(try Self.probe(bytes, .jpeg, limits: MediaLimits(pixelCountMax: 384)).outcome == .accept)
    }

    @Test func aProfileIsPutTogetherFromItsParts() throws {
        var bytes = try Pictures.jpeg(Self.size)
        func part(_ index: Int, _ body: [UInt8]) -> [UInt8] {
            var writer = ByteWriter()
            writer.u16(0xFFE2, body.count + 16)
            writer.text("ICC_PROFILE\0")
            writer.u8(index, 2)
            return writer.bytes + body
        }
        bytes.insert(contentsOf: part(2, [3, 4]) + part(1, [1, 2]), at: 2)
        #expect(JPEGStructure(ByteView(bytes))?.profile?.array == [1, 2, 3, 4])
        // This one is none, which costs a warning and not the picture.
        let (file, sink) = (Scratch(bytes), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .jpeg, file: "x", settings: ThumbSettings(sizes: [20]), limits: MediaLimits(),
            sink: sink)
        #expect(report.outcome == .made && report.warnings.map(\.code) == ["profile-ignored"])
    }
}
