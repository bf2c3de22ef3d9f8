import FFmpeg

/// Which of a file's tracks are the picture and the sound that people mean.
struct TrackChoice: Equatable {
    var video: StreamDescription?
    var audio: StreamDescription?
    /// The other channel of the same recording; `audio` is then the left one.
    var rightAudio: StreamDescription?
    /// Every sound track, for the facts.
    var allAudio: [StreamDescription]
    /// Sound tracks that nothing here decodes.
    var skippedAudio: [StreamDescription]

    /// The default track first, then the first in the file: phones put the moving picture before a large still, Dolby Vision its base
    /// layer before the enhancement. Covers, thumbnail tracks and depth maps are no video.
    init(_ streams: [StreamDescription]) {
        let videos = streams.filter {
            $0.kind == .video && !$0.isAttachedPicture && !$0.isTimedThumbnails && !$0.isDependent && !$0.isAuxiliary
        }
        let playable = videos.filter { $0.hasDecoder && !$0.isEncrypted }
        let moving = playable.filter { track in !playable.contains { Self.isStill(track, beside: $0) } }
        video = moving.first(where: \.isDefault) ?? moving.first ?? playable.first ?? videos.first
        allAudio = streams.filter { $0.kind == .audio }
        let audible = allAudio.filter { $0.hasDecoder && !$0.isEncrypted && $0.channels > 0 && $0.sampleRate > 0 }
        audio = audible.first(where: \.isDefault) ?? audible.first
        if let chosen = audio, let pair = Self.pair(chosen, audible.filter { Self.areChannels(chosen, $0) }) {
            (audio, rightAudio) = pair
        }
        skippedAudio = allAudio.filter { !audible.contains($0) }
    }

    /// Phones and editors put a large still, or a few, into a track of its own, which may stand first and be called the default.
    private static func isStill(_ track: StreamDescription, beside other: StreamDescription) -> Bool {
        let stillMax = 3, movingMin = 10, lengthRatio = 0.1
        guard other.frameCount >= movingMin, other.frameCount > track.frameCount else { return false }
        if (1...stillMax).contains(track.frameCount) { return true }
        guard let length = track.duration, let otherLength = other.duration else { return false }
        return track.timeBase.seconds(length) < other.timeBase.seconds(otherLength) * lengthRatio
    }

    /// Left and right as the tracks name themselves, since one in the centre may stand first; else the chosen one and the next.
    private static func pair(
        _ chosen: StreamDescription, _ partners: [StreamDescription]
    ) -> (left: StreamDescription, right: StreamDescription)? {
        guard let partner = partners.first(where: { $0.index > chosen.index }) ?? partners.first else { return nil }
        let channels = [chosen] + partners
        if let left = channels.first(where: { $0.isChannel("FL") }),
            let right = channels.first(where: { $0.isChannel("FR") })
        {
            return (left, right)
        }
        return chosen.isChannel("FR") || partner.isChannel("FL") ? (partner, chosen) : (chosen, partner)
    }

    /// Camcorders write each microphone into a track of its own, uncompressed; the left and the right are what a stereo track would be elsewhere.
    /// Compressed tracks of one channel are languages or other choices, of which one is meant.
    private static func areChannels(_ one: StreamDescription, _ other: StreamDescription) -> Bool {
        let startMax = 0.05, endMax = 0.5
        func seconds(_ track: StreamDescription) -> Double { track.timeBase.seconds(track.start ?? 0) }
        let endsTogether = one.end.flatMap { end in other.end.map { abs(end - $0) <= endMax } } ?? true
        return one.index != other.index && one.channels == 1 && other.channels == 1
            && one.codec?.hasPrefix("pcm_") == true && one.codec == other.codec && one.sampleRate == other.sampleRate
            && one.metadata["language"] == other.metadata["language"]
            && abs(seconds(one) - seconds(other)) <= startMax && endsTogether
    }
}

extension StreamDescription {
    /// - Parameter name: FFmpeg's, as in `1 channels (FL)`.
    fileprivate func isChannel(_ name: String) -> Bool {
        layout?.split { !$0.isLetter }.contains { $0 == name } == true
    }
}
