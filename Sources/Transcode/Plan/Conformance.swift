import FFmpeg
import Vocabulary

/// Whether a source already is what its 1080p rendition would be.
enum Conformance {
    /// Seconds between key frames; more makes jumping in a player slow.
    static let keyframeIntervalMax = 10.0
    static let rateMax = 60.5
    /// Seconds by which the first picture may be late.
    static let startMax = 0.01
    /// Seconds between the beginnings of picture and sound; more is an edit list at work.
    static let soundStartMax = 0.05

    static func delivery(of survey: Survey) -> MediaFacts.Delivery? {
        guard survey.reason == nil, let video = survey.video else { return nil }
        guard survey.format == .isoMedia, let boxes = survey.boxes, !boxes.isFragmented, conforms(video),
            conforms(survey.tracks), abs((survey.soundStart ?? video.start) - video.start) <= soundStartMax,
            !survey.isDamaged, survey.tracks.video?.isManifold != true
        else { return .encode }
        // A track of positions or of anything else must not be served along.
        return boxes.isFastStart && survey.otherTrackCount == 0 ? .original : .remux
    }

    static func conforms(_ video: VideoFacts) -> Bool {
        let profiles: Set<Int> = [66, 77, 100]
        let constraintBits = 1 << 9 | 1 << 11
        let long = max(video.width, video.height), short = min(video.width, video.height)
        let isSquare = !video.sampleAspect.isKnown || video.sampleAspect.num == video.sampleAspect.den
        let tags = [video.color.primaries, video.color.transfer, video.color.matrix]
        return video.codec == "h264" && profiles.contains(video.profile & ~constraintBits) && !video.isInterlaced
            && video.pixelFormat.name == "yuv420p" && video.color.range != .full
            && tags.allSatisfy { $0 == nil || $0 == "bt709" }
            && video.hdr == nil && video.cropTop == 0 && long <= 1920 && short <= 1080 && long.isMultiple(of: 2)
            && short.isMultiple(of: 2) && isSquare && video.orientation == .upright && video.averageRate <= rateMax
            && !video.hasEdits && !video.hasTimesOfDecoding && abs(video.start) <= startMax
            && (video.keyframeIntervalMax.map { $0 <= keyframeIntervalMax } ?? false)
    }

    static func conforms(_ tracks: TrackChoice) -> Bool {
        let lowComplexity = 1
        guard let audio = tracks.audio else { return tracks.allAudio.isEmpty }
        return tracks.allAudio.count == 1 && audio.codec == "aac" && audio.profile == lowComplexity
            && audio.channels <= 2 && !audio.isManifold
    }
}
