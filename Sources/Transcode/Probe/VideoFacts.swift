import FFmpeg
import Vocabulary

/// What a plan needs to know about the picture track: found by decoding its beginning, not believed from the header.
struct VideoFacts: Equatable {
    enum HDR: Equatable {
        case hlg
        /// With the brightest value in nits, where the source says it.
        case pq(peak: Double?)
        /// Needs Dolby Vision's own processing, which is not available here.
        case dolbyVision(profile: Int)
    }

    /// Which field of an interlaced picture is shown first.
    enum FieldOrder: String {
        /// As each decoded picture says.
        case ofPictures = "auto"
        case topFirst = "tff"
        case bottomFirst = "bff"
    }

    var stream: Int
    var codec: String?
    var profile: Int
    /// As decoded, before turning.
    var width: Int
    var height: Int
    /// Rows above the picture that are not part of it.
    var cropTop: Int
    var sampleAspect: Rational
    var orientation: Orientation
    var pixelFormat: PixelFormat
    var color: ColorTags
    var hdr: HDR?
    /// The alpha channel is in the pixels.
    var hasAlpha: Bool
    var isInterlaced: Bool
    var fieldOrder = FieldOrder.ofPictures
    var timeBase: Rational
    /// Shown, as counted without decoding.
    var frames: Int
    /// Frames a second over the whole shown length.
    var averageRate: Double
    var hasVariableRate: Bool
    /// In seconds on the container's clock.
    var start: Double
    var end: Double
    /// The longest stretch between two key frames in seconds; nil where not known.
    var keyframeIntervalMax: Double?
    /// The edit list does more than take away the coding delay.
    var hasEdits: Bool
    /// The container's clock jumps, so that no place can be found by its time.
    var hasClockJumps = false
    /// Pictures are reordered, and still each is said to be shown when it is decoded: only their number tells their place.
    var hasTimesOfDecoding = false

    /// Pixels more oblong than these come from damaged headers.
    private static let aspects = 0.1...10.0

    /// Pixels, upright, with square pixels.
    var displaySize: (width: Int, height: Int) {
        let aspect = sampleAspect.isKnown && Self.aspects.contains(sampleAspect.double) ? sampleAspect.double : 1
        let stretched = max(1, Int((Double(width) * aspect).rounded()))
        return orientation.swapsSides ? (height, stretched) : (stretched, height)
    }

    /// The same of pictures that come in another shape from somewhere on.
    func reshaped(_ shape: FrameShape) -> VideoFacts {
        guard shape != FrameShape(width: width, height: height + cropTop, format: pixelFormat) else { return self }
        var facts = self
        (facts.width, facts.height, facts.cropTop) = (shape.width, shape.height, 0)
        facts.pixelFormat = shape.format
        facts.hasAlpha = shape.format.hasAlpha
        return facts
    }

    /// The matrix by which Y'CbCr became; guessed by size where the source does not say.
    var effectiveMatrix: String {
        // Of any other format it is a wrong word: MPEG-2's encoders write the number 0 for "unknown".
        if pixelFormat.isRGB { return "gbr" }
        if let matrix = color.matrix, Self.zimgMatrices[matrix] != nil { return matrix }
        if let primaries = color.primaries {
            if primaries == "bt709" { return "bt709" }
            if primaries == "bt470bg" || primaries == "smpte170m" { return primaries }
            if primaries == "bt2020" { return "bt2020nc" }
        }
        if hdr != nil { return "bt2020nc" }
        return min(width, height) < 720 ? "smpte170m" : "bt709"
    }

    /// FFmpeg's matrix names with zscale's; it misspells SMPTE 240M, so that goes by its number (ITU-T H.273).
    /// Constant luminance is in practice a wrong word for BT.2020's other form.
    static let zimgMatrices = [
        "bt709": "709", "smpte170m": "170m", "bt470bg": "470bg", "bt2020nc": "2020_ncl", "bt2020c": "2020_ncl",
        "smpte240m": "7", "fcc": "fcc", "ycgco": "ycgco",
    ]

    var isFullRange: Bool { pixelFormat.isRGB || pixelFormat.isFullRangeByName || color.range == .full }
}

extension VideoFacts.HDR {
    /// - Returns: nil for standard dynamic range.
    init?(color: ColorTags, peak: Double?, dolbyProfile: Int?, dolbyCompatibility: Int?, hasDolbyMetadata: Bool) {
        // Compatibility 0: the pictures mean nothing without the reshaping that travels with them. Profile 7 has a base layer.
        if let dolbyProfile, dolbyCompatibility == 0, dolbyProfile != 7 {
            self = .dolbyVision(profile: dolbyProfile)
        } else if color.transfer == "arib-std-b67" || color.transfer == nil && dolbyCompatibility == 4 {
            self = .hlg
        } else if color.transfer == "smpte2084" || color.transfer == nil && dolbyCompatibility == 1 {
            self = .pq(peak: peak)
        } else if hasDolbyMetadata, dolbyProfile == nil, color.transfer == nil {
            self = .dolbyVision(profile: 5)
        } else {
            return nil
        }
    }

    var name: String {
        switch self {
        case .hlg: "hlg"
        case .pq: "pq"
        case .dolbyVision(let profile): "dolby-vision-\(profile)"
        }
    }
}
