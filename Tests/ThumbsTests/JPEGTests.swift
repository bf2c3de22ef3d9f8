import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// JPEG as it is coded: every sampling, progressive, grey, and what is not luma and chroma.
@Suite struct JPEGTests {
    static let size = PixelSize(width: 160, height: 96)

    /// TurboJPEG's numbers, and how many columns and rows of luma share a sample of chroma.
    static let samplings: [(number: UInt32, across: Int, down: Int, format: String)] = [
        (0, 1, 1, "yuvj444p"), (1, 2, 1, "yuvj422p"), (2, 2, 2, "yuvj420p"), (4, 1, 2, "yuvj440p"),
        (5, 4, 1, "yuvj411p"),
    ]
    /// TurboJPEG's flag.
    static let progressive: Int32 = 16384

    private static func jpeg(_ sampling: (number: UInt32, across: Int, down: Int, format: String), flags: Int32) throws
        -> [UInt8]
    {
        let planes = try Planes(Pictures.raster(size), budget: Pictures.roomy)
        let chroma = PixelSize(width: size.width / sampling.across, height: size.height / sampling.down)
        let components = try planes.components.enumerated().map { index, plane in
            index == 0 ? plane : try PlaneScaler.scale(plane, to: chroma, budget: Pictures.roomy)
        }
        let file = Scratch()
        try StillEncoder.writeJPEG(
            Planes(components: components), quality: 95, sampling: sampling.number, flags: flags, to: file.descriptor,
            limits: MediaLimits())
        return file.bytes
    }

    static func make(_ bytes: [UInt8], _ settings: ThumbSettings) throws -> (report: ThumbReport, sink: RecordingSink) {
        let (file, sink) = (Scratch(bytes), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: .jpeg, file: "x", settings: settings, limits: MediaLimits(), sink: sink)
        return (report, sink)
    }

    @Test(arguments: 0..<5, [0, progressive])
    func everySamplingShowsItsColours(row: Int, flags: Int32) throws {
        let sampling = Self.samplings[row]
        let bytes = try Self.jpeg(sampling, flags: flags)
        let file = Scratch(bytes)
        let facts = try #require(
            PhotoProbe.probe(file.descriptor, format: .jpeg, file: "x", limits: MediaLimits()).facts)
        #expect(facts.pixelFormat == sampling.format)
        // At full size, at half and at a quarter, with the rest to the filter.
        let (report, sink) = try Self.make(bytes, ThumbSettings(sizes: [160, 50, 20]))
        #expect(report.outcome == .made && report.warnings.isEmpty)
        for width in [160, 50, 20] {
            let alone = try Self.make(bytes, ThumbSettings(sizes: [width])).sink
            for written in [sink, alone] {
                let pixels = try Pixels(jpeg: #require(written.files["\(width)"]).bytes)
                for (index, color) in Pictures.quarters.enumerated() {
                    let (x, y) = (
                        width / 4 + (index % 2) * width / 2,
                        pixels.raster.size.height / 4 + (index / 2) * pixels.raster.size.height / 2
                    )
                    // So near to the edge a reduction of all pixels by the same filter swings as far.
                    let tolerance = width == 20 ? 20 : 14
                    #expect(
                        pixels.isNear(color, x: x, y: y, within: tolerance),
                        "\(width), quarter \(index): \(pixels[x, y])")
                }
            }
        }
    }

    /// Components that differ from each other in all ways, chroma finer than luma among them, beside TurboJPEG's whole decode.
    @Test(arguments: CodedBlocks.samplings)
    func everyComponentMayBeSampledInItsOwnWay(sampling: [CodedBlocks.Sampling]) throws {
        let bytes = CodedBlocks.jpeg(sampling, size: PixelSize(width: 128, height: 128))
        let whole = try Pixels(jpeg: bytes)
        // At full size, at half and at a quarter.
        for width in [128, 40, 20] {
            let (report, sink) = try Self.make(bytes, ThumbSettings(sizes: [width]))
            #expect(report.outcome == .made && report.warnings.isEmpty)
            let pixels = try Pixels(jpeg: #require(sink.files["\(width)"]).bytes)
            for (x, y) in [(32, 32), (96, 32), (32, 96), (96, 96)] {
                #expect(
                    pixels.isNear(whole[x, y], x: x * width / 128, y: y * width / 128, within: 20),
                    "\(width), \(x) \(y): \(pixels[x * width / 128, y * width / 128]), not \(whole[x, y])")
            }
        }
    }

    /// 48 x 48 by cjpeg -arithmetic.
    private static let arithmetic = Data(
        base64Encoded:
            "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8"
            + "ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/yQAR"
            + "CAAwADADASIAAhEBAxEB/8wACgAQEAUBEBEF/9oADAMBAAIRAxEAPwD/AGHJtWRLZEYo2JWnTM9mdpO8rXQeSjp1qui1aD9sgT9rFLlktAbS"
            + "628VBQPz4D8hoSIJMR5eFi3chN+MCPCmO2LOUVgm/wBBOPuE1zvpzzZjU8ZFu7EnmdF6tF+zdqKmBpjI8W91abXf9LUCrgq5mG6wB6LEOfEH"
            + "+JgAl1u2ewFiG7Fq/MfvrP/Z"
    ).map { [UInt8]($0) }

    @Test(arguments: [0.95, 0.5, 0.1])
    func arithmeticCodesThatAreCutAreNotTakenForAWholePicture(share: Double) throws {
        let whole = try #require(Self.arithmetic)
        let (report, _) = try Self.make(whole, ThumbSettings(sizes: [48]))
        #expect(report.outcome == .made && report.warnings.isEmpty)
        // Where the codes begin.
        let start = 203
        let cut = Array(whole[..<(start + Int(Double(whole.count - 2 - start) * share))])
        #expect(try Self.make(cut, ThumbSettings(sizes: [48])).report.reason?.code == .truncated)
    }

    /// Blocks that end too early cost those that follow them, and only what is left at the end tells.
    @Test(arguments: [true, false])
    func dataLeftOverAtTheEndIsDamage(isArithmetic: Bool) throws {
        let whole = isArithmetic ? try #require(Self.arithmetic) : try Self.jpeg(Self.samplings[2], flags: 0)
        let damaged: [UInt8] = whole[..<(whole.count - 2)] + [UInt8](repeating: 0x55, count: 40) + [0xFF, 0xD9]
        let (report, _) = try Self.make(damaged, ThumbSettings(sizes: [48]))
        #expect(report.outcome == .made && report.warnings == [DecodedPicture.damaged])
    }

    @Test func aGreyPictureStaysGrey() throws {
        let raster = try Raster(size: Self.size, layout: .grey, depth: 8, budget: Pictures.roomy)
        for index in 0..<raster.pixels.count { raster.pixels[index] = UInt8(index % 160) }
        let file = Scratch()
        try StillEncoder.writeJPEG(
            Planes(raster, budget: Pictures.roomy), quality: 95, to: file.descriptor, limits: MediaLimits())
        let (report, sink) = try Self.make(file.bytes, ThumbSettings(sizes: [80]))
        let written = try #require(sink.files["80"]).bytes
        #expect(JPEGStructure(ByteView(written))?.frame?.sampling.count == 1)
        #expect(
            Set(stride(from: 1, to: 7, by: 2).compactMap { report.previewColor?.dropFirst($0).prefix(2) }).count == 1)
        let pixels = try Pixels(jpeg: written)
        #expect(
            pixels.isNear([20, 20, 20], x: 10, y: 20, within: 3)
                && pixels.isNear([140, 140, 140], x: 70, y: 20, within: 3))
    }

    /// The marker by which Adobe's programs say that three components are RGB.
    @Test func threeComponentsThatAreRGBAreNotTakenForChroma() throws {
        var bytes = try Self.jpeg(Self.samplings[0], flags: 0)
        // In place of JFIF's header, which would make it YCbCr.
        let length = Int(bytes[4]) << 8 | Int(bytes[5])
        bytes.replaceSubrange(
            2..<(4 + length), with: [0xFF, 0xEE, 0, 14] + Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 0])
        let (report, sink) = try Self.make(bytes, ThumbSettings(sizes: [160]))
        #expect(report.outcome == .made)
        // Luma of red, green and blue stand where the red channel is.
        let pixels = try Pixels(jpeg: #require(sink.files["160"]).bytes)
        let luma = Pictures.quarters.map { Double($0[0]) * 0.299 + Double($0[1]) * 0.587 + Double($0[2]) * 0.114 }
        #expect(abs(Double(pixels[40, 24][0]) - luma[0]) < 12 && abs(Double(pixels[120, 24][0]) - luma[1]) < 12)
        #expect(abs(pixels[120, 72][1] - 128) < 12)
    }

    @Test func aThumbnailCanBeWebP() throws {
        let settings = ThumbSettings(sizes: [80], format: .webp)
        let (report, sink) = try Self.make(try Self.jpeg(Self.samplings[2], flags: 0), settings)
        #expect(report.outcome == .made && sink.sealed == ["80 thumbnail image/webp 80x48"])
        let written = try #require(sink.files["80"]).bytes
        #expect(MediaFormat.sniff(Array(written.prefix(MediaFormat.headLength))) == .webp)
        let raster = try WebPFile(ByteView(written), limits: MediaLimits()).decode(longSide: 80, budget: Pictures.roomy)
            .raster
        let place = (36 * 80 + 20) * 3
        for channel in 0..<3 { #expect(abs(Int(raster.pixels[place + channel]) - Pictures.quarters[2][channel]) < 16) }
    }

    @Test func aPictureThatFitsOnlyInPassesNeedsMemoryForThemAll() throws {
        let once = try Self.jpeg(Self.samplings[2], flags: 0)
        let passes = try Self.jpeg(Self.samplings[2], flags: Self.progressive)
        let plain = try JPEGReader(ByteView(once)).coefficientBytes
        let held = try JPEGReader(ByteView(passes)).coefficientBytes
        #expect(plain == 0)
        // Two bytes for each sample of 4:2:0.
        #expect(held >= 160 * 96 * 3)
    }

    /// Of 160 x 96: blocks are square, so that the direction in which chroma has fewer samples decides, and it never gets more than luma's blocks.
    @Test(arguments: [
        (0, 1, 1, 160, 96), (0, 1, 2, 80, 48), (0, 2, 4, 40, 24), (0, 2, 8, 20, 12), (0, 8, 8, 20, 12),
        (1, 1, 2, 80, 96), (1, 2, 4, 40, 48), (2, 1, 2, 80, 48), (2, 2, 4, 40, 24), (2, 1, 4, 40, 24), (2, 8, 8, 10, 6),
        (3, 1, 4, 80, 24), (4, 1, 4, 40, 96),
    ])
    func chromaComesInAsManySamplesAsAreWanted(
        row: Int, denominator: Int, chroma: Int, width: Int, height: Int
    ) throws {
        let bytes = try Self.jpeg(Self.samplings[row], flags: 0)
        let reader = try JPEGReader(ByteView(bytes))
        let components = try reader.start(denominator, chroma: chroma)
        #expect(components.map(\.width) == [160 / denominator, width, width].map(Int32.init))
        #expect(components.map(\.height) == [96 / denominator, height, height].map(Int32.init))
    }

    /// Noise, so that all kinds of codes come; whole, cut and damaged.
    @Test(arguments: [20, 82, 97, 100], [0, 1])
    func theFasterReaderReadsWhatTheLibraryReads(quality: Int, isGrey: Int) throws {
        var random = SeededNumbers(state: UInt64(quality))
        let size = PixelSize(width: 333, height: 211)
        let raster = try Raster(size: size, layout: isGrey == 1 ? .grey : .rgb, depth: 8, budget: Pictures.roomy)
        for index in 0..<raster.pixels.count {
            raster.pixels[index] = index % 7000 < 4000 ? UInt8.random(in: 0...255, using: &random) : 90
        }
        let file = Scratch()
        try StillEncoder.writeJPEG(
            Planes(raster, budget: Pictures.roomy), quality: quality, to: file.descriptor, limits: MediaLimits())
        let whole = file.bytes
        var copies = [whole, Array(whole[..<(whole.count / 2)])]
        for _ in 0..<40 {
            var copy = whole
            // Behind the headers, which end long before.
            let place = Int.random(in: 700..<(copy.count - 2), using: &random)
            copy[place] = [0, 0xFF, UInt8.random(in: 0...255, using: &random)].randomElement(using: &random) ?? 0
            copies.append(copy)
        }
        for copy in copies {
            for denominator in [1, 2, 8] {
                let fast = try Self.samples(copy, denominator, readsHuffman: true)
                let library = try Self.samples(copy, denominator, readsHuffman: false)
                #expect(fast == library)
            }
        }
    }

    private static func samples(_ bytes: [UInt8], _ denominator: Int, readsHuffman: Bool) throws -> [UInt8] {
        let reader = try JPEGReader(ByteView(bytes))
        let components = try reader.start(denominator, chroma: denominator, readsHuffman: readsHuffman)
        #expect(reader.isFaster == (readsHuffman && JPEGReader.canBeFaster))
        let room = 1024
        let store = UnsafeMutablePointer<UInt8>.allocate(capacity: room * 64)
        defer { store.deallocate() }
        var pointers: [[UnsafeMutablePointer<UInt8>?]] = []
        var used = 0
        for component in components {
            pointers.append((0..<Int(component.rows_at_a_time)).map { store + (used + $0) * room })
            used += Int(component.rows_at_a_time)
        }
        var samples: [UInt8] = [reader.isDamaged ? 1 : 0]
        var isMore = true
        while isMore {
            var rows: [UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?] = []
            let lists = pointers.map { list in
                let copy = UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>.allocate(capacity: list.count)
                copy.initialize(from: list, count: list.count)
                return copy
            }
            defer { for list in lists { list.deallocate() } }
            rows = lists.map { $0 }
            isMore = try reader.read(&rows)
            guard isMore else { break }
            for (index, component) in components.enumerated() {
                for row in pointers[index] {
                    samples += UnsafeBufferPointer(start: row, count: Int(component.width))
                }
            }
        }
        return samples + [reader.isDamaged ? 1 : 0]
    }

    private static func segment(_ marker: Int, _ head: String, _ body: [UInt8]) -> [UInt8] {
        var segment = ByteWriter()
        segment.u16(marker, head.utf8.count + body.count + 2)
        segment.text(head)
        return segment.bytes + body
    }

    /// Cameras write no profile then, only the rule of DCF; what is sRGB all the same says 1.
    @Test(arguments: [(0xFFFF, "R03", true), (2, "R98", true), (0xFFFF, "R98", false), (1, "R03", false)])
    func adobeRGBWithoutAProfileIsConverted(space: Int, rule: String, isWide: Bool) throws {
        let exif = TIFFBuilder(bigEndian: false).directory([
            .directory(0x8769, [.short(0xA001, space), .directory(0xA005, [.text(0x0001, rule)])])
        ])
        let pixels = try Pixels(
            jpeg: #require(
                try Self.make(Pictures.jpeg(Self.size, exif: exif), ThumbSettings(sizes: [160])).sink.files["160"]
            ).bytes)
        // Adobe RGB's own primaries by the matrices of its specification, cut off at sRGB's.
        let shown = isWide ? [[255, 26, 25], [0, 201, 0], [26, 26, 226], [240, 240, 240]] : Pictures.quarters
        for (index, color) in shown.enumerated() {
            let (x, y) = (40 + index % 2 * 80, 24 + index / 2 * 48)
            #expect(pixels.isNear(color, x: x, y: y, within: 6), "\(pixels[x, y]), not \(color)")
        }
    }

    @Test func aProfileCountsMoreThanWhatTheCameraSays() throws {
        let exif = TIFFBuilder(bigEndian: false).directory([.directory(0x8769, [.short(0xA001, 2)])])
        var bytes = try Pictures.jpeg(Self.size, exif: exif)
        bytes.insert(
            contentsOf: Self.segment(0xFFE2, "ICC_PROFILE\0", [1, 1] + Pictures.profile(gamma: 2.2)), at: 2)
        let (report, sink) = try Self.make(bytes, ThumbSettings(sizes: [160]))
        #expect(report.warnings.isEmpty)
        let pixels = try Pixels(jpeg: #require(sink.files["160"]).bytes)
        #expect(pixels.isNear(Pictures.quarters[1], x: 120, y: 24, within: 6), "\(pixels[120, 24])")
    }

    /// It is the profile's neutral axis.
    @Test(arguments: [(1.0, 188), (1.8, 146), (2.2, 129)]) func greyMayHaveAProfileOfRGB(gamma: Double, shade: Int)
        throws
    {
        let raster = try Raster(size: Self.size, layout: .grey, depth: 8, budget: Pictures.roomy)
        raster.pixels.initializeMemory(as: UInt8.self, repeating: 128)
        let file = Scratch()
        try StillEncoder.writeJPEG(
            Planes(raster, budget: Pictures.roomy), quality: 95, to: file.descriptor, limits: MediaLimits())
        var bytes = file.bytes
        bytes.insert(
            contentsOf: Self.segment(0xFFE2, "ICC_PROFILE\0", [1, 1] + Pictures.profile(gamma: gamma)), at: 2)
        let (report, sink) = try Self.make(bytes, ThumbSettings(sizes: [160]))
        #expect(report.outcome == .made && report.warnings.isEmpty)
        let pixels = try Pixels(jpeg: #require(sink.files["160"]).bytes)
        #expect(pixels.isNear([shade, shade, shade], x: 80, y: 48, within: 3), "\(pixels[80, 48])")
    }

    @Test func aProfileWhosePrimariesSpanNoColoursIsIgnored() throws {
        var bytes = try Pictures.jpeg(Self.size)
        let profile = Pictures.profile(primaries: [[0, 0, 0], [0, 0.5, 0], [0, 0, 0]], gamma: 1.8)
        bytes.insert(contentsOf: Self.segment(0xFFE2, "ICC_PROFILE\0", [1, 1] + profile), at: 2)
        let (report, sink) = try Self.make(bytes, ThumbSettings(sizes: [160]))
        #expect(report.warnings.map(\.code) == ["profile-ignored"])
        let pixels = try Pixels(jpeg: #require(sink.files["160"]).bytes)
        #expect(pixels.isNear(Pictures.quarters[1], x: 120, y: 24, within: 6), "\(pixels[120, 24])")
    }
}
