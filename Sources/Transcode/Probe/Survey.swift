import FFmpeg
import Vocabulary

/// Everything that is found out about a source before anything is made from it. Probe, transcode and poster all start here, so that they
/// cannot disagree.
struct Survey {
    var format: MediaFormat?
    var boxes: ISOBoxes?
    var tracks: TrackChoice
    var otherTrackCount: Int
    /// Nil for sound alone, and where the picture cannot be decoded.
    var video: VideoFacts?
    /// Seconds shown, over the chosen picture and sound.
    var duration: Double
    /// Seconds on the container's clock.
    var soundStart: Double?
    var capture: CaptureMetadata
    var warnings: [MediaWarning]
    /// Pictures at the beginning do not decode as they should.
    var isDamaged = false
    /// A verdict against the file; the facts stand as far as they were found.
    var reason: Reason?

    /// What came of looking at a file: nothing at all could be found out about some.
    enum Outcome {
        case rejected(Reason)
        case surveyed(Survey)
    }

    /// - Throws: only for faults of the disk or of this program.
    static func make(_ descriptor: Int32, limits: MediaLimits) throws(Failure) -> Outcome {
        let source = try SourceBytes(descriptor)
        guard source.size > 0 else { return .rejected(OpenVerdict.empty) }
        let head = try source.read(at: 0, count: MediaFormat.headLength)
        let format = MediaFormat.sniff(head)
        let boxes = format == .isoMedia ? try ISOBoxes.read(source) : nil
        let isCut = DeclaredLength.isCut(format, head: head, size: source.size)
        do {
            let demuxer = try Demuxer.open(descriptor)
            return try survey(
                demuxer, source: source, head: head, format: format, boxes: boxes, isCut: isCut, limits: limits)
        } catch {
            switch error.code {
            case .sourceUnreadable, .overBudget, .cancelled: throw error
            case .unsupportedCodec: return .rejected(OpenVerdict.noDecoder(nil))
            default: return .rejected(OpenVerdict.reason(format: format, boxes: boxes, isCut: isCut))
            }
        }
    }

    private static func survey(
        _ demuxer: borrowing Demuxer, source: SourceBytes, head: [UInt8], format: MediaFormat?, boxes: ISOBoxes?,
        isCut: Bool,
        limits: MediaLimits
    ) throws(Failure) -> Outcome {
        let streams = demuxer.streams
        let tracks = TrackChoice(streams)
        var survey = Survey(
            format: format, boxes: boxes, tracks: tracks,
            otherTrackCount: streams.count - (tracks.video == nil ? 0 : 1) - tracks.allAudio.count, video: nil,
            duration: demuxer.duration ?? 0,
            capture: CaptureMetadata(container: demuxer.metadata, video: tracks.video?.metadata ?? [:]), warnings: [])
        if survey.capture.takenAt == nil, format == .asf, let at = DeclaredLength.asfFileProperties(head),
            head.count >= at + 56,
            let time = CaptureTime.fileTime(head.littleEndian(at + 48, bytes: 8))
        {
            survey.capture.takenAt = time
            survey.capture.takenAtSource = "asf-creation-date"
        }
        if format == .avi, let time = try RIFFDate.text(source).flatMap(RIFFDate.normalized) {
            survey.capture.takenAt = time
            survey.capture.takenAtSource = "avi-idit"
        }
        survey.warnings += tracks.skippedAudio.map { track in
            MediaWarning(
                "audio-track-skipped",
                "Sound track \(track.index) is left out: "
                    + (track.isEncrypted
                        ? "it is protected."
                        : track.hasDecoder
                            ? "nothing of it was found." : "there is no decoder for \(track.codec ?? "it")."))
        }

        let isProtected = boxes?.isProtected == true || format == .asf && DeclaredLength.asfIsProtected(head)
        if isProtected || tracks.video?.isEncrypted == true {
            return .surveyed(survey.with(OpenVerdict.encrypted))
        }
        guard let track = tracks.video else {
            return try surveySound(demuxer, survey, format: format, size: source.size, isCut: isCut, limits: limits)
        }
        guard track.hasDecoder else { return .surveyed(survey.with(OpenVerdict.noDecoder(track.codec ?? track.tag))) }
        if track.width * track.height > limits.pixelCountMax {
            return .surveyed(survey.with(OpenVerdict.tooLarge(track.width, track.height)))
        }

        var counted = try TrackSurvey.make(demuxer, video: track, audio: tracks.audio, source: source, limits: limits)
        if let record = counted.record, let time = record.takenAt {
            survey.capture.takenAt = time
            survey.capture.takenAtSource = "camera-record"
            survey.capture.camera = survey.capture.camera ?? record.camera
        }
        // The header's claim alone is not enough: some recorders write a length that was never right.
        counted.isCut = counted.isCut || isCut && counted.isShort(of: demuxer.duration, frames: track.frameCount)
        guard let picture = counted.picture, counted.frames > 0 else {
            if counted.isRefused { return .surveyed(survey.with(OpenVerdict.noDecoder(track.codec ?? track.tag))) }
            let hasEnded = counted.isCut || isCut || counted.packets == 0
            return .surveyed(survey.with(hasEnded ? OpenVerdict.truncated : OpenVerdict.nothingDecodes))
        }
        survey.video = picture
        survey.soundStart = counted.soundStart
        survey.duration = counted.duration ?? survey.duration
        survey.isDamaged = counted.isDamaged
        if counted.isDamaged {
            survey.warnings.append(MediaWarning("damaged-frames", "Some pictures at the beginning are damaged."))
        }
        if counted.isCut { return .surveyed(survey.with(OpenVerdict.truncated)) }
        if counted.endsEarly || boxes?.isFragmented == true && boxes?.isCut == true {
            survey.warnings.append(
                MediaWarning("cut-end", "The end of the recording is missing; the rest is complete."))
        }
        if case .dolbyVision = picture.hdr { return .surveyed(survey.with(OpenVerdict.dolbyVision)) }
        if picture.width * picture.height > limits.pixelCountMax {
            return .surveyed(survey.with(OpenVerdict.tooLarge(picture.width, picture.height)))
        }
        if survey.duration > limits.durationMax { return .surveyed(survey.with(OpenVerdict.tooLong(survey.duration))) }
        return .surveyed(survey)
    }

    private static func surveySound(
        _ demuxer: borrowing Demuxer, _ survey: Survey, format: MediaFormat?, size: Int64, isCut: Bool,
        limits: MediaLimits
    ) throws(Failure) -> Outcome {
        // The weakest detections (a stray frame header of MP3 or AAC in any bytes) are no proof of media.
        let certain = 25
        guard !survey.tracks.allAudio.isEmpty, format != nil || demuxer.probeScore > certain else {
            let hasNoEnd = isCut || survey.boxes?.isCut == true
            return .rejected(hasNoEnd ? OpenVerdict.truncated : OpenVerdict.notMedia)
        }
        if survey.tracks.allAudio.contains(where: \.isEncrypted) {
            return .surveyed(survey.with(OpenVerdict.encrypted))
        }
        guard let track = survey.tracks.audio else {
            let codec = survey.tracks.allAudio.first.map { $0.codec ?? $0.tag }
            return .surveyed(survey.with(OpenVerdict.noDecoder(codec)))
        }
        var survey = survey
        if let duration = try TrackSurvey.soundDuration(demuxer, track) { survey.duration = duration }
        if isCut || TrackSurvey.missingFromEnd(demuxer, stream: track.index, size: size) > 0 {
            return .surveyed(survey.with(OpenVerdict.truncated))
        }
        if survey.duration > limits.durationMax { return .surveyed(survey.with(OpenVerdict.tooLong(survey.duration))) }
        return .surveyed(survey)
    }

    private func with(_ reason: Reason) -> Survey {
        var survey = self
        survey.reason = reason
        return survey
    }
}
