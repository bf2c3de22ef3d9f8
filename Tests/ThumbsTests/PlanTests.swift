import Testing
import Vocabulary

@testable import Thumbs

@Suite struct PlanTests {
    private static let scales: [(width: Int, height: Int, side: Int, denominator: Int)] = [
        (6000, 4000, 2048, 2), (6000, 4000, 2000, 2), (6000, 4000, 1000, 4), (6000, 4000, 512, 8), (6000, 4000, 320, 8),
        (6000, 4000, 500, 8), (4032, 3024, 2048, 1), (4032, 3024, 320, 8), (100, 68, 320, 1), (20000, 14000, 320, 8),
        (480, 480, 320, 1), (1, 1, 1, 1),
    ]

    @Test(arguments: scales)
    func aJPEGIsDecodedAtTheSmallestScaleWithHeadroom(width: Int, height: Int, side: Int, denominator: Int) {
        let plan = JPEGScalePlan(stored: PixelSize(width: width, height: height), longSide: side)
        #expect(plan.denominator == denominator)
        #expect(plan.decoded.width == (width + denominator - 1) / denominator)
    }

    private static let fits: [(width: Int, height: Int, side: Int, toWidth: Int, toHeight: Int)] = [
        (6000, 4000, 320, 320, 213), (4000, 6000, 320, 213, 320), (100, 68, 320, 100, 68), (10000, 10, 320, 320, 1),
        (3024, 4032, 1600, 1200, 1600), (321, 320, 320, 320, 319),
    ]

    @Test(arguments: fits)
    func aSizeIsFittedAndNeverEnlarged(width: Int, height: Int, side: Int, toWidth: Int, toHeight: Int) {
        let fitted = PixelSize(width: width, height: height).fitting(longSide: side)
        #expect(fitted == PixelSize(width: toWidth, height: toHeight))
    }

    @Test func thumbnailsArePlannedLargestFirstAndNamedByWhatWasAskedFor() {
        let plan = ThumbPlan(
            upright: PixelSize(width: 1000, height: 500), settings: ThumbSettings(sizes: [256, 2048, 512, 256, 0, -5]))
        #expect(plan.outputs.map(\.name.rawValue) == ["2048", "512", "256"])
        #expect(plan.outputs.map(\.size.width) == [1000, 512, 256])
    }

    @Test func sumsAndProductsThatDoNotFitAreNil() {
        #expect(product(1 << 40, 1 << 40) == nil)
        #expect(product(3, -1) == nil)
        #expect(sum(.max, 1) == nil)
        #expect(sum(1, nil) == nil)
        #expect(sum(product(2, 3), 4) == 10)
    }

    private static let rawSizes: [(raw: PixelSize?, preview: PixelSize?, shown: PixelSize)] = [
        (
            PixelSize(width: 6022, height: 4024), PixelSize(width: 6000, height: 4000),
            PixelSize(width: 6000, height: 4000)
        ),
        (
            PixelSize(width: 6022, height: 4024), PixelSize(width: 1620, height: 1080),
            PixelSize(width: 6022, height: 4024)
        ),
        (PixelSize(width: 6022, height: 4024), nil, PixelSize(width: 6022, height: 4024)),
        (nil, PixelSize(width: 1620, height: 1080), PixelSize(width: 1620, height: 1080)),
    ]

    @Test(arguments: rawSizes)
    func aRawShowsTheSizeOfTheCamerasOwnPictureWhereThatIsWhole(raw: PixelSize?, preview: PixelSize?, shown: PixelSize)
    {
        #expect(RAWFile.shownSize(raw: raw, preview: preview) == shown)
    }
}
