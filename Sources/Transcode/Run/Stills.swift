import FFmpeg
import Vocabulary

/// Makes poster, storyboard and preview colour from delivered pictures (upright, BT.709 limited 4:2:0) as they pass by.
final class Stills {
    static let posterQuality = 85
    /// Seconds between two candidates for the poster at least.
    private static let candidateIntervalMin = 0.04

    private let plan: TranscodePlan.Stills
    private let sprite: Sprite?
    private let poster: Frame
    private var posterScore = -1.0
    private var nextCandidate = 0.0

    private init(_ plan: TranscodePlan.Stills, sprite: Sprite?, poster: consuming Frame) {
        self.plan = plan
        self.sprite = sprite
        self.poster = poster
    }

    /// - Returns: nil where no still is wanted.
    static func open(_ plan: TranscodePlan.Stills) throws(Failure) -> Stills? {
        guard !plan.isEmpty else { return nil }
        var sprite: Sprite?
        if let board = plan.storyboard { sprite = try Sprite.open(board) }
        return Stills(plan, sprite: sprite, poster: try Frame.allocate())
    }

    func wantsTile(before time: Double) -> Bool { sprite?.wantsTile(before: time) ?? false }

    /// - Parameters:
    ///   - from, to: seconds on the output's clock during which the picture is shown.
    func take(_ picture: borrowing Frame, from: Double, to: Double) throws(Failure) {
        while let sprite, sprite.wantsTile(before: to) { try sprite.fillTile(with: picture) }
        try consider(picture, at: from)
    }

    private func consider(_ candidate: borrowing Frame, at seconds: Double) throws(Failure) {
        guard seconds >= nextCandidate || posterScore < 0 else { return }
        nextCandidate =
            seconds + max(plan.duration / Double(PosterPolicy.candidateMax), Self.candidateIntervalMin)
        let look = try StillRenderer.look(candidate)
        let value = PosterPolicy.score(look, place: plan.duration > 0 ? seconds / plan.duration : 0)
        guard value > posterScore else { return }
        posterScore = value
        try poster.takeReference(to: candidate)
    }

    /// Writes and seals what was planned.
    /// - Parameter end: seconds of the output.
    /// - Returns: the preview colour; nil when no picture came.
    func finish(end: Double, outputs: OutputFiles) throws(Failure) -> String? {
        guard posterScore >= 0 else { return nil }
        if let longSide = plan.posterSize {
            let size = stillSize(poster.width, poster.height, longSide: longSide)
            let chain = PictureChain.still(ofDelivered: size).description
            let bytes = try StillRenderer.jpeg(poster, chain: chain, quality: Self.posterQuality)
            try outputs.write(bytes, as: .poster, width: size.width, height: size.height)
        }
        if let sprite, sprite.tiles > 0 {
            if plan.outputs.contains(.storyboard) {
                let made = try sprite.jpeg()
                try outputs.write(made.bytes, as: .storyboard, width: made.width, height: made.height)
            }
            if plan.outputs.contains(.storyboardIndex) {
                let text = sprite.index(end: end, link: plan.storyboardLink)
                try outputs.write(Array(text.utf8), as: .storyboardIndex)
            }
        }
        return try StillRenderer.meanColor(poster)
    }
}
