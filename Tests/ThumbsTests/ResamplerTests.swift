import Testing

@testable import Thumbs

@Suite struct ResamplerTests {
    private static let reductions: [(width: Int, height: Int, toWidth: Int, toHeight: Int)] = [
        (64, 48, 63, 47), (1000, 700, 100, 70), (999, 701, 100, 70), (40, 3000, 4, 300), (3000, 5, 300, 1),
        (8, 8, 1, 1), (1400, 700, 2, 1),
    ]

    @Test(arguments: reductions)
    func anEvenPictureStaysEven(width: Int, height: Int, toWidth: Int, toHeight: Int) throws {
        for depth in [8, 16] {
            let source = try Raster(
                size: PixelSize(width: width, height: height), layout: .rgb, depth: depth, budget: Pictures.roomy)
            for index in 0..<source.pixels.count { source.pixels[index] = 0x9C }
            let target = PixelSize(width: toWidth, height: toHeight)
            let result = try Resampler.run(source, to: target, budget: Pictures.roomy)
            #expect(result.size == target)
            #expect(result.pixels.allSatisfy { $0 == 0x9C })
        }
    }

    /// Where a step of one pixel to the side would show as a shift of brightness.
    @Test(arguments: [(800, 100), (801, 100), (799, 100), (400, 150)])
    func aRampKeepsItsPlace(width: Int, toWidth: Int) throws {
        let source = try Raster(
            size: PixelSize(width: width, height: 8), layout: .grey, depth: 16, budget: Pictures.roomy)
        let samples = source.pixels.bindMemory(to: UInt16.self)
        for index in 0..<samples.count { samples[index] = UInt16(Double(index % width) + 0.5) * 60 }
        let result = try Resampler.run(source, to: PixelSize(width: toWidth, height: 2), budget: Pictures.roomy)
        let output = result.pixels.bindMemory(to: UInt16.self)
        for x in 8..<(toWidth - 8) {
            let expected = (Double(x) + 0.5) * Double(width) / Double(toWidth) * 60 - 30
            #expect(abs(Double(output[x]) - expected) < 40)
        }
    }

    @Test func theWeightsOfEverySampleAddUpToOne() {
        for run in Resampler.runs(extent: 333.25, count: 334, target: 100) {
            #expect(abs(run.weights.reduce(0, +) - 1) < 1e-5)
            #expect(run.first >= 0 && run.first + run.weights.count <= 334)
        }
    }

    @Test func transparencyIsLaidOnWhite() throws {
        let raster = try Raster(size: PixelSize(width: 3, height: 1), layout: .rgba, depth: 8, budget: Pictures.roomy)
        raster.pixels.copyBytes(from: [0, 0, 0, 0, 100, 50, 0, 255, 0, 0, 0, 128])
        raster.flattenOnWhite()
        #expect(raster.layout == .rgb)
        #expect(Array(raster.pixels.prefix(9)) == [255, 255, 255, 100, 50, 0, 127, 127, 127])
    }
}
