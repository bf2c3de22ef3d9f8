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

    /// Where a side is odd, the last sample of chroma covers one column only; the turn may make it the first.
    @Test(arguments: Orientation.allCases)
    func chromaStaysWhereItsLumaIs(orientation: Orientation) throws {
        for stored in [PixelSize(width: 43, height: 31), PixelSize(width: 44, height: 30)] {
            // Colour that grows along both sides, each by its own plane.
            let luma = try Plane(stored, budget: Pictures.roomy)
            for y in 0..<stored.height { luma.row(y).update(repeating: 128, count: stored.width) }
            let (size, extent) = Planes.shape(1, of: stored)
            let planes = try [true, false].map { isAcross in
                let plane = try Plane(size, extent: extent, budget: Pictures.roomy)
                for y in 0..<size.height {
                    for x in 0..<size.width { plane.row(y)[x] = UInt8(20 + 8 * (isAcross ? x : y)) }
                }
                return plane
            }
            let turned = try Planes(components: [luma] + planes).turned(orientation, budget: Pictures.roomy)
            for (component, isAcross) in [(1, true), (2, false)] {
                let plane = turned.components[component]
                // Without the filter's rims.
                for y in 4..<(plane.size.height - 4) {
                    for x in 4..<(plane.size.width - 4) {
                        // The middle of the sample in the stored picture, between two columns and two rows of luma.
                        let (a, b) = (
                            orientation.source(x: 2 * x, y: 2 * y, stored: stored),
                            orientation.source(x: 2 * x + 1, y: 2 * y + 1, stored: stored)
                        )
                        let middle = Double(isAcross ? a.x + b.x : a.y + b.y) / 2
                        let expected = 20 + 8 * (middle - 0.5) / 2
                        #expect(abs(Double(plane.row(y)[x]) - expected) <= 1)
                    }
                }
            }
        }
    }
}
