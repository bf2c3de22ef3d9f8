import Testing
import Vocabulary

@testable import Thumbs

@Suite struct EXIFTests {
    private static func full(bigEndian: Bool) -> [UInt8] {
        TIFFBuilder(bigEndian: bigEndian).directory([
            .text(0x010F, "NIKON CORPORATION"), .text(0x0110, "NIKON D800E"), .short(0x0112, 6),
            .text(0x0132, "2020:01:01 00:00:00"),
            .directory(
                0x8769,
                [
                    .text(0x9003, "2023:10:31 11:44:43"), .text(0x9011, "+01:00"), .text(0x9291, "037"),
                    .text(0x9004, "2023:10:31 11:44:44"),
                ]),
            .directory(
                0x8825,
                [
                    .text(0x0001, "S"), .rational(0x0002, (33, 1), (27, 1), (12492, 1000)), .text(0x0003, "E"),
                    .rational(0x0004, (25, 1), (45, 1), (0, 1)), .text(0x001D, "2023:10:31"),
                    .rational(0x0007, (10, 1), (44, 1), (41, 1)),
                ]),
        ])
    }

    @Test(arguments: [
        ("2023:02:31 10:00:00", false), ("2023:02:29 10:00:00", false), ("2024:02:29 10:00:00", true),
        ("1900:02:29 10:00:00", false), ("2000:02:29 10:00:00", true), ("2023:04:31 10:00:00", false),
        ("2023:12:31 10:00:00", true),
    ])
    func aDayThatNoCalendarHasIsNoTime(stamp: String, isThere: Bool) {
        #expect((CaptureTime(exif: stamp, source: "x") != nil) == isThere)
    }

    @Test(arguments: [false, true])
    func everyFieldIsReadInBothByteOrders(bigEndian: Bool) throws {
        let metadata = try #require(EXIF.read(ByteView(Self.full(bigEndian: bigEndian))))
        #expect(metadata.orientation == .turned90)
        #expect(metadata.taken?.text == "2023-10-31T11:44:43.037+01:00")
        #expect(metadata.taken?.source == "DateTimeOriginal")
        #expect(metadata.camera == "NIKON D800E")
        #expect(abs((metadata.position?.latitude ?? 0) + 33.45347) < 1e-6)
        #expect(abs((metadata.position?.longitude ?? 0) - 25.75) < 1e-9)
    }

    @Test func directoriesInBlocksOfTheirOwnKeepTheirPrecedence() {
        let builder = TIFFBuilder(bigEndian: false)
        let metadata = EXIF.read(
            main: ByteView(builder.directory([.text(0x0132, "2020:01:01 00:00:00"), .short(0x0112, 8)])),
            photo: ByteView(builder.directory([.text(0x9003, "2021:05:12 12:21:21"), .text(0x9011, "+02:00")])),
            place: nil)
        #expect(metadata.taken?.text == "2021-05-12T12:21:21+02:00")
        #expect(metadata.orientation == .turned270)
    }

    /// An editor changes it with each save, but not what XMP kept of the shutter.
    @Test func whenTheFileWasWrittenIsTheLastResort() {
        let exif = ByteView(TIFFBuilder(bigEndian: false).directory([.text(0x0132, "2020:01:01 00:00:00")]))
        let xmp = ByteView(Array("<x exif:DateTimeOriginal='1999-07-08T10:11:12'/>".utf8))
        #expect(PhotoMetadata(exif: [exif], xmp: xmp).taken?.text == "1999-07-08T10:11:12")
        let alone = PhotoMetadata(exif: [exif], xmp: nil).taken
        #expect(alone?.text == "2020-01-01T00:00:00" && alone?.source == "DateTime")
    }

    @Test func aBlockThatCannotBeReadHidesNone() {
        let good = TIFFBuilder(bigEndian: false).directory([.short(0x0112, 6)])
        let empty = TIFFBuilder(bigEndian: true).directory([.text(0x0110, "X100")])
        for first in [[], [0x4D, 0x4D], Array(good.prefix(5)), empty] {
            let metadata = PhotoMetadata(exif: [first, good].map { ByteView($0) }, xmp: nil)
            #expect(metadata.orientation == .turned90)
        }
        // In a JPEG they stand in segments of their own.
        let bytes = try? Pictures.jpeg(PixelSize(width: 24, height: 16), exif: good)
        var segment = ByteWriter()
        segment.u16(0xFFE1, 8)
        segment.text("Exif\0\0")
        let file = bytes.map { Array($0.prefix(2)) + segment.bytes + Array($0.dropFirst(2)) } ?? []
        #expect(JPEGStructure(ByteView(file))?.exif.count == 2)
    }

    private static let coordinates: [(latitude: String, longitude: String, degrees: [Double]?)] = [
        ("48,30.0N", "11,15.6E", [48.5, 11.26]), ("33,27,0S", "151,12,36w", [-33.45, -151.21]),
        ("48,30.0", "11,15E", nil), ("91,0N", "11,0E", nil), ("48N", "11E", nil), ("48,-3N", "11,0E", nil),
        ("48,30N", "11,0N", nil), ("48,nanN", "11,0E", nil), ("48,,0N", "11,0E", nil),
    ]

    @Test(arguments: 0..<9) func xmpTellsThePlace(row: Int) {
        let (latitude, longitude, degrees) = Self.coordinates[row]
        let packet = "<rdf exif:GPSLatitude=\"\(latitude)\"><exif:GPSLongitude>\(longitude)</exif:GPSLongitude></rdf>"
        let position = XMP.read(ByteView(Array(packet.utf8))).position
        guard let degrees else {
            #expect(position == nil)
            return
        }
        #expect(abs((position?.latitude ?? 0) - degrees[0]) < 1e-9)
        #expect(abs((position?.longitude ?? 0) - degrees[1]) < 1e-9)
    }

    @Test func aBlockMayStartWithTheWordExif() {
        #expect(EXIF.read(ByteView(Array("Exif\0\0".utf8) + Self.full(bigEndian: true)))?.orientation == .turned90)
    }

    @Test func withoutACameraClockTheSatellitesTellTheTime() {
        let block = TIFFBuilder(bigEndian: true).directory([
            .text(0x0132, "2020:01:01 00:00:00"),
            .directory(0x8825, [.text(0x001D, "2023:11:15"), .rational(0x0007, (12, 1), (30, 1), (1234, 100))]),
        ])
        let taken = EXIF.read(ByteView(block))?.taken
        #expect(taken?.text == "2023-11-15T12:30:12.340Z")
        #expect(taken?.source == "GPSDateTime")
    }

    private static let places: [(why: String, latitude: [(Int, Int)], longitude: [(Int, Int)], letter: String)] = [
        ("0/0", [(0, 1), (0, 1), (0, 1)], [(0, 1), (0, 1), (0, 1)], "N"),
        ("no denominator", [(48, 0), (0, 0), (0, 0)], [(11, 1), (0, 1), (0, 1)], "N"),
        ("beyond the pole", [(91, 1), (0, 1), (0, 1)], [(11, 1), (0, 1), (0, 1)], "N"),
        ("no half of the Earth", [(48, 1), (0, 1), (0, 1)], [(11, 1), (0, 1), (0, 1)], " "),
    ]

    @Test(arguments: places)
    func aPlaceThatIsNoneIsUnknown(why: String, latitude: [(Int, Int)], longitude: [(Int, Int)], letter: String) {
        func entry(_ tag: Int, _ values: [(Int, Int)]) -> TIFFBuilder.Entry {
            .rational(tag, values[0], values[1], values[2])
        }
        let block = TIFFBuilder(bigEndian: false).directory([
            .directory(
                0x8825, [.text(0x0001, letter), entry(0x0002, latitude), .text(0x0003, "E"), entry(0x0004, longitude)])
        ])
        #expect(EXIF.read(ByteView(block))?.position == nil, "\(why)")
    }

    @Test func aDirectoryThatPointsToItselfIsReadOnce() {
        var block = TIFFBuilder(bigEndian: false).directory([.short(0x0112, 3)])
        // The link to the next directory: the last four bytes.
        block.replaceSubrange((block.count - 4)..., with: [8, 0, 0, 0])
        #expect(TIFFStructure(ByteView(block))?.directories().count == 1)
    }

    @Test func aCutBlockNeverTraps() {
        let whole = Self.full(bigEndian: true)
        for length in 0..<whole.count { _ = EXIF.read(ByteView(Array(whole[..<length]))) }
    }

    @Test(arguments: [UInt64(1), 2, 3])
    func aBlockWithWrongBytesNeverTraps(seed: UInt64) {
        var numbers = SeededNumbers(state: seed)
        let whole = Self.full(bigEndian: seed % 2 == 0)
        for _ in 0..<2000 {
            var block = whole
            for _ in 0..<Int.random(in: 1...8, using: &numbers) {
                let value = [0, 0xFF, 0x7F, 0x80, UInt8.random(in: 0...255, using: &numbers)].randomElement(
                    using: &numbers)
                block[Int.random(in: 0..<block.count, using: &numbers)] = value ?? 0
            }
            _ = EXIF.read(ByteView(block))
        }
    }

    private static let stamps: [(stamp: String, offset: String?, fraction: String?, text: String?)] = [
        ("2023:10:31 11:44:43", nil, nil, "2023-10-31T11:44:43"),
        ("2023:10:31 11:44:43", "-08:00", "5", "2023-10-31T11:44:43.5-08:00"),
        ("2023-10-31 11:44:43", "Z", nil, "2023-10-31T11:44:43Z"),
        ("2023:10:31 11:44:43", "   :  ", "  ", "2023-10-31T11:44:43"),
        ("2023:10:31 11:44:43", "+1:00", nil, "2023-10-31T11:44:43"),
        ("0000:00:00 00:00:00", nil, nil, nil), ("    :  :     :  :  ", nil, nil, nil),
        ("2023:13:31 11:44:43", nil, nil, nil),
        ("2023:10:31", nil, nil, nil), ("", nil, nil, nil),
    ]

    @Test(arguments: stamps)
    func aCaptureTimeIsReadOrLeftOut(stamp: String, offset: String?, fraction: String?, text: String?) {
        #expect(CaptureTime(exif: stamp, offset: offset, fraction: fraction, source: "s")?.text == text)
    }

    private static let clocks: [(seconds: UInt64, text: String?)] = [
        (UInt64(0), nil), (3_777_012_953, "2023-09-08T10:15:53Z"), (2_082_844_801, "1970-01-01T00:00:01Z"),
        (UInt64.max, nil), (3_791_836_799, "2024-02-26T23:59:59Z"),
    ]

    @Test(arguments: clocks)
    func theClockOfISOMediaStartsIn1904(seconds: UInt64, text: String?) {
        #expect(CaptureTime(secondsSince1904: seconds, source: "mvhd")?.text == text)
    }

    private static let cameras: [(make: String?, model: String?, camera: String?)] = [
        ("Canon", "Canon EOS R5", "Canon EOS R5"), ("NIKON CORPORATION", "NIKON D800E", "NIKON D800E"),
        ("Apple", "iPhone 15 Pro", "Apple iPhone 15 Pro"), (nil, "X100", "X100"), ("DJI", nil, "DJI"), (nil, nil, nil),
    ]

    @Test(arguments: cameras)
    func makeAndModelAreSaidOnce(make: String?, model: String?, camera: String?) {
        #expect(PhotoMetadata.camera(make: make, model: model) == camera)
    }

    @Test func xmpIsReadFromAttributesAndElements() {
        let attribute = "<rdf:Description exif:DateTimeOriginal=\"2023-12-05T14:39:21.5+01:00\" tiff:Model='X'/>"
        #expect(XMP.read(ByteView(Array(attribute.utf8))).taken?.text == "2023-12-05T14:39:21.5+01:00")
        #expect(XMP.read(ByteView(Array(attribute.utf8))).camera == "X")
        let element = "<xmp:CreateDate>2021-01-02T03:04:05Z</xmp:CreateDate>"
        #expect(XMP.read(ByteView(Array(element.utf8))).taken?.text == "2021-01-02T03:04:05Z")
        #expect(XMP.read(ByteView(Array("<xmp:CreateDate>2021-01-02</xmp:CreateDate>".utf8))).taken == nil)
        let first = "xap:CreateDate='2010-04-21T16:50:46-05:00'"
        #expect(XMP.read(ByteView(Array(first.utf8))).taken?.text == "2010-04-21T16:50:46-05:00")
    }

    private static func iptc(_ records: [(number: UInt8, text: String)]) -> [UInt8] {
        records.flatMap { [0x1C, 2, $0.number, 0, UInt8($0.text.utf8.count)] + Array($0.text.utf8) }
    }

    private static let records: [(records: [(UInt8, String)], text: String?)] = [
        ([(5, "Title"), (55, "20220110"), (60, "151544-0400")], "2022-01-10T15:15:44-04:00"),
        ([(55, "20220110"), (60, "151544")], "2022-01-10T15:15:44"),
        // A day alone is no time, and a time alone no day.
        ([(55, "20220110")], nil), ([(60, "151544+0000")], nil),
        ([(55, "20220110"), (62, "20210203"), (63, "040506+0100")], "2021-02-03T04:05:06+01:00"),
        ([(55, "2022011"), (60, "151544")], nil), ([(55, "2022é110"), (60, "151544")], nil),
        ([(55, "20221310"), (60, "151544")], nil), ([], nil),
    ]

    @Test(arguments: 0..<9) func recordsOfIPTCTellTheTime(row: Int) throws {
        let (records, text) = Self.records[row]
        let block = Self.iptc(records)
        #expect(IPTC.read(ByteView(block)).taken?.text == text)
        for length in 0..<block.count { _ = IPTC.read(ByteView(Array(block[..<length]))) }
    }

    /// In a JPEG and in Photoshop's own files among other resources; behind what EXIF and XMP say, before the satellites.
    @Test func whatTheShutterIsKnownFromCountsInOrder() throws {
        var resources = ByteWriter()
        for (id, body) in [(1005, [1, 2, 3]), (1028, Self.iptc([(55, "20220110"), (60, "151544-0400")]))] {
            resources.text("8BIM")
            resources.u16(id, 0)
            resources.u32(body.count)
            resources.bytes += body + [UInt8](repeating: 0, count: body.count & 1)
        }
        let place: TIFFBuilder.Entry = .directory(
            0x8825, [.text(0x001D, "2023:11:15"), .rational(0x0007, (12, 1), (30, 1), (0, 1))])
        func taken(_ exif: [TIFFBuilder.Entry], xmp: String = "") throws -> CaptureTime? {
            var segments = ByteWriter()
            segments.u16(0xFFED, resources.bytes.count + 16)
            segments.text("Photoshop 3.0\0")
            segments.bytes += resources.bytes
            segments.u16(0xFFE1, xmp.utf8.count + 31)
            segments.text("http://ns.adobe.com/xap/1.0/\0" + xmp)
            let block = TIFFBuilder(bigEndian: false).directory(exif)
            var bytes = try Pictures.jpeg(PixelSize(width: 24, height: 16), exif: block)
            bytes.insert(contentsOf: segments.bytes, at: 2)
            return try JPEGFile(ByteView(bytes), limits: MediaLimits()).header.metadata.taken
        }
        #expect(try taken([place])?.text == "2022-01-10T15:15:44-04:00")
        #expect(try taken([place])?.source == "IPTC:DateCreated")
        #expect(
            try taken([place], xmp: "<xmp:CreateDate>2021-01-02T03:04:05</xmp:CreateDate>")?.source == "xmp:CreateDate")
        let shutter: TIFFBuilder.Entry = .directory(0x8769, [.text(0x9003, "2020:01:01 00:00:00")])
        #expect(try taken([place, shutter])?.source == "DateTimeOriginal")
    }
}
