/// What probing found out about a file.
public struct MediaFacts: Codable, Sendable, Equatable {
    public enum Kind: String, Codable, Sendable, Hashable { case video, photo, animation, audio }

    /// What a video needs to become its own 1080p rendition. Nil for other kinds.
    public enum Delivery: String, Codable, Sendable, Hashable {
        /// Conforming and with its index in front: the original is the rendition.
        case original
        /// Conforming, but the index has to move to the front.
        case remux
        case encode
    }

    public struct Audio: Codable, Sendable, Equatable {
        public var codec: String?
        public var channels: Int
        public var layout: String?
        /// Hz.
        public var sampleRate: Int?
        public init(codec: String?, channels: Int, layout: String?, sampleRate: Int?) {
            self.codec = codec
            self.channels = channels
            self.layout = layout
            self.sampleRate = sampleRate
        }
        enum CodingKeys: String, CodingKey {
            case codec, channels, layout
            case sampleRate = "sample_rate"
        }
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(codec, forKey: .codec)
            try container.encode(channels, forKey: .channels)
            try container.encode(layout, forKey: .layout)
            try container.encode(sampleRate, forKey: .sampleRate)
        }
    }

    public var kind: Kind
    public var format: MediaFormat?
    /// Pixels, upright: after rotation and sample aspect ratio.
    public var width: Int?
    public var height: Int?
    /// Seconds shown: inside the edit list.
    public var duration: Double?
    /// Degrees by which the stored picture has to be turned clockwise: 0, 90, 180, 270.
    public var rotationClockwise: Int?
    public var codec: String?
    public var pixelFormat: String?
    public var colorPrimaries: String?
    public var colorTransfer: String?
    public var colorSpace: String?
    /// `hlg`, `pq`, `dolby-vision-N`; nil for standard dynamic range.
    public var hdr: String?
    /// The picture is of standard range and carries a second one from which a high range can be made.
    public var hasGainMap: Bool?
    public var interlaced: Bool?
    public var averageFPS: Double?
    public var hasVariableFrameRate: Bool?
    /// Frames shown: inside the edit list.
    public var frames: Int?
    public var audio: [Audio]
    /// ISO 8601; with an offset or `Z` where the file says one, else local time without.
    public var takenAt: String?
    /// Which field `takenAt` was read from.
    public var takenAtSource: String?
    /// Latitude, longitude in degrees.
    public var gps: [Double]?
    public var camera: String?
    /// Apple's identifier that a Live Photo's still and film share.
    public var contentIdentifier: String?
    public var delivery: Delivery?

    public init(kind: Kind, format: MediaFormat? = nil) {
        self.kind = kind
        self.format = format
        audio = []
    }

    enum CodingKeys: String, CodingKey, CaseIterable {
        case kind, format, width, height, codec, hdr, interlaced, frames, audio, gps, camera, delivery
        case duration = "duration_s"
        case rotationClockwise = "rotation_cw"
        case pixelFormat = "pixel_format"
        case colorPrimaries = "color_primaries"
        case colorTransfer = "color_transfer"
        case colorSpace = "color_space"
        case averageFPS = "avg_fps"
        case hasVariableFrameRate = "vfr"
        case hasGainMap = "gain_map"
        case contentIdentifier = "content_id"
        case takenAt = "taken_at"
        case takenAtSource = "taken_at_source"
    }
}

/// Something worth knowing that does not stop the file.
public struct MediaWarning: Codable, Sendable, Hashable {
    /// Stable, e.g. `audio-track-skipped`, `damaged-frames`.
    public var code: String
    public var message: String
    public init(_ code: String, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// Why a file was rejected, as `--json` and the wire print it.
public struct Reason: Codable, Sendable, Hashable {
    public var code: FailureCode
    public var message: String
    public init(_ code: FailureCode, _ message: String) {
        self.code = code
        self.message = message
    }
    public init(_ failure: Failure) { self.init(failure.code, failure.message) }
}

/// The answer of a probe: a verdict, and the facts as far as they were found.
public struct ProbeReport: Sendable, Equatable, Codable {
    public enum Outcome: String, Codable, Sendable { case accept, reject }

    /// The name that the caller gave; only for reading.
    public var file: String
    /// Nil for an accepted file.
    public var reason: Reason?
    public var warnings: [MediaWarning]
    /// Nil where nothing could be found out.
    public var facts: MediaFacts?

    public var outcome: Outcome { reason == nil ? .accept : .reject }

    public init(file: String, facts: MediaFacts?, reason: Reason? = nil, warnings: [MediaWarning] = []) {
        self.file = file
        self.facts = facts
        self.reason = reason
        self.warnings = warnings
    }

    enum CodingKeys: String, CodingKey { case file, outcome, reason, warnings }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        file = try container.decode(String.self, forKey: .file)
        reason = try container.decodeIfPresent(Reason.self, forKey: .reason)
        warnings = try container.decode([MediaWarning].self, forKey: .warnings)
        let flat = try decoder.container(keyedBy: MediaFacts.CodingKeys.self)
        facts = try flat.decodeIfPresent(MediaFacts.Kind.self, forKey: .kind) == nil ? nil : MediaFacts(from: decoder)
    }

    /// One flat object in which every field is present: what is not known is `null`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(file, forKey: .file)
        try container.encode(outcome, forKey: .outcome)
        try container.encode(reason, forKey: .reason)
        try container.encode(warnings, forKey: .warnings)
        var flat = encoder.container(keyedBy: MediaFacts.CodingKeys.self)
        try flat.encode(facts?.kind, forKey: .kind)
        try flat.encode(facts?.format, forKey: .format)
        try flat.encode(facts?.width, forKey: .width)
        try flat.encode(facts?.height, forKey: .height)
        try flat.encode(facts?.duration, forKey: .duration)
        try flat.encode(facts?.rotationClockwise, forKey: .rotationClockwise)
        try flat.encode(facts?.codec, forKey: .codec)
        try flat.encode(facts?.pixelFormat, forKey: .pixelFormat)
        try flat.encode(facts?.colorPrimaries, forKey: .colorPrimaries)
        try flat.encode(facts?.colorTransfer, forKey: .colorTransfer)
        try flat.encode(facts?.colorSpace, forKey: .colorSpace)
        try flat.encode(facts?.hdr, forKey: .hdr)
        try flat.encode(facts?.hasGainMap, forKey: .hasGainMap)
        try flat.encode(facts?.interlaced, forKey: .interlaced)
        try flat.encode(facts?.averageFPS, forKey: .averageFPS)
        try flat.encode(facts?.hasVariableFrameRate, forKey: .hasVariableFrameRate)
        try flat.encode(facts?.frames, forKey: .frames)
        try flat.encode(facts?.audio ?? [], forKey: .audio)
        try flat.encode(facts?.takenAt, forKey: .takenAt)
        try flat.encode(facts?.takenAtSource, forKey: .takenAtSource)
        try flat.encode(facts?.gps, forKey: .gps)
        try flat.encode(facts?.camera, forKey: .camera)
        try flat.encode(facts?.contentIdentifier, forKey: .contentIdentifier)
        try flat.encode(facts?.delivery, forKey: .delivery)
    }
}
