import FFmpeg
import Vocabulary

/// One sequential decode that feeds every rendition, the sound and the stills.
final class EncodeRun {
    private let survey: Survey
    private let video: VideoFacts
    private let plan: TranscodePlan
    private let encode: TranscodePlan.Encode
    private let outputs: OutputFiles
    private let decoder: Decoder
    private let sound: SoundEncoder?
    private let renditions: Renditions
    private let frame: Frame
    private let packet: Packet

    private var decoded = 0
    private var kept = 0
    private var damaged = 0
    private var lastTime: Int64?
    private var lastInterval: Int64 = 0
    private var thinning: Thinning

    private init(
        _ survey: Survey, _ video: VideoFacts, plan: TranscodePlan, encode: TranscodePlan.Encode, outputs: OutputFiles,
        decoder: consuming Decoder, sound: SoundEncoder?, renditions: Renditions, frame: consuming Frame,
        packet: consuming Packet
    ) {
        self.survey = survey
        self.video = video
        self.plan = plan
        self.encode = encode
        self.outputs = outputs
        self.decoder = decoder
        self.sound = sound
        self.renditions = renditions
        self.frame = frame
        self.packet = packet
        thinning = Thinning(encode)
    }

    static func open(
        _ demuxer: borrowing Demuxer, _ survey: Survey, _ video: VideoFacts, plan: TranscodePlan,
        encode: TranscodePlan.Encode, _ settings: TranscodeSettings, threads: ThreadPlan, _ limits: MediaLimits,
        outputs: OutputFiles
    ) throws(Failure) -> EncodeRun {
        let decoder = try Decoder.open(
            demuxer, stream: video.stream, threads: threads.decoder, pixelCountMax: limits.pixelCountMax)
        let sound = try openSound(demuxer, encode.sound, origin: plan.origin)
        demuxer.keepOnly(Set([video.stream] + (encode.sound?.streams ?? [])))
        let renditions = try Renditions.open(
            plan, encode: encode, settings: settings, threads: threads, limits: limits, outputs: outputs, sound: sound)
        return EncodeRun(
            survey, video, plan: plan, encode: encode, outputs: outputs, decoder: decoder, sound: sound,
            renditions: renditions, frame: try Frame.allocate(), packet: try Packet.allocate())
    }

    /// - Returns: nil also where the libraries refuse the track: the pictures come out without it.
    private static func openSound(
        _ demuxer: borrowing Demuxer, _ planned: TranscodePlan.Sound?, origin: Double
    ) throws(Failure) -> SoundEncoder? {
        guard let planned else { return nil }
        do { return try SoundEncoder.open(demuxer, plan: planned, origin: origin) } catch {
            guard [.internalError, .corrupt, .unsupportedCodec].contains(error.code) else { throw error }
            return nil
        }
    }

    func run(_ demuxer: borrowing Demuxer) throws(Failure) -> TranscodeReport {
        while try readPacket(demuxer) {
            defer { packet.unreference() }
            if packet.stream == video.stream {
                if try decoder.send(packet) == .damaged { damaged += 1 }
                try drainDecoder()
            } else if let sound {
                try sound.take(packet) { (packet) throws(Failure) in try self.write(sound: packet) }
            }
        }
        try decoder.finish()
        try drainDecoder()
        guard kept > 0, let lastTime else {
            return TranscodeReport(
                outcome: .reject, segments: 0, warnings: survey.warnings, reason: OpenVerdict.nothingDecodes)
        }
        let end = pictureEnd(after: lastTime)
        try renditions.finishPictures(end: end)
        try sound?.finish { (packet) throws(Failure) in try self.write(sound: packet) }
        let made = try renditions.finish(soundEnd: hasSound ? sound?.end : nil)
        return TranscodeReport(
            outcome: .encoded, width: made.width, height: made.height, duration: rounded(made.end), frames: made.frames,
            previewColor: made.previewColor, loudness: sound?.loudness, warnings: warnings)
    }

    /// The source's own end where the last picture can last so long; what a damaged container promises beyond it is not made up.
    private func pictureEnd(after lastTime: Int64) -> Double {
        let last = encode.timeBase.seconds(lastTime)
        let usual = lastInterval > 0 ? encode.timeBase.seconds(lastInterval) : 1 / max(video.averageRate, 1)
        let promised = video.end - plan.origin
        guard promised > last else { return last + usual }
        return damaged > 0 ? min(promised, last + usual) : promised
    }

    /// A container that is damaged further on ends where it can no longer be read.
    private func readPacket(_ demuxer: borrowing Demuxer) throws(Failure) -> Bool {
        do { return try demuxer.read(into: packet) } catch {
            guard error.code == .corrupt || error.code == .internalError else { throw error }
            damaged += 1
            return false
        }
    }

    private func drainDecoder() throws(Failure) {
        while true {
            switch try decoder.receive(into: frame) {
            case .needsInput, .end: return
            case .damaged: damaged += 1
            case .frame:
                defer { frame.unreference() }
                if frame.isDamaged { damaged += 1 }
                try takeFrame()
            }
        }
    }

    private func takeFrame() throws(Failure) {
        let number = decoded
        decoded += 1
        guard number.isMultiple(of: encode.keepEvery) else { return }
        let usual = encode.timeBase.ticks(1 / max(video.averageRate, 1))
        let time = time(ofFrame: number) ?? (lastTime.map { $0 + max(lastInterval, usual) } ?? 0)
        // Pictures before 0 are outside what is shown; rounding alone is not.
        guard time >= 0 || (kept == 0 && time > -usual / 2) else { return }
        let shown = max(time, 0)
        if let lastTime, shown <= lastTime { return }
        guard thinning.keeps(shown) else { return }
        if let lastTime { lastInterval = shown - lastTime }
        lastTime = shown
        kept += 1
        frame.pts = shown
        try renditions.take(frame)
        let seconds = encode.timeBase.seconds(shown)
        let fraction = plan.duration > 0 ? min(seconds / plan.duration, 1) : 0
        try outputs.progress(MediaProgress(fraction: fraction, frames: kept))
    }

    /// In the plan's time base.
    private func time(ofFrame number: Int) -> Int64? {
        guard !video.hasTimesOfDecoding else {
            return encode.timeBase.ticks(video.start - plan.origin + Double(number) / video.averageRate)
        }
        return frame.bestTimestamp.map {
            video.timeBase.convert($0, to: encode.timeBase) - encode.timeBase.ticks(plan.origin)
        }
    }

    /// Pictures that were counted in the container and are not among those that came out.
    private var missing: Int {
        let expected = (video.frames + encode.keepEvery - 1) / encode.keepEvery
        // Codecs with pictures that are only referred to, and fields that were counted in pairs, make the count a little too large.
        let share = 0.05, slack = 2
        guard encode.intervalMin == 0, expected - kept > slack + Int(Double(expected) * share) else { return 0 }
        return expected - kept
    }

    private func write(sound packet: borrowing Packet) throws(Failure) {
        guard let sound else { return }
        try renditions.take(sound: packet, timeBase: sound.encoder.timeBase)
    }

    /// A track without one frame is left out of the file by the muxer.
    private var hasSound: Bool { sound.map { $0.packets > 0 } ?? false }

    private var warnings: [MediaWarning] {
        var warnings = survey.warnings
        let isKnown = warnings.contains { $0.code == "damaged-frames" }
        if damaged > 0 || survey.isDamaged, !isKnown {
            warnings.append(MediaWarning("damaged-frames", "Some pictures are damaged in the source."))
        }
        if missing > 0 {
            warnings.append(
                MediaWarning("frames-missing", "\(missing) of \(video.frames) pictures did not come out of the source.")
            )
        }
        if encode.sound != nil, !hasSound {
            warnings.append(
                MediaWarning("audio-track-skipped", "Nothing of the sound track can be used; it is left out."))
        } else if let sound, sound.damagedPackets > 0 || sound.isRefused {
            warnings.append(MediaWarning("damaged-sound", "Some of the sound is damaged in the source."))
        }
        return warnings
    }
}
