public import Vocabulary

/// Looks at a video or sound recording without making anything from it.
public enum VideoProbe {
    /// - Parameters:
    ///   - input: a readable, seekable descriptor of a regular file; its position is neither used nor moved.
    ///   - file: the name that the report carries.
    /// - Returns: a report with a reason for a file that cannot be used.
    /// - Throws: only for faults of the disk or of Rushes itself.
    public static func probe(_ input: Int32, file: String, limits: MediaLimits) throws(Failure) -> ProbeReport {
        switch try Survey.make(input, limits: limits) {
        case .rejected(let reason): ProbeReport(file: file, facts: nil, reason: reason)
        case .surveyed(let survey):
            ProbeReport(file: file, facts: survey.facts, reason: survey.reason, warnings: survey.warnings)
        }
    }
}

extension Survey {
    /// As the report prints them.
    var facts: MediaFacts? {
        guard tracks.video != nil || !tracks.allAudio.isEmpty else { return nil }
        var facts = MediaFacts(kind: tracks.video == nil ? .audio : .video, format: format)
        facts.duration = duration > 0 ? rounded(duration) : nil
        facts.audio = tracks.allAudio.filter { $0.codec != nil }.map { track in
            MediaFacts.Audio(
                codec: track.codec, channels: track.channels, layout: track.layout,
                sampleRate: track.sampleRate > 0 ? track.sampleRate : nil)
        }
        facts.takenAt = capture.takenAt
        facts.takenAtSource = capture.takenAtSource
        facts.gps = capture.gps
        facts.camera = capture.camera
        facts.codec = tracks.video.flatMap { $0.codec ?? $0.tag }
        guard let video else { return facts }
        (facts.width, facts.height) = video.displaySize
        facts.rotationClockwise = video.orientation.degreesClockwise
        facts.pixelFormat = video.pixelFormat.name
        facts.colorPrimaries = video.color.primaries
        facts.colorTransfer = video.color.transfer
        facts.colorSpace = video.color.matrix
        facts.hdr = video.hdr?.name
        facts.interlaced = video.isInterlaced
        facts.averageFPS = video.averageRate > 0 ? rounded(video.averageRate) : nil
        facts.hasVariableFrameRate = video.hasVariableRate
        facts.frames = video.frames
        facts.delivery = Conformance.delivery(of: self)
        return facts
    }
}

/// To a thousandth: below that a container's time base already rounds.
func rounded(_ value: Double) -> Double { (value * 1000).rounded() / 1000 }
