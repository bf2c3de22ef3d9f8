import FFmpeg

/// How the channels of a track become those of the output.
enum SoundMix: Equatable {
    /// All of them, by their names.
    case byName
    /// All of them, by the names that their number has by custom.
    case byNumber
    /// Two of them, or one for both sides.
    case pair(left: Int, right: Int)

    /// Numbers of channels that have names by custom (FFmpeg's `av_channel_layout_default`).
    private static let customaryCounts: Set<Int> = [1, 2, 3, 4, 5, 6, 7, 8, 16, 24]

    /// - Parameter hasStereoMix: the library knows how.
    init(_ places: ChannelPlaces, codec: String?, hasStereoMix: Bool) {
        if places.isAmbisonic {
            self = .pair(left: 0, right: 0)
        } else if places.count == 1 {
            self = .byNumber
        } else if let names = places.names {
            self = hasStereoMix ? .byName : Self.pair(of: names)
        } else if places.count > 2, codec?.hasPrefix("pcm_") == true || !Self.customaryCounts.contains(places.count) {
            // Recorders with many channels and no names for them have the main microphones on the first two.
            self = .pair(left: 0, right: 1)
        } else {
            self = .byNumber
        }
    }

    /// The front pair, else another that is named left and right, else the first two.
    private static func pair(of names: [String]) -> SoundMix {
        for (left, name) in names.enumerated() where name.hasSuffix("L") {
            if name != "FL", names.contains("FL"), names.contains("FR") { continue }
            if let right = names.firstIndex(of: String(name.dropLast()) + "R") {
                return .pair(left: left, right: right)
            }
        }
        let first = names.firstIndex { !$0.hasPrefix("LFE") } ?? 0
        let second = names.indices.first { $0 > first && !names[$0].hasPrefix("LFE") } ?? first
        return .pair(left: first, right: second)
    }

    /// What has to be done to frames before the filters: a layout that these do not know would be refused.
    func prepare(_ frame: borrowing Frame) {
        switch self {
        case .byName: break
        case .byNumber: frame.nameChannelsByNumber()
        case .pair: frame.forgetChannelNames()
        }
    }
}
