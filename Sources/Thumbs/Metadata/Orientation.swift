/// How a stored picture has to be turned to stand upright: the eight values of EXIF's tag 0x0112.
enum Orientation: Int, Sendable, Hashable, CaseIterable {
    case upright = 1
    case mirrored = 2
    case turned180 = 3
    case flipped = 4
    /// Mirrored along the main diagonal.
    case transposed = 5
    case turned90 = 6
    /// Mirrored along the other diagonal.
    case transversed = 7
    case turned270 = 8

    /// EXIF's value; anything outside 1 to 8 counts as unknown.
    init?(exif: Int) { self.init(rawValue: exif) }

    /// First turned clockwise by quarter turns, then mirrored left to right.
    init(quarterTurnsClockwise: Int, isMirrored: Bool) {
        switch (((quarterTurnsClockwise % 4) + 4) % 4, isMirrored) {
        case (0, false): self = .upright
        case (1, false): self = .turned90
        case (2, false): self = .turned180
        case (3, false): self = .turned270
        case (0, true): self = .mirrored
        case (1, true): self = .transposed
        case (2, true): self = .flipped
        default: self = .transversed
        }
    }

    /// True where width and height change places.
    var swapsSides: Bool { rawValue >= 5 }

    var isMirrored: Bool {
        switch self {
        case .mirrored, .flipped, .transposed, .transversed: true
        case .upright, .turned180, .turned90, .turned270: false
        }
    }

    /// Degrees clockwise, without the mirroring that some values also ask for.
    var degreesClockwise: Int {
        switch self {
        case .upright, .mirrored: 0
        case .turned90, .transversed: 90
        case .turned180, .flipped: 180
        case .turned270, .transposed: 270
        }
    }

    func size(ofStored size: PixelSize) -> PixelSize {
        swapsSides ? PixelSize(width: size.height, height: size.width) : size
    }

    /// Which stored pixel stands at (x, y) of the upright picture.
    func source(x: Int, y: Int, stored size: PixelSize) -> (x: Int, y: Int) {
        let (right, bottom) = (size.width - 1, size.height - 1)
        return switch self {
        case .upright: (x, y)
        case .mirrored: (right - x, y)
        case .turned180: (right - x, bottom - y)
        case .flipped: (x, bottom - y)
        case .transposed: (y, x)
        case .turned90: (y, bottom - x)
        case .transversed: (right - y, bottom - x)
        case .turned270: (right - y, x)
        }
    }
}

/// Pixels.
struct PixelSize: Sendable, Hashable {
    var width: Int
    var height: Int

    var longSide: Int { max(width, height) }
    /// Nil when it does not fit.
    var area: Int? { product(width, height) }

    /// The same shape with at most this long side, never enlarged, no side below 1.
    func fitting(longSide side: Int) -> PixelSize {
        guard side < longSide, side > 0, longSide > 0 else { return self }
        let scale = Double(side) / Double(longSide)
        return PixelSize(
            width: width == longSide ? side : max(1, Int((Double(width) * scale).rounded())),
            height: height == longSide ? side : max(1, Int((Double(height) * scale).rounded())))
    }
}
