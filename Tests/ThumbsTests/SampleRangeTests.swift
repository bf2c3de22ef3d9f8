import Testing
import Vocabulary

@testable import Thumbs

/// Ranges of samples, and paper of HDR.
@Suite struct SampleRangeTests {
    @Test func theLimitedRangeIsStretchedToAll() throws {
        let bytes = try Raster(size: PixelSize(width: 2, height: 1), layout: .rgba, depth: 8, budget: Pictures.roomy)
        bytes.pixels.copyBytes(from: [16, 235, 126, 16, 235, 7, 8, 235])
        bytes.expand(channels: 3..<4, from: .limited(8))
        #expect(Array(bytes.pixels) == [16, 235, 126, 0, 235, 7, 8, 255])
        bytes.expand(channels: 0..<3, from: .limited(8))
        #expect(Array(bytes.pixels) == [0, 255, 128, 0, 255, 0, 0, 255])
        bytes.expand(channels: 0..<4, from: .full)
        #expect(Array(bytes.pixels) == [0, 255, 128, 0, 255, 0, 0, 255])
        let words = try Raster(size: PixelSize(width: 3, height: 1), layout: .grey, depth: 16, budget: Pictures.roomy)
        let samples = words.pixels.bindMemory(to: UInt16.self)
        // 64, 502 and 940 of ten bits.
        for (index, value) in [64, 502, 940].enumerated() { samples[index] = UInt16((value * 65535 + 511) / 1023) }
        words.expand(channels: 0..<1, from: .limited(10))
        #expect(samples[0] <= 40 && abs(Int(samples[1]) - 32768) <= 40 && samples[2] >= 65495)
    }

    private static func png(_ points: [UInt8], colorType: Int, pixel: [UInt8]) -> [UInt8] {
        let row = (0..<16).flatMap { _ in pixel }
        return Pictures.png(
            PixelSize(width: 16, height: 16), depth: 8, colorType: colorType, rows: Array(repeating: row, count: 16),
            before: [("cICP", points)])
    }

    private static func pixel(_ bytes: [UInt8]) throws -> [Int] {
        try Pictures.thumbnail(bytes, .png)[8, 8]
    }

    @Test func aPNGOfTheLimitedRangeIsStretched() throws {
        let pixel = try Self.pixel(Self.png([1, 13, 0, 0], colorType: 2, pixel: [16, 235, 126]))
        #expect(zip(pixel, [0, 255, 128]).allSatisfy { abs($0 - $1) <= 3 }, "\(pixel)")
        // Transparency is not, and paper is white.
        let clear = try Self.pixel(Self.png([1, 13, 0, 0], colorType: 6, pixel: [16, 16, 16, 16]))
        #expect(clear.allSatisfy { abs($0 - 239) <= 2 }, "\(clear)")
    }

    /// Paper of the full signal would be 10000 cd/m², beside which all else is black.
    @Test(arguments: [16, 18]) func transparentHDRLiesOnTheWhiteOfSDR(transfer: UInt8) throws {
        let points: [UInt8] = [9, transfer, 0, 1]
        let clear = try Self.pixel(Self.png(points, colorType: 6, pixel: [0, 0, 0, 0]))
        #expect(clear.allSatisfy { $0 >= 245 }, "\(clear)")
        let paper = CodePoints(primaries: 9, transfer: Int(transfer), matrix: 0).paper
        let white = UInt8((paper * 255).rounded())
        let opaque = try Self.pixel(Self.png(points, colorType: 2, pixel: [white, white, white]))
        #expect(zip(clear, opaque).allSatisfy { abs($0 - $1) <= 3 })
    }

    /// Half the light is 188 of sRGB.
    @Test(arguments: [0, 2]) func greyHasItsCurveLikeColour(colorType: Int) throws {
        let pixel = try Self.pixel(
            Self.png([1, 8, 0, 1], colorType: colorType, pixel: [UInt8](repeating: 128, count: colorType + 1)))
        #expect(pixel.allSatisfy { abs($0 - 188) <= 3 }, "\(pixel)")
    }

    @Test(arguments: [16, 18]) func greyHDRIsToneMappedLikeColour(transfer: UInt8) throws {
        let points: [UInt8] = [9, transfer, 0, 1]
        let grey = try Self.pixel(Self.png(points, colorType: 0, pixel: [110]))
        let color = try Self.pixel(Self.png(points, colorType: 2, pixel: [110, 110, 110]))
        #expect(zip(grey, color).allSatisfy { abs($0 - $1) <= 2 }, "\(grey) \(color)")
    }
}
