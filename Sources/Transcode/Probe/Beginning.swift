import FFmpeg
import Vocabulary

/// Decodes the first frames of a picture track: what they turn out to be outranks what the container says.
struct Beginning: ~Copyable {
    private let decoder: Decoder
    private let frame: Frame
    private let first: Frame
    private(set) var packets = 0
    private(set) var packetBytes: Int64 = 0
    private(set) var isDone = false
    private(set) var isDamaged = false
    private var decoded = 0
    private var lastTime: Int64?
    /// From one decoded picture to the next, in the stream's time base.
    private(set) var intervalMin: Int64?
    private var interlaced = 0
    private var hasFirst = false

    private init(_ decoder: consuming Decoder, _ frame: consuming Frame, _ first: consuming Frame) {
        self.decoder = decoder
        self.frame = frame
        self.first = first
    }
    static func open(_ demuxer: borrowing Demuxer, video: StreamDescription, limits: MediaLimits) throws(Failure)
        -> Beginning
    {
        Beginning(
            try Decoder.open(demuxer, stream: video.index, threads: 1, pixelCountMax: limits.pixelCountMax),
            try Frame.allocate(), try Frame.allocate())
    }

    /// Codecs of whole pictures that say nothing of fields, or nothing that their encoders keep to: the container's word is all there is.
    private static let fieldlessCodecs: Set<String> = [
        "mjpeg", "ffv1", "huffyuv", "ffvhuff", "utvideo", "magicyuv", "v210", "v410",
    ]

    /// A majority, since single frames are flagged wrong by some encoders.
    var isInterlaced: Bool { interlaced * 2 > decoded }

    mutating func take(_ packet: borrowing Packet) throws(Failure) {
        packets += 1
        if packetBytes == 0 { packetBytes = Int64(packet.bytes) }
        if try decoder.send(packet) == .damaged { isDamaged = true }
        try drain()
        if packets >= TrackSurvey.decodePacketMax { isDone = true }
    }

    mutating func finish() throws(Failure) {
        guard !isDone else { return }
        try decoder.finish()
        try drain()
        isDone = true
    }

    private mutating func drain() throws(Failure) {
        while !isDone {
            switch try decoder.receive(into: frame) {
            case .needsInput, .end: return
            case .damaged: isDamaged = true
            case .frame:
                decoded += 1
                if frame.isInterlaced { interlaced += 1 }
                if frame.isDamaged { isDamaged = true }
                if let time = frame.bestTimestamp {
                    if let lastTime, time > lastTime { intervalMin = min(intervalMin ?? .max, time - lastTime) }
                    lastTime = time
                }
                if !hasFirst {
                    try first.takeReference(to: frame)
                    hasFirst = true
                }
                frame.unreference()
                let isLarge = first.width * first.height > TrackSurvey.interlacedPixelMax
                if isLarge || decoded >= TrackSurvey.sampleFrameMax { isDone = true }
            }
        }
    }

    /// The decoder knows the codec, but not what this stream does with it.
    var isRefused: Bool { !hasFirst && decoder.hasRefused }

    /// When the first decodable frame is shown, in the stream's time base.
    var firstTime: Int64? { hasFirst ? first.bestTimestamp : nil }

    func facts(
        _ video: StreamDescription, frames: Int, span: Span, isVariable: Bool, keyframeIntervalMax: Double?,
        hasEdits: Bool
    ) -> VideoFacts? {
        guard hasFirst else { return nil }
        let shown = first.color
        let color = ColorTags(
            range: shown.range ?? video.color.range, primaries: shown.primaries ?? video.color.primaries,
            transfer: shown.transfer ?? video.color.transfer, matrix: shown.matrix ?? video.color.matrix)
        let aspect = video.sampleAspect.isKnown ? video.sampleAspect : first.sampleAspect
        let area = ActiveArea(codec: video.codec, width: first.width, height: first.height, sampleAspect: aspect)
        let isByContainer = !isInterlaced && video.isInterlaced && Self.fieldlessCodecs.contains(video.codec ?? "")
        var facts = VideoFacts(
            stream: video.index, codec: video.codec, profile: video.profile, width: first.width, height: area.height,
            cropTop: area.cropTop, sampleAspect: area.sampleAspect,
            orientation: (video.displayMatrix ?? first.displayMatrix).map(Orientation.init(matrix:)) ?? .upright,
            pixelFormat: first.pixelFormat, color: color,
            hdr: VideoFacts.HDR(
                color: color, peak: first.peakLuminance, dolbyProfile: video.dolbyVisionProfile,
                dolbyCompatibility: video.dolbyVisionCompatibility, hasDolbyMetadata: first.hasDolbyVisionMetadata),
            hasAlpha: first.pixelFormat.hasAlpha, isInterlaced: isInterlaced || isByContainer,
            timeBase: video.timeBase, frames: frames,
            averageRate: span.rate, hasVariableRate: isVariable,
            start: first.bestTimestamp.map { max(span.start, video.timeBase.seconds($0)) } ?? span.start,
            end: span.end,
            keyframeIntervalMax: keyframeIntervalMax, hasEdits: hasEdits)
        if isByContainer { facts.fieldOrder = video.isBottomFieldFirst ? .bottomFirst : .topFirst }
        return facts
    }
}

/// The part of the coded picture that is meant to be seen.
struct ActiveArea: Equatable {
    var height: Int
    var cropTop: Int
    var sampleAspect: Rational

    /// D-10 (SMPTE 356M) codes lines of the vertical blanking above the picture: 32 of 608, 26 of 512. The aspect ratio that it names is
    /// the picture's, not that of all lines.
    init(codec: String?, width: Int, height: Int, sampleAspect: Rational) {
        let active: [Int: Int] = [608: 576, 512: 486]
        guard codec == "mpeg2video", width == 720, let lines = active[height] else {
            self.height = height
            cropTop = 0
            self.sampleAspect = sampleAspect
            return
        }
        self.height = lines
        cropTop = height - lines
        self.sampleAspect = sampleAspect.isKnown ? sampleAspect.scaled(by: lines, over: height) : sampleAspect
    }
}
