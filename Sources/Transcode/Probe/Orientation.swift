/// How a stored picture has to be turned to stand upright: one of the eight symmetries of a rectangle.
enum Orientation: String, Sendable, Equatable, CaseIterable {
    case upright, clockwise90, rotated180, clockwise270
    case mirrored, flipped, transposed, transversed

    /// From a display matrix (ISO/IEC 14496-12, 6.2.2): `a b u c d v x y w`, of which a, b, c, d are 16.16 numbers. A point of the stored
    /// picture (right, down) goes to (a·x + c·y, b·x + d·y). Angles between the quarter turns become the nearest one.
    init(matrix: [Int32]) {
        guard matrix.count == 9 else {
            self = .upright
            return
        }
        let a = Int(matrix[0]), b = Int(matrix[1]), c = Int(matrix[3]), d = Int(matrix[4])
        let isTurned = abs(b) + abs(c) > abs(a) + abs(d)
        self =
            if isTurned {
                switch (b >= 0, c >= 0) {
                case (true, false): .clockwise90
                case (false, true): .clockwise270
                case (true, true): .transposed
                case (false, false): .transversed
                }
            } else {
                switch (a >= 0, d >= 0) {
                case (true, true): .upright
                case (false, false): .rotated180
                case (false, true): .mirrored
                case (true, false): .flipped
                }
            }
    }

    var swapsSides: Bool {
        switch self {
        case .clockwise90, .clockwise270, .transposed, .transversed: true
        case .upright, .rotated180, .mirrored, .flipped: false
        }
    }

    /// Degrees clockwise; for the mirrored ones those of the turn that remains after the mirroring.
    var degreesClockwise: Int {
        switch self {
        case .upright, .mirrored: 0
        case .clockwise90, .transposed: 90
        case .rotated180, .flipped: 180
        case .clockwise270, .transversed: 270
        }
    }

    /// FFmpeg's filters that turn the picture.
    var filters: [String] {
        switch self {
        case .upright: []
        case .clockwise90: ["transpose=clock"]
        case .rotated180: ["hflip", "vflip"]
        case .clockwise270: ["transpose=cclock"]
        case .mirrored: ["hflip"]
        case .flipped: ["vflip"]
        case .transposed: ["transpose=cclock_flip"]
        case .transversed: ["transpose=clock_flip"]
        }
    }
}
