import FFmpeg

/// The filters that make a decoded picture into a delivered one: active area, transparency, deinterlacing, size, colour, orientation.
///
/// Scaling comes before tone mapping, which is the dearest step by far, and turning comes last, on the fewest pixels.
struct PictureChain: Equatable {
    enum Target: Equatable {
        /// BT.709 limited 4:2:0, for H.264.
        case video
        /// BT.601 full range 4:2:0, as JFIF has it.
        case still
    }

    var filters: [String]
    var description: String { filters.joined(separator: ",") }

    init(filters: [String]) { self.filters = filters }

    private static let delivered = "matrixin=709:transferin=709:primariesin=709:rangein=limited"

    /// From a picture of a larger rendition.
    static func smaller(_ size: (width: Int, height: Int)) -> PictureChain {
        PictureChain(filters: [
            "zscale=w=\(size.width):h=\(size.height):filter=lanczos:\(delivered):\(destination(.video))",
            "format=yuv420p", "setsar=1",
        ])
    }

    /// From a picture of a rendition.
    static func still(ofDelivered size: (width: Int, height: Int)) -> PictureChain {
        PictureChain(filters: [
            "zscale=w=\(size.width):h=\(size.height):filter=lanczos:\(delivered):\(destination(.still))",
            "format=\(subsampled(size))", "setsar=1",
        ])
    }

    /// From red, green and blue.
    static func still(ofRGB size: (width: Int, height: Int)) -> PictureChain {
        PictureChain(filters: [
            "format=gbrp",
            "zscale=matrixin=gbr:transferin=709:primariesin=709:rangein=full:\(destination(.still))",
            "format=\(subsampled(size))", "setsar=1",
        ])
    }

    /// H.264 always gets even sides; a still of odd ones keeps all its chroma.
    private static func subsampled(_ size: (width: Int, height: Int)) -> String {
        size.width.isMultiple(of: 2) && size.height.isMultiple(of: 2) ? "yuv420p" : "yuv444p"
    }

    /// - Parameters:
    ///   - shape: of the decoded pictures, where they are not as the facts say: live recordings change their size and turn.
    ///   - size: of the upright picture.
    ///   - fieldsBecomeFrames: interlaced video keeps its motion at twice the frame rate.
    ///   - isSafest: by swscale instead of zscale wherever that gives the right colours: slower, and at home with every format.
    init(
        _ facts: VideoFacts, shape: FrameShape? = nil, size: (width: Int, height: Int), target: Target,
        fieldsBecomeFrames: Bool, isSafest: Bool = false
    ) {
        let format = Self.subsampled(size)
        let display = facts.displaySize
        let facts = shape.map(facts.reshaped) ?? facts
        let inner = facts.displaySize == display ? size : PictureBounds.inside(size, facts.displaySize)
        let stored = facts.orientation.swapsSides ? (width: inner.height, height: inner.width) : inner
        filters = []
        if facts.cropTop > 0 { filters.append("crop=iw:\(facts.height):0:\(facts.cropTop)") }
        filters += Self.planar(facts)
        if facts.isInterlaced {
            filters.append(
                "bwdif=mode=\(fieldsBecomeFrames ? "send_field" : "send_frame"):parity=\(facts.fieldOrder.rawValue):deint=all"
            )
        }
        switch facts.hdr {
        case .hlg:
            filters += Self.toneMapped(facts, stored, target, format, transfer: "arib-std-b67", peak: Self.hlgPeak)
        case .pq(let peak):
            filters += Self.toneMapped(facts, stored, target, format, transfer: "smpte2084", peak: peak ?? Self.pqPeak)
        case .dolbyVision, nil:
            filters += isSafest ? Self.scaled(facts, stored, format) : Self.converted(facts, stored, target, format)
        }
        filters += facts.orientation.filters
        if inner != size { filters.append("pad=\(size.width):\(size.height):-1:-1") }
        filters.append("setsar=1")
    }

    /// Nits of a reference white display, on which linear light is scaled (ITU-R BT.2408 puts diffuse white at 203; 100 keeps the
    /// brightness that viewers of the standard picture expect).
    static let nominalPeak = 100.0
    /// HLG is made for displays of 1000 nits (ITU-R BT.2100).
    static let hlgPeak = 1000.0
    /// What most PQ is mastered at, where the source does not say.
    static let pqPeak = 1000.0
    /// Beyond this, metadata is wrong more often than right, and the curve would darken everything.
    static let peakMax = 4000.0

    /// zscale reads planar pictures without alpha.
    private static func planar(_ facts: VideoFacts) -> [String] {
        let format = facts.pixelFormat
        let suffix =
            format.bitDepth <= 8 ? "" : format.bitDepth <= 10 ? "10le" : format.bitDepth <= 12 ? "12le" : "16le"
        if format.isRGB || format.isPalette || format.isBayer || format.isGray {
            return format.hasAlpha || format.isPalette
                ? ["format=gbrap\(suffix)", "premultiply=inplace=1", "format=gbrp\(suffix)"] : ["format=gbrp\(suffix)"]
        }
        var shift = format.chromaShift
        // zscale refuses sides that the subsampling does not divide.
        if !facts.width.isMultiple(of: 1 << shift.x) || !facts.height.isMultiple(of: 1 << shift.y) { shift = (0, 0) }
        let isKept = shift == format.chromaShift && format.isPlanar && format.name?.hasPrefix("yuv") == true
        let sampling =
            switch (shift.x, shift.y) {
            case (0, 0): "444"
            case (1, 0): "422"
            case (1, 1): "420"
            case (0, 1): "440"
            case (2, 0): "411"
            default: "410"
            }
        let plain = "yuv\(sampling)p\(suffix)"
        if format.hasAlpha {
            // What premultiply knows.
            let isKnown = format.name?.hasPrefix("yuva444p") == true
            let planar = isKnown ? [] : inRange(facts, "yuva444p\(format.bitDepth <= 8 ? "" : "16le")")
            return planar + ["premultiply=inplace=1"] + inRange(facts, plain)
        }
        return isKept ? [] : inRange(facts, plain)
    }

    /// A `format` alone would let FFmpeg make limited range of full.
    private static func inRange(_ facts: VideoFacts, _ format: String) -> [String] {
        let range = facts.isFullRange ? "full" : "limited"
        return [
            "scale=flags=bicubic+accurate_rnd+full_chroma_int:in_range=\(range):out_range=\(range)", "format=\(format)",
        ]
    }

    private static func source(_ facts: VideoFacts, transfer: String) -> String {
        let matrix = VideoFacts.zimgMatrices[facts.effectiveMatrix] ?? "gbr"
        return
            "matrixin=\(matrix):transferin=\(transfer):primariesin=\(primaries(facts)):rangein=\(facts.isFullRange ? "full" : "limited")"
    }

    private static func destination(_ target: Target) -> String {
        switch target {
        case .video: "matrix=709:transfer=709:primaries=709:range=limited"
        case .still: "matrix=170m:transfer=709:primaries=709:range=full"
        }
    }

    /// zscale's names; nil and what it does not know count as BT.709, which leaves colours as they are.
    private static func primaries(_ facts: VideoFacts) -> String {
        switch facts.color.primaries {
        case "bt470m", "bt470bg", "smpte170m", "smpte240m", "film", "bt2020", "smpte428", "smpte431", "smpte432":
            facts.color.primaries ?? "709"
        case nil where facts.hdr != nil: "2020"
        default: "709"
        }
    }

    /// Standard dynamic range. The transfer functions of BT.601, BT.709, BT.2020, xvYCC and sRGB are shown alike, so none is converted.
    private static func converted(
        _ facts: VideoFacts, _ size: (width: Int, height: Int), _ target: Target, _ format: String
    ) -> [String] {
        let dither = facts.pixelFormat.bitDepth > 8 ? ":dither=ordered" : ""
        return [
            "zscale=w=\(size.width):h=\(size.height):filter=lanczos\(dither):\(source(facts, transfer: "709")):\(destination(target))",
            "format=\(format)",
        ]
    }

    /// The same by swscale, for video.
    private static func scaled(_ facts: VideoFacts, _ size: (width: Int, height: Int), _ format: String) -> [String] {
        let names = ["smpte170m": "bt601", "bt470bg": "bt601", "bt2020nc": "bt2020", "bt2020c": "bt2020"]
        let matrix = names[facts.effectiveMatrix] ?? facts.effectiveMatrix
        let source = ["bt709", "bt601", "bt2020", "smpte240m", "fcc"].contains(matrix) ? matrix : "auto"
        return [
            "scale=w=\(size.width):h=\(size.height):flags=lanczos+accurate_rnd+full_chroma_int:in_color_matrix=\(source):in_range=\(facts.isFullRange ? "full" : "limited"):out_color_matrix=bt709:out_range=limited",
            "format=\(format)",
        ]
    }

    /// High dynamic range, mapped in linear light in BT.709 primaries.
    private static func toneMapped(
        _ facts: VideoFacts, _ size: (width: Int, height: Int), _ target: Target, _ format: String, transfer: String,
        peak: Double
    ) -> [String] {
        let source = source(facts, transfer: transfer)
        let unchanged = source.replacing("in=", with: "=")
        let relativePeak = min(max(peak, nominalPeak), peakMax) / nominalPeak
        return [
            // Named on both sides: what the frames themselves say may be less than what the container says.
            "zscale=w=\(size.width):h=\(size.height):filter=lanczos:\(source):\(unchanged)",
            "zscale=\(source):matrix=gbr:transfer=linear:primaries=709:range=full:npl=\(Int(nominalPeak))",
            "format=gbrpf32le",
            "tonemap=tonemap=hable:desat=0:peak=\(relativePeak)",
            "zscale=matrixin=gbr:transferin=linear:primariesin=709:rangein=full:dither=ordered:\(destination(target))",
            "format=\(format)",
        ]
    }
}
