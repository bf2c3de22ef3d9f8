import Foundation
import Testing

@testable import Thumbs

@Suite struct GlanceTests {
    /// Hashes of another implementation (the Python package thumbhash-python 1.0.1) for the same pixels.
    private static let hashes: [(width: Int, height: Int, base64: String)] = [
        (30, 20, "IEYKXYowVGaDmXiWeGh4h6BkBrzI"), (17, 40, "3yUOSwZAlWiYh4d4ykBmT/k="),
        (8, 8, "VSIKPwIgVHaniXd3iImIiIiIyE+FcEkH"),
    ]

    @Test(arguments: 0..<3)
    func theHashIsThatOfItsDescription(row: Int) throws {
        let (width, height, base64) = Self.hashes[row]
        var pixels: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                pixels += [x * 7 + y * 3, x * y, 255 - x * 5 + y].map { UInt8(truncatingIfNeeded: $0) }
            }
        }
        let hash = pixels.withUnsafeMutableBufferPointer {
            ThumbHash.bytes(of: $0, PixelSize(width: width, height: height))
        }
        #expect(Data(hash).base64EncodedString() == base64)
    }

    @Test func theMeanColourIsThatOfThePicture() throws {
        let raster = try Raster(
            size: PixelSize(width: 300, height: 200), layout: .rgb, depth: 8, budget: Pictures.roomy)
        for index in 0..<(300 * 200) {
            for (channel, value) in [250, 128, 5].enumerated() { raster.pixels[index * 3 + channel] = UInt8(value) }
        }
        let glance = try Glance(Planes(raster, budget: Pictures.roomy), budget: Pictures.roomy)
        let digits = glance.meanColor.dropFirst()
        let found = stride(from: 0, to: 6, by: 2).compactMap { Int(digits.dropFirst($0).prefix(2), radix: 16) }
        #expect(glance.meanColor.hasPrefix("#") && zip(found, [250, 128, 5]).allSatisfy { abs($0 - $1) <= 2 })
    }
}
