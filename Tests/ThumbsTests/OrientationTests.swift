import Testing

@testable import Thumbs

@Suite struct OrientationTests {
    /// What EXIF 2.32 says of each value: where the stored picture's row 0 and column 0 are when it stands upright.
    private static let corners: [(exif: Int, row: String, column: String)] = [
        (1, "top", "left"), (2, "top", "right"), (3, "bottom", "right"), (4, "bottom", "left"), (5, "left", "top"),
        (6, "right", "top"), (7, "right", "bottom"), (8, "left", "bottom"),
    ]

    @Test(arguments: corners)
    func theStoredCornerComesToWhereEXIFSaysItIs(exif: Int, row: String, column: String) throws {
        let orientation = try #require(Orientation(exif: exif))
        let stored = PixelSize(width: 5, height: 3)
        let upright = orientation.size(ofStored: stored)
        var places: [String: (Int, Int)] = [:]
        for y in 0..<upright.height {
            for x in 0..<upright.width {
                let (sx, sy) = orientation.source(x: x, y: y, stored: stored)
                places["\(sx),\(sy)"] = (x, y)
            }
        }
        #expect(places.count == 15)
        let corner = try #require(places["0,0"])
        let alongRow = try #require(places["4,0"])
        let alongColumn = try #require(places["0,2"])
        func edge(_ a: (Int, Int), _ b: (Int, Int)) -> String {
            if a.1 == b.1 { return a.1 == 0 ? "top" : "bottom" }
            return a.0 == 0 ? "left" : "right"
        }
        #expect(edge(corner, alongRow) == row)
        #expect(edge(corner, alongColumn) == column)
    }

    private static let quarterTurns: [(turns: Int, isMirrored: Bool, exif: Int)] = [
        (0, false, 1), (1, false, 6), (2, false, 3), (3, false, 8), (-1, false, 8), (5, false, 6), (0, true, 2),
        (1, true, 5),
        (2, true, 4), (3, true, 7),
    ]

    @Test(arguments: quarterTurns)
    func quarterTurnsThenAMirrorGiveEXIFsValue(turns: Int, isMirrored: Bool, exif: Int) {
        #expect(Orientation(quarterTurnsClockwise: turns, isMirrored: isMirrored).rawValue == exif)
    }

    @Test func valuesOutsideOneToEightAreUnknown() {
        #expect([0, 9, -1, 256].allSatisfy { Orientation(exif: $0) == nil })
    }

    @Test(arguments: Orientation.allCases)
    func turningAPlaneFollowsTheTable(orientation: Orientation) throws {
        // Smaller than a tile of the turn, and larger with a rest on both sides.
        for size in [PixelSize(width: 7, height: 4), PixelSize(width: 37, height: 50), PixelSize(width: 1, height: 3)] {
            let plane = try Plane(size, extent: (Double(size.width) - 0.5, Double(size.height)), budget: Pictures.roomy)
            for y in 0..<size.height {
                for x in 0..<size.width { plane.row(y)[x] = UInt8(truncatingIfNeeded: y * size.width + x) }
            }
            let turned = try plane.turned(orientation, budget: Pictures.roomy)
            #expect(turned.size == orientation.size(ofStored: size))
            #expect((orientation.swapsSides ? turned.extent.height : turned.extent.width) == plane.extent.width)
            for y in 0..<turned.size.height {
                for x in 0..<turned.size.width {
                    let source = orientation.source(x: x, y: y, stored: size)
                    #expect(turned.row(y)[x] == UInt8(truncatingIfNeeded: source.y * size.width + source.x))
                }
            }
        }
    }
}
