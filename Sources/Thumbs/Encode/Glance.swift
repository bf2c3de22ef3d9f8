import Foundation
import Vocabulary

/// What stands in for a picture until it is loaded: its mean colour, and its ThumbHash.
struct Glance {
    /// ThumbHash takes at most so many pixels a side.
    private static let side = 100

    /// `#rrggbb`.
    let meanColor: String
    /// In base64.
    let thumbHash: String

    /// - Parameter planes: in 4:2:0, sRGB, upright.
    init(_ planes: Planes, budget: MemoryBudget) throws(Failure) {
        let size = planes.size.fitting(longSide: Self.side)
        let small = try planes.scaled(to: size, budget: budget).raster(budget: budget).inRGB(budget: budget)
        let pixels = small.pixels.bindMemory(to: UInt8.self)
        var sums = [0, 0, 0]
        for index in 0..<pixels.count { sums[index % 3] += Int(pixels[index]) }
        let count = size.width * size.height
        meanColor = "#" + sums.map { Self.hexadecimal(($0 + count / 2) / count) }.joined()
        thumbHash = Data(ThumbHash.bytes(of: pixels, size)).base64EncodedString()
    }

    private static func hexadecimal(_ value: Int) -> String { (value < 16 ? "0" : "") + String(value, radix: 16) }
}

/// ThumbHash as its author describes it (evanw.github.io/thumbhash): luminance and two differences of colours as cosine waves, the
/// long ones only, each in four bits.
enum ThumbHash {
    /// - Parameter pixels: RGB, at most 100 a side.
    static func bytes(of pixels: UnsafeMutableBufferPointer<UInt8>, _ size: PixelSize) -> [UInt8] {
        let count = size.width * size.height
        var (light, yellowBlue, redGreen) = ([Double](), [Double](), [Double]())
        for index in 0..<count {
            let (r, g, b) = (
                Double(pixels[index * 3]) / 255, Double(pixels[index * 3 + 1]) / 255,
                Double(pixels[index * 3 + 2]) / 255
            )
            light.append((r + g + b) / 3)
            yellowBlue.append((r + g) / 2 - b)
            redGreen.append(r - g)
        }
        // Seven waves along the longer side, and as many along the other as its length asks for.
        let waves = { (side: Int) in max(1, Int((7 * Double(side) / Double(size.longSide)).rounded())) }
        let (across, down) = (waves(size.width), waves(size.height))
        let l = Waves(light, size, across: max(3, across), down: max(3, down))
        let p = Waves(yellowBlue, size, across: 3, down: 3)
        let q = Waves(redGreen, size, across: 3, down: 3)

        let isLandscape = size.width > size.height
        let first =
            step(63, l.mean) | step(31.5, 1 + p.mean) << 6 | step(31.5, 1 + q.mean) << 12 | step(31, l.scale) << 18
        let second =
            (isLandscape ? down : across) | step(63, p.scale) << 3 | step(63, q.scale) << 9
            | (isLandscape ? 1 << 15 : 0)
        var result = [first, first >> 8, first >> 16, second, second >> 8].map { UInt8(truncatingIfNeeded: $0) }
        for (index, wave) in (l.heights + p.heights + q.heights).enumerated() {
            let four = UInt8(truncatingIfNeeded: step(15, wave))
            if index % 2 == 0 { result.append(four) } else { result[result.count - 1] |= four << 4 }
        }
        return result
    }

    /// Rounded half up, as the description's own language does.
    private static func step(_ steps: Double, _ value: Double) -> Int { Int((steps * value + 0.5).rounded(.down)) }

    /// One channel as cosine waves.
    private struct Waves {
        var mean = 0.0
        /// Each from 0 to 1, of `scale` to both sides of the middle.
        var heights: [Double] = []
        var scale = 0.0

        init(_ channel: [Double], _ size: PixelSize, across: Int, down: Int) {
            for cy in 0..<down {
                let fy = (0..<size.height).map { cos(.pi / Double(size.height) * Double(cy) * (Double($0) + 0.5)) }
                var cx = 0
                while cx * down < across * (down - cy) {
                    let fx = (0..<size.width).map { cos(.pi / Double(size.width) * Double(cx) * (Double($0) + 0.5)) }
                    var height = 0.0
                    for y in 0..<size.height {
                        var line = 0.0
                        for x in 0..<size.width { line += channel[y * size.width + x] * fx[x] }
                        height += line * fy[y]
                    }
                    height /= Double(size.width * size.height)
                    if cx == 0, cy == 0 {
                        mean = height
                    } else {
                        heights.append(height)
                        scale = max(scale, abs(height))
                    }
                    cx += 1
                }
            }
            if scale > 0 { heights = heights.map { 0.5 + 0.5 / scale * $0 } }
        }
    }
}
