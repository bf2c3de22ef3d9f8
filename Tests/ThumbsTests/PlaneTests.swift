import Testing

@testable import Thumbs

@Suite struct PlaneTests {
    private static let shapes: [(from: PixelSize, to: PixelSize)] = [
        (PixelSize(width: 64, height: 48), PixelSize(width: 63, height: 47)),
        (PixelSize(width: 301, height: 199), PixelSize(width: 100, height: 66)),
        (PixelSize(width: 40, height: 300), PixelSize(width: 4, height: 30)),
        (PixelSize(width: 7, height: 5), PixelSize(width: 20, height: 9)),
        (PixelSize(width: 33, height: 3), PixelSize(width: 1, height: 1)),
    ]

    private static func plane(_ size: PixelSize, _ value: (Int, Int) -> UInt8) throws -> Plane {
        let plane = try Plane(size, budget: Pictures.roomy)
        for y in 0..<size.height { for x in 0..<size.width { plane.row(y)[x] = value(x, y) } }
        return plane
    }

    /// A file may say that it is larger than what it holds.
    @Test(arguments: [(48, 32, 48), (48, 24, 48), (960, 540, 960), (320, 250, 320), (512, 256, 256)])
    func beyondTheSamplesTheLastOneStands(extent: Int, count: Int, target: Int) {
        let runs = Resampler.runs(extent: Double(extent), count: count, target: target)
        #expect(runs.count == target)
        for run in runs {
            #expect(run.first >= 0 && run.first + run.weights.count <= count)
            #expect(abs(run.weights.reduce(0, +) - 1) < 0.001 && run.weights.allSatisfy { abs($0) < 1.5 })
        }
    }

    @Test(arguments: 0..<5)
    func anEvenPlaneStaysEven(row: Int) throws {
        let (from, to) = Self.shapes[row]
        for value: UInt8 in [0, 1, 128, 254, 255] {
            let result = try PlaneScaler.scale(Self.plane(from) { _, _ in value }, to: to, budget: Pictures.roomy)
            #expect(result.size == to)
            for y in 0..<to.height { for x in 0..<to.width { #expect(result.row(y)[x] == value) } }
        }
    }

    /// The vectors and the fixed point against the same sums in floating point.
    @Test(arguments: 0..<5)
    func theSumsAreThoseOfTheWeights(row: Int) throws {
        let (from, to) = Self.shapes[row]
        var random = SeededNumbers(state: UInt64(row))
        let plane = try Self.plane(from) { _, _ in UInt8.random(in: 0...255, using: &random) }
        let result = try PlaneScaler.scale(plane, to: to, budget: Pictures.roomy)
        let across = Resampler.runs(extent: Double(from.width), count: from.width, target: to.width)
        let down = Resampler.runs(extent: Double(from.height), count: from.height, target: to.height)
        for (y, vertical) in down.enumerated() {
            for (x, horizontal) in across.enumerated() {
                var sum: Float = 0
                for (j, v) in vertical.weights.enumerated() {
                    for (i, h) in horizontal.weights.enumerated() {
                        sum += v * h * Float(plane.row(vertical.first + j)[horizontal.first + i])
                    }
                }
                #expect(abs(min(max(sum, 0), 255) - Float(result.row(y)[x])) <= 1)
            }
        }
    }

    /// A step of a sample to the side would show as a shift of brightness.
    @Test(arguments: [1.0, 0.5])
    func whatAPlaneCoversSaysWhereItsSamplesStand(lastPart: Double) throws {
        let size = PixelSize(width: 200, height: 4)
        let plane = try Plane(size, extent: (199 + lastPart, 4), budget: Pictures.roomy)
        for y in 0..<4 { for x in 0..<200 { plane.row(y)[x] = UInt8(x) } }
        let result = try PlaneScaler.scale(plane, to: PixelSize(width: 50, height: 1), budget: Pictures.roomy)
        for x in 4..<46 {
            let expected = (Double(x) + 0.5) * (199 + lastPart) / 50 - 0.5
            #expect(abs(Double(result.row(0)[x]) - expected) <= 1)
        }
    }

    @Test func rowsThatComeAFewAtATimeGiveTheSamePlane() throws {
        var random = SeededNumbers(state: 9)
        let size = PixelSize(width: 61, height: 90)
        let plane = try Self.plane(size) { _, _ in UInt8.random(in: 0...255, using: &random) }
        for (rowsAtATime, target) in [
            (8, PixelSize(width: 20, height: 31)), (16, PixelSize(width: 61, height: 3)), (1, size),
        ] {
            let scaler = try PlaneScaler(
                PlaneScaler.Source(size: size, extent: plane.extent, rowSamples: 64, rowsAtATime: rowsAtATime),
                to: target,
                budget: Pictures.roomy)
            for first in stride(from: 0, to: size.height, by: rowsAtATime) {
                for (index, row) in scaler.next.enumerated() where first + index < size.height {
                    row?.update(from: plane.row(first + index), count: size.width)
                }
                scaler.advance()
            }
            let whole = try PlaneScaler.scale(plane, to: target, budget: Pictures.roomy)
            for y in 0..<target.height {
                for x in 0..<target.width { #expect(scaler.result.row(y)[x] == whole.row(y)[x]) }
            }
        }
    }
}
