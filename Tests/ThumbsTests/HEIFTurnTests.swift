import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// The container's turns and mirrors, seen in the pictures that come out.
@Suite struct HEIFTurnTests {
    static let size = PixelSize(width: 96, height: 64)

    /// The four quarters in AV1, its configuration and its bytes, taken out of the container that FFmpeg writes.
    private static let coded: (configuration: [UInt8], bytes: [UInt8])? = try? {
        let folder = NSTemporaryDirectory() + "/rushes-avif-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let raster = try Pictures.raster(size)
        try Data(raster.pixels).write(to: URL(fileURLWithPath: folder + "/in.rgb"))
        let avif = try written(
            by: ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "\(size.width)x\(size.height)"]
                + ["-i", folder + "/in.rgb", "-vf", "scale=out_color_matrix=bt601:out_range=pc,format=yuv444p"]
                + [
                    "-color_range", "pc", "-colorspace", "smpte170m", "-color_primaries", "bt709", "-color_trc",
                    "iec61966-2-1",
                ]
                + ["-frames:v", "1", "-c:v", "libaom-av1", "-crf", "10", "-cpu-used", "8"])
        let file = ByteView(avif)
        let structure = HEIFStructure(file)
        let item = try #require(structure.codedItem)
        let extent = try #require(item.extents.first)
        let configuration = try #require(item.properties.first("av1C")).body.array
        return (configuration, try #require(file.slice(at: extent.offset, count: extent.length)).array)
    }()

    /// The AVIF that FFmpeg makes of this.
    private static func written(by arguments: [String]) throws -> [UInt8] {
        let path = NSTemporaryDirectory() + "/rushes-avif-" + UUID().uuidString + ".avif"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-v", "error"] + arguments + [path]
        process.standardInput = FileHandle.nullDevice
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
    }

    /// The middle 48 x 32 of the picture as it is stored.
    private static let aperture: [UInt8] = [48, 1, 32, 1, 0, 1, 0, 1].flatMap { [0, 0, 0, $0] }

    /// - Parameters:
    ///   - turnsFirst: the transforms are listed before the size.
    ///   - asIdentity: they belong to an item that is the coded one, turned.
    ///   - hasTwin: a gain map belongs to the picture and to a tone-mapped item.
    private static func file(
        _ transforms: [(type: String, value: Int)], turnsFirst: Bool = false, asIdentity: Bool = false,
        hasTwin: Bool = false
    ) throws -> [UInt8] {
        let coded = try #require(coded)
        func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
            var writer = ByteWriter()
            writer.u32(body.count + 8)
            writer.text(type)
            return writer.bytes + body
        }
        func full(_ type: String, version: Int = 0, _ build: (inout ByteWriter) -> Void) -> [UInt8] {
            var writer = ByteWriter()
            writer.u8(version, 0, 0, 0)
            build(&writer)
            return box(type, writer.bytes)
        }
        // Full-range BT.601 in sRGB's primaries and curve.
        let color = box("colr", Array("nclx".utf8) + [0, 1, 0, 13, 0, 6, 0x80])
        let properties =
            full("ispe") { $0.u32(size.width, size.height) } + box("av1C", coded.configuration)
            + full("pixi") { $0.u8(3, 8, 8, 8) } + color
            + transforms.flatMap { box($0.type, $0.type == "clap" ? aperture : [UInt8($0.value)]) }
            + full("auxC") { $0.text("urn:com:apple:photo:2020:aux:hdrgainmap\0") }
        let turns = transforms.indices.map { 5 + $0 }
        let listed = asIdentity ? [1, 2, 3, 4] : turnsFirst ? turns + [1, 2, 3, 4] : [1, 2, 3, 4] + turns
        // What must be understood has the upper bit.
        func links(_ item: Int, _ list: [Int]) -> [UInt8] {
            [0, UInt8(item), UInt8(list.count)] + list.map { UInt8([1, 3, 4].contains($0) ? $0 : $0 | 0x80) }
        }
        func meta(_ offset: Int) -> [UInt8] {
            full("meta") { meta in
                meta.bytes += full("hdlr") {
                    $0.u32(0); $0.text("pict"); $0.u32(0, 0, 0); $0.u8(0)
                }
                meta.bytes += full("pitm") { $0.u16(asIdentity ? 2 : 1) }
                meta.bytes += full("iinf") { list in
                    let more = asIdentity ? [(2, "iden")] : hasTwin ? [(2, "av01"), (3, "tmap")] : []
                    list.u16(1 + more.count)
                    for (id, type) in [(1, "av01")] + more {
                        list.bytes += full("infe", version: 2) {
                            $0.u16(id, 0); $0.text(type); $0.u8(0)
                        }
                    }
                }
                meta.bytes += full("iloc") {
                    $0.u16(0x4400, hasTwin ? 3 : 1)
                    for item in hasTwin ? [1, 2, 3] : [1] {
                        $0.u16(item, 0, 1); $0.u32(offset, coded.bytes.count)
                    }
                }
                if asIdentity { meta.bytes += full("iref") { $0.bytes += box("dimg", [0, 2, 0, 1, 0, 1]) } }
                if hasTwin { meta.bytes += full("iref") { $0.bytes += box("auxl", [0, 2, 0, 2, 0, 1, 0, 3]) } }
                let associations = full("ipma") { list in
                    list.u32(asIdentity || hasTwin ? 2 : 1)
                    list.bytes += links(1, listed) + (asIdentity ? links(2, turns) : [])
                    if hasTwin { list.bytes += links(2, [1, 2, 3, 4, 5 + transforms.count]) }
                }
                meta.bytes += box("iprp", box("ipco", properties) + associations)
            }
        }
        let head = box("ftyp", Array("avif\0\0\0\0avifmif1miaf".utf8))
        let start = head.count + meta(0).count + 8
        return head + meta(start) + box("mdat", coded.bytes)
    }

    /// `irot` turns against the clock by so many quarters, then `imir` mirrors: axis 0 top to bottom, axis 1 left to right.
    private static func source(x: Int, y: Int, of size: PixelSize, quarters: Int, axis: Int?) -> (x: Int, y: Int) {
        var (width, height) = (size.width, size.height)
        if quarters % 2 == 1 { swap(&width, &height) }
        var (x, y) = (axis == 1 ? width - 1 - x : x, axis == 0 ? height - 1 - y : y)
        for _ in 0..<quarters {
            // Where a pixel was before it was turned a quarter against the clock.
            (x, y) = (height - 1 - y, x)
            swap(&width, &height)
        }
        return (x, y)
    }

    @Test(arguments: 0..<4, [nil, 0, 1])
    func everyTurnAndMirrorShowsThePictureThatItMeans(quarters: Int, axis: Int?) throws {
        try Self.expectTurned(quarters: quarters, axis: axis) { try Self.file($0) }
    }

    /// libheif counts the sides by the order of the list, and shows the picture as it is meant all the same.
    @Test(arguments: 0..<4, [false, true]) func whereTheSizeIsListedDoesNotMatter(quarters: Int, isCropped: Bool) throws
    {
        try Self.expectTurned(quarters: quarters, axis: 1, isCropped: isCropped) { try Self.file($0, turnsFirst: true) }
    }

    /// An item that is another one, cropped and turned: libheif reads no file that has one.
    @Test(arguments: 0..<4, [false, true]) func anIdentityHasThePictureOfItsSource(quarters: Int, isCropped: Bool)
        throws
    {
        try Self.expectTurned(quarters: quarters, axis: 0, isCropped: isCropped) { try Self.file($0, asIdentity: true) }
    }

    /// As phones write it: the gain map belongs to the picture and to its tone-mapped twin.
    @Test func aGainMapOfTwoItemsIsNoReasonToRefuseThePicture() throws {
        try Self.expectTurned(quarters: 1, axis: nil) { try Self.file($0, hasTwin: true) }
        let file = Scratch(try Self.file([], hasTwin: true))
        #expect(try HEIFFile(PictureInput(file.descriptor), format: .avif, limits: MediaLimits()).header.hasGainMap)
    }

    /// What libheif passes over, or calls damage, is neither shown in wrong colours nor damaged.
    @Test(
        arguments: [("nclx", 9, [14]), ("nclx", 9, [16]), ("infe", 12, Array("unci".utf8))] as [(String, Int, [UInt8])])
    func whatLibheifDoesNotKnowIsUnsupported(box: String, offset: Int, bytes: [UInt8]) throws {
        var file = try Self.file([])
        let place = try #require(file.indices.first { file[$0...].starts(with: box.utf8) })
        file.replaceSubrange((place + offset)..<(place + offset + bytes.count), with: bytes)
        let scratch = Scratch(file)
        let report = try PhotoProbe.probe(scratch.descriptor, format: .avif, file: "x", limits: MediaLimits())
        #expect(report.reason?.code == .unsupportedCodec)
    }

    @Test(arguments: [UInt64(7), 8], [false, true]) func tablesWithWrongBytesNeverTrap(seed: UInt64, hasTwin: Bool)
        throws
    {
        var numbers = SeededNumbers(state: seed)
        let whole = try Self.file([(type: "irot", value: 1)], asIdentity: !hasTwin, hasTwin: hasTwin)
        for _ in 0..<2000 {
            var file = whole
            for _ in 0..<Int.random(in: 1...6, using: &numbers) {
                file[Int.random(in: 0..<400, using: &numbers)] =
                    [0, 1, 0xFF, 0x7F].randomElement(using: &numbers) ?? 0
            }
            let view = ByteView(file)
            if let resolved = HEIFItemTable.resolved(view, HEIFStructure(view)) {
                #expect(resolved.count < 2 * whole.count)
            }
        }
    }

    private static func expectTurned(
        quarters: Int, axis: Int?, isCropped: Bool = false, _ make: ([(type: String, value: Int)]) throws -> [UInt8]
    ) throws {
        let size = isCropped ? PixelSize(width: 48, height: 32) : Self.size
        let crop = isCropped ? [(type: "clap", value: 0)] : []
        let turns = quarters == 0 ? [] : [(type: "irot", value: quarters)]
        let bytes = try make(crop + turns + (axis.map { [(type: "imir", value: $0)] } ?? []))
        let pixels = try Pictures.thumbnail(bytes, .avif, size: 96)
        let upright = quarters % 2 == 0 ? size : PixelSize(width: size.height, height: size.width)
        #expect(pixels.raster.size == upright)
        for (x, y) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
            let at = (x * upright.width / 4, y * upright.height / 4)
            let from = source(x: at.0, y: at.1, of: size, quarters: quarters, axis: axis)
            let expected = Pictures.color(x: from.x, y: from.y, of: size)
            #expect(
                pixels.isNear(expected, x: at.0, y: at.1, within: 16),
                "\(at): \(pixels[at.0, at.1]), expected \(expected)")
        }
    }

    /// A way through RGB would cost a second decode.
    @Test func lumaAndChromaComeAsTheyAreCoded() throws {
        let file = Scratch(try Self.file([]))
        let picture = try HEIFFile(PictureInput(file.descriptor), format: .avif, limits: MediaLimits())
        let planes = try #require(try picture.decodePlanes(Self.size, budget: Pictures.roomy)).planes
        #expect(planes.components.count == 3 && planes.size == Self.size)
    }

    /// Longer than libheif takes by itself, of few pixels.
    @Test func aPanoramaIsBoundedByItsPixelsAlone() throws {
        let avif = try Self.written(
            by: ["-f", "lavfi", "-i", "color=red:size=33000x16", "-frames:v", "1", "-pix_fmt", "yuv420p"]
                + ["-c:v", "libaom-av1", "-crf", "40", "-cpu-used", "8"])
        let (file, sink) = (Scratch(avif), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .avif, file: "x", settings: ThumbSettings(sizes: [512]), limits: MediaLimits(),
            sink: sink)
        #expect(report.outcome == .made, "\(String(describing: report.reason))")
        let small = MediaLimits(pixelCountMax: 33000 * 15)
        let refused = try Thumb.make(
            file.descriptor, format: .avif, file: "x", settings: ThumbSettings(sizes: [512]), limits: small, sink: sink)
        #expect(refused.reason?.code == .tooLarge)
    }

    /// The least memory that lets a picture be decoded.
    private static func leastBytes(_ bytes: [UInt8]) throws -> Int {
        let file = Scratch(bytes)
        let picture = try HEIFFile(PictureInput(file.descriptor), format: .avif, limits: MediaLimits())
        var (low, high) = (0, 1 << 20)
        while low + 1 < high {
            let middle = (low + high) / 2
            do throws(Failure) {
                _ = try picture.decode(longSide: 96, budget: MemoryBudget(bytes: middle))
                high = middle
            } catch {
                #expect(error.code == .overBudget)
                low = middle
            }
        }
        return high
    }

    /// What is cut away is decoded first, and the copy of a file with identities is there all the time.
    @Test func allThatIsDecodedIsAdmitted() throws {
        let whole = try Self.leastBytes(try Self.file([]))
        let cropped = try Self.leastBytes(try Self.file([(type: "clap", value: 0)]))
        // AV1 in full chroma takes 13 bytes a pixel; of a smaller picture only the margin is less.
        #expect(cropped >= 13 * Self.size.width * Self.size.height && cropped <= whole)
        let identity = try Self.file([(type: "clap", value: 0)], asIdentity: true)
        let view = ByteView(identity)
        let copy = try #require(HEIFItemTable.resolved(view, HEIFStructure(view)))
        #expect(try Self.leastBytes(identity) == cropped + copy.count)
    }
}
