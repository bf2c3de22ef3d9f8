/// Work on one file for `rushes-media`. The worker is given the file's descriptor, never its path.
public struct MediaJob: Codable, Sendable, Equatable {
    public enum Work: Codable, Sendable, Equatable {
        case probe
        /// A video's outputs from one decode.
        case transcode(TranscodeSettings)
        /// Stills of a photo, an animation or a video.
        case thumb(ThumbSettings)
    }

    public var id: Int
    /// The name by which people know the file: for messages only, never believed.
    public var file: String
    public var work: Work
    public var limits: MediaLimits

    public init(id: Int, file: String, work: Work, limits: MediaLimits) {
        self.id = id
        self.file = file
        self.work = work
        self.limits = limits
    }
}

/// What is wanted of a video.
public struct TranscodeSettings: Codable, Sendable, Equatable {
    /// Names of outputs, each made at most once: `1080p`, `720p`, `480p`, `poster`, `storyboard` and `storyboard-index`.
    public var outputs: [OutputName]
    /// An x264 preset.
    public var preset: String
    /// x264's constant rate factor, 0 to 51.
    public var crf: Double
    /// Long side of the poster in pixels; never enlarged.
    public var posterSize: Int
    /// How the storyboard's index calls its picture: a file name or URL, relative to the index.
    public var storyboardLink: String
    /// Threads for decoder and encoder; 0 lets each library choose.
    public var threads: Int

    public init(
        outputs: [OutputName], preset: String = "veryfast", crf: Double = 21, posterSize: Int = 1920,
        storyboardLink: String = "storyboard.jpg", threads: Int = 0
    ) {
        self.outputs = outputs
        self.preset = preset
        self.crf = crf
        self.posterSize = posterSize
        self.storyboardLink = storyboardLink
        self.threads = threads
    }
}

/// What is wanted of a photo: one still for each size.
public struct ThumbSettings: Codable, Sendable, Equatable {
    public enum Format: String, Codable, Sendable {
        case jpeg, webp
        public var contentType: String { "image/\(rawValue)" }
        /// Of a file that holds it.
        public var fileExtension: String { self == .jpeg ? "jpg" : rawValue }
    }

    /// Long sides in pixels, each with its output's name; never enlarged.
    public var sizes: [Int]
    /// 1 to 100.
    public var quality: Int
    /// A video's stills are always JPEG.
    public var format: Format

    public init(sizes: [Int], quality: Int = 82, format: Format = .jpeg) {
        self.sizes = sizes
        self.quality = quality
        self.format = format
    }
    /// The output for a size is named by the size: `512`.
    public static func name(of size: Int) -> OutputName { OutputName(String(size)) }
    /// For a screen, a grid and a list.
    public static let standardSizes = [2048, 512, 256]
    /// What may be asked for, and how much of it at once.
    public static let sizeRange = 16...16384
    public static let sizeCountMax = 8
}

/// Bounds on one job.
public struct MediaLimits: Codable, Sendable, Equatable {
    /// A fixed bound: more is `too-large`, a verdict on the file.
    public var pixelCountMax: Int
    /// Bytes that decoding may take: more is `over-budget`, which is no verdict.
    public var memoryBytes: Int
    /// There is more memory for who asks: `over-budget` then brings another try, so nothing is left out for want of memory.
    public var mayAskForMore = false
    /// Seconds of media: more is `too-long`.
    public var durationMax: Double
    /// Bytes of one output.
    public var outputBytesMax: Int

    public init(
        pixelCountMax: Int = 512_000_000, memoryBytes: Int = 4 << 30, durationMax: Double = 24 * 3600,
        outputBytesMax: Int = 64 << 30
    ) {
        self.pixelCountMax = pixelCountMax
        self.memoryBytes = memoryBytes
        self.durationMax = durationMax
        self.outputBytesMax = outputBytesMax
    }
}

/// The name of something made from an item, unique among its role's: `1080p`, `poster`, `512`.
public struct OutputName: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public init(_ name: String) { rawValue = name }
    public var description: String { rawValue }
    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(String.self)
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    public static let rendition1080 = OutputName("1080p")
    public static let rendition720 = OutputName("720p")
    public static let rendition480 = OutputName("480p")
    public static let poster = OutputName("poster")
    /// Small pictures from all over a video in one JPEG.
    public static let storyboard = OutputName("storyboard")
    /// WebVTT that says which part of the storyboard belongs to which time.
    public static let storyboardIndex = OutputName("storyboard-index")

    /// What an output of a video is; everything that is not a still is a rendition.
    public var videoRole: FileRole {
        switch self {
        case .poster: .poster
        case .storyboard, .storyboardIndex: .storyboard
        default: .rendition
        }
    }
    public var videoContentType: String {
        switch self {
        case .poster, .storyboard: "image/jpeg"
        case .storyboardIndex: "text/vtt"
        default: "video/mp4"
        }
    }
    /// Of a file that holds it.
    public var videoFileExtension: String {
        switch self {
        case .poster, .storyboard: "jpg"
        case .storyboardIndex: "vtt"
        default: "mp4"
        }
    }
}

/// An output that is whole: what the worker says of it when it is done with the descriptor.
public struct SealedOutput: Codable, Sendable, Equatable {
    public var name: OutputName
    public var role: FileRole
    public var contentType: String
    public var bytes: Int
    public var sha256: SHA256Digest
    /// Pixels.
    public var width: Int?
    public var height: Int?
    /// Seconds.
    public var duration: Double?

    public init(
        name: OutputName, role: FileRole, contentType: String, bytes: Int, sha256: SHA256Digest, width: Int? = nil,
        height: Int? = nil, duration: Double? = nil
    ) {
        self.name = name
        self.role = role
        self.contentType = contentType
        self.bytes = bytes
        self.sha256 = sha256
        self.width = width
        self.height = height
        self.duration = duration
    }

    enum CodingKeys: String, CodingKey {
        case name, role, bytes, sha256, width, height
        case contentType = "content_type"
        case duration = "duration_s"
    }
}

/// The answer of `transcode`, as `--json` prints it.
public struct TranscodeReport: Codable, Sendable, Equatable {
    public enum Outcome: String, Codable, Sendable { case encoded, remuxed, reject }

    public var outcome: Outcome
    public var width: Int?
    public var height: Int?
    /// Seconds.
    public var duration: Double?
    public var frames: Int?
    /// Separately encoded stretches; 1 where the encoder ran through.
    public var segments: Int
    /// `#rrggbb`, the mean of what stands for the video; nil where no still was asked for.
    public var previewColor: String?
    /// Of the sound as delivered; nil where none was encoded, or where it is silent.
    public var loudness: Loudness?
    public var warnings: [MediaWarning]
    public var reason: Reason?

    /// By EBU R 128.
    public struct Loudness: Codable, Sendable, Equatable {
        /// LUFS over the whole programme.
        public var integrated: Double
        /// LU (EBU Tech 3342).
        public var range: Double
        public init(integrated: Double, range: Double) {
            self.integrated = integrated
            self.range = range
        }
        enum CodingKeys: String, CodingKey {
            case integrated = "integrated_lufs"
            case range = "range_lu"
        }
    }

    public init(
        outcome: Outcome, width: Int? = nil, height: Int? = nil, duration: Double? = nil, frames: Int? = nil,
        segments: Int = 1, previewColor: String? = nil, loudness: Loudness? = nil, warnings: [MediaWarning] = [],
        reason: Reason? = nil
    ) {
        self.outcome = outcome
        self.width = width
        self.height = height
        self.duration = duration
        self.frames = frames
        self.segments = segments
        self.previewColor = previewColor
        self.loudness = loudness
        self.warnings = warnings
        self.reason = reason
    }

    enum CodingKeys: String, CodingKey {
        case outcome, width, height, frames, segments, loudness, warnings, reason
        case duration = "duration_s"
        case previewColor = "preview_color"
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(outcome, forKey: .outcome)
        try container.encode(width, forKey: .width)
        try container.encode(height, forKey: .height)
        try container.encode(duration, forKey: .duration)
        try container.encode(frames, forKey: .frames)
        try container.encode(segments, forKey: .segments)
        try container.encode(previewColor, forKey: .previewColor)
        try container.encode(loudness, forKey: .loudness)
        try container.encode(warnings, forKey: .warnings)
        try container.encode(reason, forKey: .reason)
    }
}

/// The answer of `thumb`, as `--json` prints it.
public struct ThumbReport: Codable, Sendable, Equatable {
    public enum Outcome: String, Codable, Sendable { case made, reject }

    public var outcome: Outcome
    /// Pixels of the largest one.
    public var width: Int?
    public var height: Int?
    /// The mean colour, `#rrggbb`, to be shown while nothing is loaded; of photos only.
    public var previewColor: String?
    /// About 25 bytes in base64 that a blurred picture can be drawn from (evanw.github.io/thumbhash); of photos only.
    public var thumbHash: String?
    public var warnings: [MediaWarning]
    public var reason: Reason?

    public init(
        outcome: Outcome, width: Int? = nil, height: Int? = nil, previewColor: String? = nil, thumbHash: String? = nil,
        warnings: [MediaWarning] = [], reason: Reason? = nil
    ) {
        self.outcome = outcome
        self.width = width
        self.height = height
        self.previewColor = previewColor
        self.thumbHash = thumbHash
        self.warnings = warnings
        self.reason = reason
    }

    enum CodingKeys: String, CodingKey {
        case outcome, width, height, warnings, reason
        case previewColor = "preview_color"
        case thumbHash = "thumb_hash"
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(outcome, forKey: .outcome)
        try container.encode(width, forKey: .width)
        try container.encode(height, forKey: .height)
        try container.encode(previewColor, forKey: .previewColor)
        try container.encode(thumbHash, forKey: .thumbHash)
        try container.encode(warnings, forKey: .warnings)
        try container.encode(reason, forKey: .reason)
    }
}

/// What a job came to.
public enum MediaResult: Codable, Sendable, Equatable {
    case probe(ProbeReport)
    case transcode(TranscodeReport)
    case thumb(ThumbReport)
}

/// How far a job is.
public struct MediaProgress: Codable, Sendable, Equatable {
    /// 0 to 1, never back.
    public var fraction: Double
    public var frames: Int
    public init(fraction: Double, frames: Int) {
        self.fraction = fraction
        self.frames = frames
    }
}

/// Parent to worker: one JSON message a packet, with its descriptor in the same packet.
public enum WorkerOrder: Codable, Sendable, Equatable {
    /// With the input's descriptor.
    case job(MediaJob)
    /// The output that was asked for, with its descriptor, open for reading and writing.
    case file(job: Int, name: OutputName)
    /// The sealed output is durable on the parent's side.
    case stored(job: Int, name: OutputName)
}

/// Worker to parent.
public enum WorkerAnswer: Codable, Sendable, Equatable {
    /// Sent once, when the worker can take jobs.
    case hello(version: Int)
    case need(job: Int, name: OutputName)
    case sealed(job: Int, output: SealedOutput)
    case progress(job: Int, MediaProgress)
    case result(job: Int, MediaResult)
    case failure(job: Int, Failure)
}

public enum MediaProtocol {
    public static let version = 1
    /// In place of a job's number, in a failure to start; jobs are counted from 1.
    public static let startNumber = 0
    /// Bytes of one message.
    public static let messageBytesMax = 64 << 10
}

/// The worker's side of getting outputs opened and stored, as the media modules see it.
public protocol OutputSink: AnyObject {
    /// - Returns: a descriptor open for reading and writing, empty, owned by the sink until it is sealed.
    func open(_ name: OutputName) throws(Failure) -> Int32
    /// The output is whole: hash it, report it, wait until it is stored.
    func seal(_ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?)
        throws(Failure)
    /// Called often; the sink decides how often to say so. Throws `cancelled` when the job is to stop.
    func progress(_ progress: MediaProgress) throws(Failure)
}
