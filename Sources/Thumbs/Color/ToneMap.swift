import Foundation
import Vocabulary

/// From PQ or HLG to 8-bit sRGB: to linear light, to BT.709's primaries, and the highlights rolled off so that the picture's own
/// peak becomes white. Done after scaling, so on few pixels.
struct ToneMap {
    /// Luminance of SDR white in an HDR picture, cd/m² (ITU-R BT.2408, 203).
    static let whiteNits: Float = 203
    /// HLG's nominal peak, and its system gamma there (ITU-R BT.2100 table 5).
    static let hlgPeakNits: Float = 1000
    private static let hlgGamma: Float = 1.2
    /// Share of the pixels that may be brighter than what becomes white: stars and glints.
    private static let glintShare = 0.001

    let points: CodePoints
    private let toBT709: [SIMD3<Float>]
    private let luminance: SIMD3<Float>

    init?(_ points: CodePoints) {
        guard points.hdr != nil, let source = Self.toXYZ(points.chromaticities),
            let target = Self.toXYZ(CodePoints(primaries: 1, transfer: 13).chromaticities),
            let back = Self.inverse(target)
        else { return nil }
        self.points = points
        let matrix = Self.multiply(back, source)
        toBT709 = (0..<3).map { SIMD3<Float>(Float(matrix[$0][0]), Float(matrix[$0][1]), Float(matrix[$0][2])) }
        luminance = SIMD3<Float>(Float(source[1][0]), Float(source[1][1]), Float(source[1][2]))
    }

    /// - Parameter raster: RGB of 8 or 16 bits.
    func run(_ raster: Raster, budget: MemoryBudget) throws(Failure) -> Raster {
        let result = try Raster(size: raster.size, layout: .rgb, depth: 8, budget: budget)
        let curve = linearTable(entries: raster.depth == 8 ? 256 : 65536)
        let count = raster.size.width * raster.size.height
        func light(_ pixel: Int) -> SIMD3<Float> {
            var value = SIMD3<Float>.zero
            for channel in 0..<3 {
                let index = pixel * 3 + channel
                value[channel] =
                    raster.depth == 8
                    ? curve[Int(raster.pixels[index])]
                    : curve[Int(raster.pixels.load(fromByteOffset: index * 2, as: UInt16.self))]
            }
            return displayLight(value)
        }

        let rollOff = RollOff(peakNits: peak(count: count, of: light))
        let encode = Self.sRGBTable()
        for pixel in 0..<count {
            let value = light(pixel)
            var color = SIMD3<Float>(
                (toBT709[0] * value).sum(), (toBT709[1] * value).sum(), (toBT709[2] * value).sum())
            // A colour outside BT.709 is drawn towards grey of the same luminance until it fits; its hue stays.
            let grey = max(0, (color * SIMD3(0.2126, 0.7152, 0.0722)).sum())
            if color.min() < 0 {
                color = SIMD3(repeating: grey) + (color - grey) * (grey / max(grey - color.min(), 1e-6))
            }
            let brightest = color.max()
            color *= rollOff.scale(brightest) / Self.whiteNits
            for channel in 0..<3 {
                let step = Int(min(max(color[channel], 0), 1) * Float(encode.count - 1) + 0.5)
                result.pixels[pixel * 3 + channel] = encode[step]
            }
        }
        return result
    }

    /// cd/m² of the brightest channel, glints left aside.
    private func peak(count: Int, of light: (Int) -> SIMD3<Float>) -> Float {
        // In steps of PQ's own scale, which is even to the eye.
        var histogram = [Int](repeating: 0, count: 1024)
        for pixel in 0..<count {
            let value = min(max(light(pixel).max(), 0), 10000)
            histogram[min(1023, Int(PQ.encode(value) * 1023))] += 1
        }
        var above = 0
        for step in stride(from: 1023, through: 0, by: -1) {
            above += histogram[step]
            if Double(above) > Double(count) * Self.glintShare { return PQ.decode(Float(step + 1) / 1023) }
        }
        return Self.whiteNits
    }

    /// For PQ cd/m², for HLG scene light from 0 to 1.
    private func linearTable(entries: Int) -> [Float] {
        (0..<entries).map { index in
            let signal = Float(index) / Float(entries - 1)
            return points.hdr == .hlg ? Self.hlgScene(signal) : PQ.decode(signal)
        }
    }

    private func displayLight(_ value: SIMD3<Float>) -> SIMD3<Float> {
        guard points.hdr == .hlg else { return value }
        let scene = max(0, (value * luminance).sum())
        return value * (Self.hlgPeakNits * pow(scene, Self.hlgGamma - 1))
    }

    /// The inverse of HLG's OETF (ITU-R BT.2100 table 5).
    private static func hlgScene(_ signal: Float) -> Float {
        let (a, b, c): (Float, Float, Float) = (0.17883277, 0.28466892, 0.55991073)
        return signal <= 0.5 ? signal * signal / 3 : (exp((signal - c) / a) + b) / 12
    }

    /// Steps fine enough that dark tones lose none of the 256.
    private static func sRGBTable() -> [UInt8] {
        (0...16383).map { index in
            let linear = Float(index) / 16383
            let signal = linear <= 0.0031308 ? 12.92 * linear : 1.055 * pow(linear, 1 / 2.4) - 0.055
            return UInt8(min(max(signal * 255 + 0.5, 0), 255))
        }
    }

    // MARK: - Primaries

    /// The matrix from linear RGB to XYZ (SMPTE RP 177): the primaries scaled so that they add up to white.
    private static func toXYZ(_ xy: [Double]) -> [[Double]]? {
        guard xy.count == 8 else { return nil }
        func column(_ index: Int) -> [Double] {
            let (x, y) = (xy[index], xy[index + 1])
            return [x / y, 1, (1 - x - y) / y]
        }
        let (white, red, green, blue) = (column(0), column(2), column(4), column(6))
        let primaries = (0..<3).map { [red[$0], green[$0], blue[$0]] }
        guard let back = inverse(primaries) else { return nil }
        let scale = (0..<3).map { row in (0..<3).reduce(0) { $0 + back[row][$1] * white[$1] } }
        return primaries.map { row in (0..<3).map { row[$0] * scale[$0] } }
    }

    private static func inverse(_ m: [[Double]]) -> [[Double]]? {
        func minor(_ a: Int, _ b: Int, _ c: Int, _ d: Int) -> Double { m[a][c] * m[b][d] - m[a][d] * m[b][c] }
        let determinant =
            m[0][0] * minor(1, 2, 1, 2) - m[0][1] * minor(1, 2, 0, 2) + m[0][2] * minor(1, 2, 0, 1)
        guard abs(determinant) > 1e-9 else { return nil }
        return [
            [minor(1, 2, 1, 2), -minor(0, 2, 1, 2), minor(0, 1, 1, 2)],
            [-minor(1, 2, 0, 2), minor(0, 2, 0, 2), -minor(0, 1, 0, 2)],
            [minor(1, 2, 0, 1), -minor(0, 2, 0, 1), minor(0, 1, 0, 1)],
        ].map { $0.map { $0 / determinant } }
    }

    private static func multiply(_ a: [[Double]], _ b: [[Double]]) -> [[Double]] {
        (0..<3).map { row in (0..<3).map { column in (0..<3).reduce(0) { $0 + a[row][$1] * b[$1][column] } } }
    }
}

/// The perceptual quantizer (SMPTE ST 2084).
enum PQ {
    private static let (m1, m2): (Float, Float) = (2610 / 16384, 2523 / 4096 * 128)
    private static let (c1, c2, c3): (Float, Float, Float) = (3424 / 4096, 2413 / 4096 * 32, 2392 / 4096 * 32)

    /// Signal of 0 to 1 to cd/m².
    static func decode(_ signal: Float) -> Float {
        let power = pow(max(signal, 0), 1 / m2)
        return 10000 * pow(max(power - c1, 0) / (c2 - c3 * power), 1 / m1)
    }

    /// cd/m² to a signal of 0 to 1.
    static func encode(_ nits: Float) -> Float {
        let power = pow(max(nits, 0) / 10000, m1)
        return pow((c1 + c2 * power) / (1 + c3 * power), m2)
    }
}

/// How much a brightness is taken back (ITU-R BT.2390, section 5.4.1): nothing up to a knee, then along a Hermite spline to white.
struct RollOff {
    private let peak: Float
    private let white: Float
    private let knee: Float

    init(peakNits: Float) {
        peak = PQ.encode(max(peakNits, ToneMap.whiteNits))
        white = PQ.encode(ToneMap.whiteNits) / peak
        knee = 1.5 * white - 0.5
    }

    /// - Returns: what a brightness of so many cd/m² is multiplied by.
    func scale(_ nits: Float) -> Float {
        guard nits > 0 else { return 1 }
        let signal = min(PQ.encode(nits) / peak, 1)
        guard signal > knee, white < 1 else { return min(1, ToneMap.whiteNits / nits) }
        let t = (signal - knee) / (1 - knee)
        let (t2, t3) = (t * t, t * t * t)
        let rolled =
            (2 * t3 - 3 * t2 + 1) * knee + (t3 - 2 * t2 + t) * (1 - knee) + (-2 * t3 + 3 * t2) * white
        return PQ.decode(rolled * peak) / nits
    }
}
