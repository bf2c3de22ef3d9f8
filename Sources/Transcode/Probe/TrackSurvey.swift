import FFmpeg
import Vocabulary

/// Counts and times the frames of a picture track, and decodes its beginning.
///
/// A complete index (MP4, MOV) answers the counting without reading the samples; every other container is read through once.
struct TrackSurvey {
    /// Packets given to the decoder before the beginning counts as undecodable. A broadcast recording may start in the middle of a group
    /// of pictures, with references missing for some seconds.
    static let decodePacketMax = 300
    /// Decoded frames looked at for interlacing.
    static let sampleFrameMax = 6
    /// Larger pictures are never interlaced, and dear: one of them tells the rest.
    static let interlacedPixelMax = 1920 * 1088
    /// Samples read for their showing times where the index, which has decoding times, leaves doubt.
    static let timedSampleMax = 600

    var picture: VideoFacts?
    var frames = 0
    /// Seconds.
    var duration: Double?
    /// Seconds on the container's clock.
    var soundStart: Double?
    /// Read of the picture track.
    var packets = 0
    /// Samples that the index lists are past the end of the file.
    var isCut = false
    /// The last fragment is not whole.
    var endsEarly = false
    var isDamaged = false
    var isRefused = false
    var record: CameraRecords.Record?

    static func make(
        _ demuxer: borrowing Demuxer, video: StreamDescription, audio: StreamDescription?, source: SourceBytes,
        limits: MediaLimits
    ) throws(Failure) -> TrackSurvey {
        var survey = TrackSurvey()
        let kept = audio.map { [video.index, $0.index] } ?? [video.index]
        demuxer.keepOnly(Set(kept))
        let index = SampleIndex.read(demuxer, video: video)
        var timing = index?.timing ?? TimingSurvey()
        var keyframes = index?.keyframes ?? KeyframeSurvey()
        var sound = TimingSurvey()
        var early: [Int64] = []
        var order = DecodingOrder()
        var beginning = try Beginning.open(demuxer, video: video, limits: limits)
        let packet = try Packet.allocate()

        // Whether the rate varies is said of the whole recording, with what the edit list leaves out.
        // Where pictures are reordered, some recorders write irregular decoding times for pictures that are shown regularly.
        let needsTimes = index.map { $0.timing.isVariable && video.reorderDelay > 0 } ?? false
        var coded = TimingSurvey()
        while index == nil || !beginning.isDone || needsTimes && coded.frames < timedSampleMax {
            guard try demuxer.readWhatCanBeRead(into: packet) else { break }
            if packet.stream == video.index {
                if survey.record == nil, beginning.packets == 0 {
                    survey.record = record(of: packet, codec: video.codec)
                }
                if !beginning.isDone { try beginning.take(packet) }
                let isShown = packet.isShown(codec: video.codec)
                if needsTimes, isShown, let time = packet.pts { coded.add(time, duration: packet.duration) }
                if isShown { order.add(packet) }
                if index == nil, !isShown {
                    if let time = packet.pts ?? packet.dts { timing.lengthen(to: time + packet.duration) }
                }
                let counts = isShown && !packet.isDiscarded && !packet.isCorrupt
                // A decoding time cannot be held against the time at which a picture comes out of the decoder.
                if counts, let time = packet.pts, early.count < decodePacketMax { early.append(time) }
                if counts, index == nil {
                    if let time = packet.pts ?? packet.dts {
                        timing.add(time, duration: packet.duration)
                        if packet.isKey { keyframes.add(time) }
                    } else {
                        timing.addWithoutTime()
                    }
                }
            } else if index == nil, let time = packet.pts, packet.stream == audio?.index {
                sound.add(time, duration: packet.duration)
            }
            packet.unreference()
        }
        try beginning.finish()
        timing.finish()
        coded.finish()
        if index == nil, let (whole, missing) = order.completed() {
            timing = whole
            early += missing
        }
        let isVariable = needsTimes ? coded.isVariable : timing.isVariable

        let samples = index == nil ? SampleCheck.Findings() : try SampleCheck.spread(demuxer, video, source)
        survey.packets = beginning.packets
        survey.isRefused = beginning.isRefused
        survey.isDamaged = beginning.isDamaged || samples.hasDamage
        // A fragmented recording that stops is complete up to there; an index names samples that were once written.
        let missing = kept.reduce(0) { $0 + missingFromEnd(demuxer, stream: $1, size: demuxer.fileSize) }
        survey.isCut =
            index != nil && (missing > 0 || samples.endIsMissing)
            || video.codec == "dvvideo" && beginning.packetBytes > demuxer.fileSize
        survey.endsEarly = !survey.isCut && missing > 0
        // AVCHD and others hand out fields: two packets of half a frame each.
        let isByField = index == nil && beginning.isInterlaced && isField(video, timing, beginning)
        let packetsEach = isByField ? 2 : 1
        // A recording that starts inside a group of pictures has some that cannot be shown.
        let undecodable = beginning.firstTime.map { first in early.count { $0 < first } } ?? 0
        survey.frames = (timing.frames - undecodable + packetsEach - 1) / packetsEach
        var span = Span(
            timing, frames: (timing.frames + packetsEach - 1) / packetsEach, video: video,
            length: index == nil ? nil : video.duration)
        if undecodable > 0, let first = beginning.firstTime {
            span.start = max(span.start, video.timeBase.seconds(first))
        }
        survey.duration =
            index == nil
            ? span.duration(with: sound, audio: audio)
            : plausible(demuxer.duration, tracks: Self.shown(span, audio))
        survey.soundStart = audio.flatMap { audio in (sound.first ?? audio.start).map(audio.timeBase.seconds) }
        survey.picture = beginning.facts(
            video, frames: survey.frames, span: span, isVariable: !isByField && isVariable,
            keyframeIntervalMax: keyframes.longest(until: timing.end, in: video.timeBase),
            hasEdits: index?.hasEdits ?? false)
        survey.picture?.hasClockJumps = demuxer.hasJumped
        survey.picture?.hasTimesOfDecoding =
            order.isOfShowingTimes && video.reorderDelay > 0 && !isVariable && !isByField && !demuxer.hasJumped
            && index?.hasEdits != true
        return survey
    }

    /// The movie header counts other tracks too, and what stands still before the first picture. One that is far from all of that was
    /// never filled in.
    /// - Parameters:
    ///   - declared: seconds.
    ///   - tracks: seconds from the beginning of the first to the end of the last.
    static func plausible(_ declared: Double?, tracks: Double) -> Double {
        let share = 0.1, slack = 1.0
        guard let declared, abs(declared - tracks) <= tracks * share + slack else { return tracks }
        return declared
    }

    private static func shown(_ span: Span, _ audio: StreamDescription?) -> Double {
        guard let audio, let end = audio.end else { return span.length }
        return max(span.end, end) - min(span.start, audio.timeBase.seconds(audio.start ?? 0))
    }

    /// Of sound alone, counted where the header may be wrong: a fragmented, live or cut recording.
    /// - Returns: seconds; nil where the container's word stands.
    static func soundDuration(_ demuxer: borrowing Demuxer, _ audio: StreamDescription) throws(Failure) -> Double? {
        let isMovie = demuxer.formatName.hasPrefix("mov,")
        if isMovie, audio.frameCount > 0, let end = audio.end {
            return plausible(demuxer.duration, tracks: end - audio.timeBase.seconds(audio.start ?? 0))
        }
        guard isMovie || demuxer.formatName.hasPrefix("matroska") else { return nil }
        demuxer.keepOnly([audio.index])
        var timing = TimingSurvey()
        let packet = try Packet.allocate()
        while try demuxer.readWhatCanBeRead(into: packet) {
            if packet.stream == audio.index, let time = packet.pts { timing.add(time, duration: packet.duration) }
            packet.unreference()
        }
        guard let first = timing.first, let end = timing.end else { return nil }
        return audio.timeBase.seconds(end - first)
    }

    /// Whether less was found than the container's header promises.
    /// - Parameters:
    ///   - promised: seconds.
    ///   - frames: 0 where the header does not count them.
    func isShort(of promised: Double?, frames expected: Int) -> Bool {
        let share = 0.98
        if expected > 0 { return Double(frames) < Double(expected) * share }
        guard let promised, let duration else { return true }
        return duration < promised * share
    }

    private static func isField(
        _ video: StreamDescription, _ timing: TimingSurvey, _ beginning: borrowing Beginning
    ) -> Bool {
        guard video.averageRate.isKnown, let interval = timing.intervalMin else { return false }
        let share = 0.75, usual = video.averageRate.inverse.double
        // The average is not believed alone: of half a recording FFmpeg's MXF says half the rate.
        let frames = min(usual, beginning.intervalMin.map(video.timeBase.seconds) ?? usual)
        return video.timeBase.seconds(interval) < share * frames
    }

    private static func record(of packet: borrowing Packet, codec: String?) -> CameraRecords.Record? {
        switch codec {
        case "h264": packet.withBytes { CameraRecords.avchd([UInt8]($0.prefix(4096))) }
        case "dvvideo": packet.withBytes { CameraRecords.dv([UInt8]($0)) }
        default: nil
        }
    }

    /// How many of a track's indexed samples the file no longer has.
    static func missingFromEnd(_ demuxer: borrowing Demuxer, stream: Int, size: Int64) -> Int {
        guard demuxer.formatName.hasPrefix("mov,") else { return 0 }
        var missing = 0
        for number in 0..<demuxer.indexCount(stream: stream) {
            guard let entry = demuxer.indexEntry(stream: stream, number) else { continue }
            if entry.bytes < 0 || entry.position > size - Int64(entry.bytes) { missing += 1 }
        }
        return missing
    }
}

/// Where a picture track stands on the container's clock.
struct Span: Equatable {
    var start: Double
    var end: Double
    /// Frames a second.
    var rate: Double

    var length: Double { end - start }

    /// - Parameter length: of the edited track in its time base, where an index says it; the times are then decoding times.
    init(_ timing: TimingSurvey, frames: Int, video: StreamDescription, length: Int64?) {
        let first = timing.first ?? video.start ?? 0, last = timing.last ?? first
        start = video.timeBase.seconds(first)
        if let length, frames > 0 {
            var seconds = video.timeBase.seconds(length)
            // Of a track that is trimmed behind an empty edit, FFmpeg counts the empty one in.
            let counted = timing.end.map { video.timeBase.seconds($0 - first) } ?? seconds
            if start > 0, seconds > start, abs(seconds - start - counted) < abs(seconds - counted) { seconds -= start }
            end = start + seconds
            rate = Double(frames) / seconds
            return
        }
        let nominal = video.averageRate.isKnown ? 1 / video.averageRate.double : 0
        // A bare stream of coded pictures says no times, at most of the first.
        if timing.timed <= 1, frames > 1, nominal > 0 {
            end = start + Double(frames) * nominal
            rate = video.averageRate.double
            return
        }
        let shown = video.timeBase.seconds(last - first)
        let between = frames > 1 && shown > 0 ? shown / Double(frames - 1) : nominal
        let byPacket = timing.end.map { video.timeBase.seconds($0 - last) } ?? 0
        end = start + shown + (byPacket > 0 ? byPacket : between)
        rate = between > 0 ? 1 / between : 0
    }

    /// Seconds over picture and sound.
    func duration(with sound: TimingSurvey, audio: StreamDescription?) -> Double {
        guard let audio, let first = sound.first, let last = sound.end else { return length }
        return max(end, audio.timeBase.seconds(last)) - min(start, audio.timeBase.seconds(first))
    }
}

/// What the decoding times say where the container leaves out when pictures are shown, or says it wrong.
struct DecodingOrder {
    private static let packetMax = TrackSurvey.decodePacketMax

    private var timing = TimingSurvey()
    /// From the decoding of the first packet to its showing.
    private var firstDelay: Int64?
    private var packets = 0
    private var differing = 0
    private var unshown = 0
    /// Decoding times of the first packets without a showing time.
    private var early: [Int64] = []

    mutating func add(_ packet: borrowing Packet) {
        guard !packet.isDiscarded, !packet.isCorrupt else { return }
        packets += 1
        if packets == 1, let shown = packet.pts, let decoded = packet.dts { firstDelay = max(0, shown - decoded) }
        if let shown = packet.pts {
            if shown != packet.dts { differing += 1 }
        } else {
            unshown += 1
        }
        guard let decoded = packet.dts else { return }
        timing.add(decoded, duration: packet.duration)
        if packet.pts == nil, packets <= Self.packetMax { early.append(decoded) }
    }

    /// Every packet is said to be shown when it is decoded, which is impossible where pictures are reordered.
    var isOfShowingTimes: Bool { packets > 1 && differing == 0 && unshown == 0 }

    /// Program streams say when some pictures are shown, and when all are decoded: the first moved by what lies between the two is regular
    /// where the recording is.
    /// - Returns: nil where no packet lacks a showing time, or some lack both. With it, of the first packets that lack one, the moved times.
    func completed() -> (timing: TimingSurvey, early: [Int64])? {
        guard unshown > 0, timing.timed == packets else { return nil }
        var whole = timing
        whole.finish()
        // Where nothing says when the first is shown, a decoding time cannot be held against the time at which a picture comes out.
        guard let firstDelay else { return (whole, []) }
        whole.shift(by: firstDelay)
        return (whole, early.map { $0 + firstDelay })
    }
}

/// The stretches between key frames.
struct KeyframeSurvey {
    private var previous: Int64?
    private var longest: Int64 = 0

    mutating func add(_ time: Int64) {
        if let previous { longest = max(longest, time - previous) }
        previous = time
    }
    /// Seconds; nil without any key frame.
    func longest(until end: Int64?, in timeBase: Rational) -> Double? {
        previous.map { timeBase.seconds(max(longest, (end ?? $0) - $0)) }
    }
}

/// The complete index of an MP4 or MOV that is not fragmented.
struct SampleIndex {
    var timing = TimingSurvey()
    var keyframes = KeyframeSurvey()
    var hasEdits = false

    static func read(_ demuxer: borrowing Demuxer, video: StreamDescription) -> SampleIndex? {
        let count = demuxer.indexCount(stream: video.index)
        guard demuxer.formatName.hasPrefix("mov,"), video.frameCount > 0, count > 0 else { return nil }
        var index = SampleIndex()
        // Decoding times differ from showing times by a delay, which does not matter for lengths; the first shown time is the stream's.
        var shift: Int64?
        var lastDuration: Int64 = 0
        var previous: Int64?
        var discarded = 0
        for number in 0..<count {
            guard let entry = demuxer.indexEntry(stream: video.index, number) else { continue }
            if let previous, entry.timestamp > previous { lastDuration = entry.timestamp - previous }
            previous = entry.timestamp
            if entry.isDiscarded || entry.bytes == 0 {
                discarded += 1
                continue
            }
            let offset = shift ?? (video.start ?? entry.timestamp) - entry.timestamp
            shift = offset
            index.timing.add(entry.timestamp + offset, duration: lastDuration)
            if entry.isKey { index.keyframes.add(entry.timestamp + offset) }
        }
        index.timing.finish()
        index.hasEdits = discarded > 0 || count != video.frameCount
        return index
    }
}
