/// The bounds of a rendition, whichever way up.
struct PictureBounds: Equatable {
    var long: Int
    var short: Int

    static let p1080 = PictureBounds(long: 1920, short: 1080)
    static let p720 = PictureBounds(long: 1280, short: 720)
    static let p480 = PictureBounds(long: 854, short: 480)

    /// The largest size of the source's shape inside the bounds, never enlarged, with even sides, which 4:2:0 needs.
    func fit(_ width: Int, _ height: Int) -> (width: Int, height: Int) {
        let scale = min(1, Double(long) / Double(max(width, height)), Double(short) / Double(min(width, height)))
        guard scale < 1 else { return (even(width), even(height)) }
        return (Self.nearestEven(Double(width) * scale), Self.nearestEven(Double(height) * scale))
    }

    /// The largest even size of one shape inside another, which it fills where the two differ by rounding alone.
    static func inside(_ size: (width: Int, height: Int), _ shape: (width: Int, height: Int)) -> (
        width: Int, height: Int
    ) {
        let roundingMax = 2
        let scale = min(Double(size.width) / Double(shape.width), Double(size.height) / Double(shape.height))
        func side(_ length: Int, in bound: Int) -> Int {
            let fitted = min(bound, nearestEven(Double(length) * scale))
            return bound - fitted <= roundingMax ? bound : fitted
        }
        return (side(shape.width, in: size.width), side(shape.height, in: size.height))
    }

    private func even(_ side: Int) -> Int { max(2, side & ~1) }
    private static func nearestEven(_ side: Double) -> Int { max(2, Int((side / 2).rounded()) * 2) }
}

/// The size of a still: the long side at most `longSide`, never enlarged.
func stillSize(_ width: Int, _ height: Int, longSide: Int) -> (width: Int, height: Int) {
    let scale = min(1, Double(longSide) / Double(max(width, height)))
    return (max(1, Int((Double(width) * scale).rounded())), max(1, Int((Double(height) * scale).rounded())))
}
