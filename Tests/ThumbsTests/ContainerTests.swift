import Testing

@testable import Thumbs

/// HEIF's and Canon's boxes, written here.
@Suite struct ContainerTests {
    private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        var writer = ByteWriter()
        writer.u32(body.count + 8)
        writer.text(type)
        return writer.bytes + body
    }
    private static func full(_ type: String, version: Int = 0, _ body: [UInt8]) -> [UInt8] {
        box(type, [UInt8(version), 0, 0, 0] + body)
    }
    private static func bytes(_ build: (inout ByteWriter) -> Void) -> [UInt8] {
        var writer = ByteWriter()
        build(&writer)
        return writer.bytes
    }

    /// - Parameter transforms: of the one item, in their order.
    static func heif(transforms: [(type: String, value: Int)], length: Int = 10, brand: String = "heic") -> [UInt8] {
        let size = full("ispe", bytes { $0.u32(640, 480) })
        let properties = size + transforms.flatMap { box($0.type, [UInt8($0.value)]) }
        let meta = full(
            "meta",
            full("pitm", bytes { $0.u16(1) })
                + full(
                    "iinf",
                    bytes { $0.u16(1) } + full("infe", version: 2, bytes { $0.u16(1, 0) } + Array("hvc1".utf8) + [0]))
                + full(
                    "iloc",
                    bytes {
                        $0.u16(0x4400, 1, 1, 0, 1)
                        $0.u32(40, length)
                    })
                + box(
                    "iprp",
                    box("ipco", properties)
                        + full(
                            "ipma",
                            bytes {
                                $0.u32(1)
                                $0.u16(1)
                                $0.u8(transforms.count + 1)
                                for index in 0...transforms.count { $0.u8(index + 1) }
                            })))
        return box("ftyp", Array((brand + "\0\0\0\0mif1").utf8)) + meta + box("mdat", [UInt8](repeating: 0, count: 16))
    }

    private static let turns: [(transforms: [(type: String, value: Int)], exif: Int)] = [
        ([], 1), ([("irot", 1)], 8), ([("irot", 2)], 3), ([("irot", 3)], 6), ([("imir", 1)], 2), ([("imir", 0)], 4),
        ([("irot", 1), ("imir", 1)], 7), ([("irot", 3), ("imir", 1)], 5), ([("imir", 1), ("irot", 1)], 5),
    ]

    @Test(arguments: 0..<9)
    func theContainersTurnsAreOneOrientation(row: Int) {
        let (transforms, exif) = Self.turns[row]
        let structure = HEIFStructure(ByteView(Self.heif(transforms: transforms)))
        #expect(structure.turn.rawValue == exif)
        #expect(structure.size == PixelSize(width: 640, height: 480))
        #expect(structure.codedItem?.type == "hvc1")
        #expect(structure.lacksBytes == false)
    }

    /// A grid of 640 x 480, put together from so many references to one tile of 512 x 512.
    private static func grid(tiles: Int) -> [UInt8] {
        let meta = full(
            "meta",
            full("pitm", bytes { $0.u16(1) })
                + full(
                    "iinf",
                    bytes { $0.u16(2) }
                        + [(1, "grid"), (2, "hvc1")].flatMap { id, type in
                            full("infe", version: 2, bytes { $0.u16(id, 0) } + Array(type.utf8) + [0])
                        })
                + full(
                    "iref",
                    box(
                        "dimg",
                        bytes {
                            $0.u16(1, tiles)
                            for _ in 0..<tiles { $0.u16(2) }
                        }))
                + box(
                    "iprp",
                    box(
                        "ipco",
                        full("ispe", bytes { $0.u32(640, 480) }) + full("ispe", bytes { $0.u32(512, 512) }))
                        + full(
                            "ipma",
                            bytes {
                                $0.u32(2)
                                $0.u8(0, 1, 1, 1, 0, 2, 1, 2)
                            })))
        return box("ftyp", Array("heic\0\0\0\0mif1".utf8)) + meta
    }

    @Test(arguments: [(1, 1), (2, 2), (300, 4)]) func tilesAreDecodedBesideTheWhole(tiles: Int, atATime: Int) {
        let area = HEIFStructure(ByteView(Self.grid(tiles: tiles))).decodedArea(atATime: 4)
        #expect(area == 640 * 480 + atATime * 512 * 512)
    }

    @Test func itemsBehindTheEndOfTheFileAreMissed() {
        let whole = Self.heif(transforms: [])
        #expect(HEIFStructure(ByteView(Self.heif(transforms: [], length: 5000))).lacksBytes)
        #expect(HEIFStructure(ByteView(Array(whole.dropLast(4)))).isCut)
    }

    @Test(arguments: [UInt64(4), 5, 6])
    func boxesWithWrongBytesNeverTrap(seed: UInt64) {
        var numbers = SeededNumbers(state: seed)
        let whole = Self.heif(transforms: [("irot", 1)])
        for length in 0..<whole.count { _ = HEIFStructure(ByteView(Array(whole[..<length]))).turn }
        for _ in 0..<2000 {
            var file = whole
            for _ in 0..<Int.random(in: 1...6, using: &numbers) {
                file[Int.random(in: 0..<file.count, using: &numbers)] =
                    [0, 1, 0xFF, 0x7F].randomElement(using: &numbers) ?? 0
            }
            let structure = HEIFStructure(ByteView(file))
            _ = (structure.turn, structure.lacksBytes, structure.codedItem?.type, CR3Structure(ByteView(file)).size)
        }
    }

    @Test func aBoxThatIsLongerThanTheFileIsCutAndEndsTheRow() {
        let boxes = ISOBox.boxes(in: ByteView(Self.box("free", [1, 2]) + [0, 0, 1, 0] + Array("mdat".utf8) + [9]))
        #expect(boxes.map(\.type) == ["free", "mdat"])
        #expect(boxes.map(\.isWhole) == [true, false])
        #expect(boxes.last?.body.array == [9])
    }
}

@Suite struct ToneMapTests {
    @Test(arguments: [Float(0.01), 1, 100, 203, 1000, 10000])
    func thePerceptualQuantizerIsItsOwnInverse(nits: Float) {
        #expect(abs(PQ.decode(PQ.encode(nits)) - nits) <= nits * 0.01)
    }

    @Test func brightnessIsRolledOffWithoutAStepAndThePeakBecomesWhite() {
        let rollOff = RollOff(peakNits: 1000)
        var last: Float = 0
        for nits in stride(from: Float(1), through: 1000, by: 1) {
            let shown = nits * rollOff.scale(nits)
            #expect(shown >= last - 0.01 && shown <= ToneMap.whiteNits + 0.5)
            last = shown
        }
        #expect(abs(last - ToneMap.whiteNits) < 1)
        #expect(abs(rollOff.scale(20) - 1) < 0.01)
    }

    @Test func aPictureThatIsNoBrighterThanSDRKeepsItsBrightness() {
        #expect(abs(RollOff(peakNits: 50).scale(40) - 1) < 0.01)
    }

    /// H.273's numbers against what FFmpeg prints.
    @Test func codePointsHaveFFmpegsNames() {
        let points = CodePoints(primaries: 9, transfer: 16, matrix: 9)
        #expect([points.primariesName, points.transferName, points.matrixName] == ["bt2020", "smpte2084", "bt2020nc"])
        #expect(points.hdr == .pq && CodePoints(primaries: 9, transfer: 18).hdr == .hlg)
        let (plain, wide) = (CodePoints(primaries: 1, transfer: 1), CodePoints(primaries: 12, transfer: 13))
        #expect(plain.isPlain(isGrey: false) && !wide.isPlain(isGrey: false) && wide.isPlain(isGrey: true))
    }
}
