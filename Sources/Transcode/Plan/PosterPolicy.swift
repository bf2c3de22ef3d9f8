/// Which picture stands for a video: not black, not blank, not blurred, not from the very beginning.
enum PosterPolicy {
    /// What a picture looks like from afar: luma of 0 to 255.
    struct Look: Equatable {
        var mean: Double
        var deviation: Double
        /// Mean difference of a point from its neighbours, as a share of the deviation.
        var sharpness = 1.0
    }

    /// Pictures looked at over a whole video.
    static let candidateMax = 24
    /// Where a poster is looked for without decoding everything, as shares of the duration.
    static let places = [0.1, 0.3, 0.6, 0.0]

    /// Below this a picture is out of focus or smeared by motion; sharp ones have two to ten times as much.
    static let sharpnessMin = 0.02
    private static let sharpnessGoal = 0.08

    /// Dark or flat pictures are replaced when a better one turns up.
    static func isGood(_ look: Look) -> Bool { (24...232).contains(look.mean) && look.deviation >= 12 }

    /// - Parameter place: 0 at the beginning, 1 at the end.
    static func score(_ look: Look, place: Double) -> Double {
        let detail = min(look.deviation, 48) / 48
        let light = min(min(look.mean, 255 - look.mean), 64) / 64
        let sharpness = min(look.sharpness, sharpnessGoal) / sharpnessGoal
        // The first tenth is often a hand on the button; the last part may give the end away.
        let closeness = 1 - min(1, abs(place - 0.1) / 0.9)
        return (isGood(look) ? 1 : 0) + 0.45 * detail + 0.45 * light + 0.6 * sharpness + 0.4 * closeness
    }
}
