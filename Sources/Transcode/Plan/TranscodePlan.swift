import FFmpeg
import Vocabulary

/// What will be made from a video, decided from its facts alone.
struct TranscodePlan: Equatable {
    enum Work: Equatable {
        /// The samples go into a new MP4 as they are.
        case copy(name: OutputName)
        case encode(Encode)
        /// No video is wanted.
        case nothing
    }

    struct Encode: Equatable {
        /// Of the frames given to the filters.
        var timeBase: Rational
        /// Frames a second after dropping and deinterlacing, for rate control.
        var rate: Rational
        /// Every n-th decoded frame is kept.
        var keepEvery: Int
        /// Seconds from one kept frame to the next, where frames are dropped by their times; 0 where none is.
        var intervalMin: Double
        /// Largest first: the first is made from the decoded pictures, each of the others from the pictures of the one before.
        var renditions: [Rendition]
        var sound: Sound?
    }

    struct Rendition: Equatable {
        var name: OutputName
        var width: Int
        var height: Int
        var source: Source

        enum Source: Equatable {
            case decoded(VideoFacts, isSafest: Bool)
            /// The rendition before it.
            case larger
        }

        /// - Parameter shape: of the source's pictures.
        func chain(of shape: FrameShape) -> PictureChain {
            switch source {
            case .larger: .smaller((width, height))
            case .decoded(let video, let isSafest):
                PictureChain(
                    video, shape: shape, size: (width, height), target: .video, fieldsBecomeFrames: true,
                    isSafest: isSafest)
            }
        }
    }

    struct Sound: Equatable {
        /// One, or two of one channel each: left and right.
        var streams: [Int]
        /// Hz.
        var sampleRate: Int
        var channels: Int
        var bitRate: Int

        /// Of each stream, as it is given to the encoder.
        var channelsPerStream: Int { channels / streams.count }
    }

    /// What is made from delivered pictures as they pass by.
    struct Stills: Equatable {
        /// Those of the job's outputs that are stills.
        var outputs: [OutputName]
        /// Long side of the poster; nil where none is wanted.
        var posterSize: Int?
        var storyboard: StoryboardPlan?
        var storyboardLink: String
        /// Seconds of the picture.
        var duration: Double

        var isEmpty: Bool { outputs.isEmpty }

        init(_ settings: TranscodeSettings, duration: Double, display: (width: Int, height: Int)) {
            outputs = settings.outputs.filter { $0.videoRole != .rendition }
            posterSize = outputs.contains(.poster) ? settings.posterSize : nil
            let isBoardWanted = outputs.contains(.storyboard) || outputs.contains(.storyboardIndex)
            storyboard = isBoardWanted ? StoryboardPlan(duration: duration, display: display) : nil
            storyboardLink = settings.storyboardLink
            self.duration = duration
        }
    }

    var work: Work
    /// The second on the source's clock that becomes 0.
    var origin: Double
    var stills: Stills
    /// Seconds.
    var duration: Double

    /// Seconds from key frame to key frame: players jump to them at once, and every group is closed. (Five would make the file a tenth smaller.)
    static let keyframeInterval = 2.0
    /// Above this every second, third … frame goes. Cameras of 59.94 and 60 stay whole.
    static let rateMax = 60.5
    /// Sound that starts earlier than the picture by more than this keeps its lead; less is cut off.
    static let leadMin = 0.1
    /// A longer lead is a fault of the file.
    static let leadMax = 60.0
    /// Seconds; what an animation shows after it is left out.
    static let animationMax = 24.0 * 3600
    /// Time bases coarser than this could not hold the shift to 0.
    static let ticksMin = 10_000
    static let ticksMax = 1_000_000

    private static let bounds: [(OutputName, PictureBounds)] = [
        (.rendition1080, .p1080), (.rendition720, .p720), (.rendition480, .p480),
    ]

    /// - Parameter isSafest: the slow path, for a second attempt.
    init(_ survey: Survey, _ video: VideoFacts, settings: TranscodeSettings, isSafest: Bool = false) {
        duration = survey.duration
        origin = Self.origin(video: video.start, sound: survey.soundStart)
        stills = Stills(settings, duration: max(0, video.end - origin), display: video.displaySize)
        let wanted = Self.wanted(settings, video)
        let delivery = Conformance.delivery(of: survey)
        if wanted.isEmpty {
            work = .nothing
        } else if !isSafest, wanted.map(\.0) == [.rendition1080], delivery == .original || delivery == .remux {
            work = .copy(name: .rendition1080)
        } else {
            work = .encode(
                Self.encode(
                    video, wanted: wanted, sound: Sound(survey.tracks), duration: survey.duration, isSafest: isSafest))
        }
    }

    /// Of an animation, whose pictures come whole and have no sound.
    init(animation: VideoFacts, settings: TranscodeSettings) {
        duration = animation.end
        origin = 0
        stills = Stills(settings, duration: duration, display: animation.displaySize)
        let wanted = Self.wanted(settings, animation)
        work =
            wanted.isEmpty
            ? .nothing
            : .encode(Self.encode(animation, wanted: wanted, sound: nil, duration: duration, isSafest: false))
    }

    /// A smaller rendition that would not be smaller than the one before it is left out.
    private static func wanted(_ settings: TranscodeSettings, _ video: VideoFacts) -> [(OutputName, PictureBounds)] {
        let display = video.displaySize
        var last = (width: 0, height: 0)
        return bounds.filter { name, bounds in
            let size = bounds.fit(display.width, display.height)
            guard settings.outputs.contains(name), size != last else { return false }
            last = size
            return true
        }
    }

    private static func encode(
        _ video: VideoFacts, wanted: [(OutputName, PictureBounds)], sound: Sound?, duration: Double,
        isSafest: Bool
    ) -> Encode {
        let display = video.displaySize
        let tooMany = keepEvery(video, duration: duration)
        // A rate that is high for a while only must not cost frames elsewhere.
        let keepEvery = video.hasVariableRate ? 1 : tooMany
        let rate = max(1, min(video.averageRate / Double(keepEvery) * (video.isInterlaced ? 2 : 1), rateMax))
        return Encode(
            timeBase: timeBase(video.timeBase), rate: Rational(Int32((rate * 1000).rounded()), 1000),
            keepEvery: keepEvery, intervalMin: tooMany > keepEvery ? 1 / rateMax : 0,
            renditions: wanted.enumerated().map { number, wanted in
                let size = wanted.1.fit(display.width, display.height)
                return Rendition(
                    name: wanted.0, width: size.width, height: size.height,
                    source: number > 0 ? .larger : .decoded(video, isSafest: isSafest))
            },
            sound: sound)
    }

    static func origin(video: Double, sound: Double?) -> Double {
        guard let sound, (leadMin...leadMax).contains(video - sound) else { return video }
        return sound
    }

    /// Whole frames are dropped evenly, so that motion stays even. Where the sound shows that the picture's clock is wrong (all frames
    /// within an instant), nothing is dropped.
    static func keepEvery(_ video: VideoFacts, duration: Double) -> Int {
        let rate =
            duration > 0 ? min(video.averageRate, Double(video.frames) / duration * overLength) : video.averageRate
        return rate > rateMax ? Int((rate / rateMax).rounded(.up)) : 1
    }
    /// The sound may be so much longer than the picture before its length counts against the picture's rate.
    private static let overLength = 2.0

    static func timeBase(_ source: Rational) -> Rational {
        let ticks = source.isKnown ? source.inverse.double : 0
        guard ticks >= 1, ticks <= Double(ticksMax) else { return Rational(1, 90_000) }
        guard ticks < Double(ticksMin) else { return source }
        let factor = Int((Double(ticksMin) / ticks).rounded(.up))
        return source.scaled(by: 1, over: factor)
    }
}

extension TranscodePlan.Sound {
    /// AAC knows these two everywhere; other rates become 48 kHz.
    private static let keptRates: Set<Int> = [44_100, 48_000]

    /// - Returns: nil where there is nothing to hear.
    init?(_ tracks: TrackChoice) {
        guard let track = tracks.audio else { return nil }
        streams = [track.index] + (tracks.rightAudio.map { [$0.index] } ?? [])
        sampleRate = Self.keptRates.contains(track.sampleRate) ? track.sampleRate : 48_000
        channels = track.channels == 1 && tracks.rightAudio == nil ? 1 : 2
        bitRate = channels == 1 ? 96_000 : 160_000
    }

    /// Of full scale. Several loud channels together come to more than it, and would be cut off; what does not is left as it is.
    static let mixPeak = 0.97

    /// The filters for frames whose times count from the output's beginning.
    /// - Parameters:
    ///   - first: the sample of the output with which they begin.
    ///   - channels: of the frames.
    func chain(from first: Int64, _ mix: SoundMix, channels: Int) -> String {
        let layout = channelsPerStream == 1 ? "mono" : "stereo"
        var filters: [String] = []
        if case .pair(let left, let right) = mix { filters.append("pan=\(layout)|c0=c\(left)|c1=c\(right)") }
        // Gaps are filled and overlaps cut; the speed is never bent. Sound from before the first sample is cut, a late start filled.
        filters += [
            "aresample=\(sampleRate):async=1:first_pts=\(first)",
            "aformat=sample_fmts=fltp:sample_rates=\(sampleRate):channel_layouts=\(layout)",
        ]
        if channels > 2, filters.count == 2 {
            filters += ["alimiter=limit=\(Self.mixPeak):level=disabled:latency=enabled", "aformat=sample_fmts=fltp"]
        }
        return filters.joined(separator: ",")
    }
}
