/// What a picture's numbers mean.
enum ColorEncoding {
    /// sRGB, or untagged, which is taken for it. Grey with sRGB's curve, ink without a profile.
    case plain
    /// An ICC profile.
    case profile(ByteView)
    case codePoints(CodePoints)
    /// PNG's gAMA and cHRM: the encoding exponent and eight chromaticities (white, red, green, blue; x, y).
    case gamma(exponent: Double, chromaticities: [Double]?)

    /// Adobe RGB (1998), 4.3.1: its primaries, and 2 51/256.
    static let adobeRGB = ColorEncoding.gamma(
        exponent: 256 / 563, chromaticities: [0.3127, 0.3290, 0.64, 0.33, 0.21, 0.71, 0.15, 0.06])

    /// White paper, as a share of the largest value: what is shown as white of SDR in an HDR picture.
    var paper: Double {
        if case .codePoints(let points) = self { return points.paper }
        return 1
    }
}

/// Code points of ITU-T H.273 (CICP).
struct CodePoints: Sendable, Equatable {
    enum HDR: String, Sendable { case pq, hlg }

    var primaries: Int
    var transfer: Int
    var matrix: Int?

    var hdr: HDR? {
        switch transfer {
        case 16: .pq
        case 18: .hlg
        default: nil
        }
    }

    /// ITU-R BT.2408, table 1: PQ's signal of 203 cd/m², and HLG's.
    var paper: Double {
        switch hdr {
        case .pq: Double(PQ.encode(ToneMap.whiteNits))
        case .hlg: 0.75
        case nil: 1
        }
    }

    /// Unspecified, or BT.709's family, whose stills everybody shows with sRGB's curve. Grey has no primaries.
    func isPlain(isGrey: Bool) -> Bool {
        (isGrey || [1, 2].contains(primaries)) && [1, 2, 6, 13, 14, 15].contains(transfer)
    }

    /// x and y of white, red, green and blue (H.273 table 2).
    var chromaticities: [Double] {
        let d65 = [0.3127, 0.3290]
        return switch primaries {
        case 4: [0.310, 0.316, 0.67, 0.33, 0.21, 0.71, 0.14, 0.08]
        case 5: d65 + [0.64, 0.33, 0.29, 0.60, 0.15, 0.06]
        case 6, 7: d65 + [0.630, 0.340, 0.310, 0.595, 0.155, 0.070]
        case 8: [0.310, 0.316, 0.681, 0.319, 0.243, 0.692, 0.145, 0.049]
        case 9: d65 + [0.708, 0.292, 0.170, 0.797, 0.131, 0.046]
        case 11: [0.314, 0.351, 0.680, 0.320, 0.265, 0.690, 0.150, 0.060]
        case 12: d65 + [0.680, 0.320, 0.265, 0.690, 0.150, 0.060]
        case 22: d65 + [0.630, 0.340, 0.295, 0.605, 0.155, 0.077]
        default: d65 + [0.640, 0.330, 0.300, 0.600, 0.150, 0.060]
        }
    }

    /// FFmpeg's names, which probing prints.
    var primariesName: String? {
        [
            1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "film", 9: "bt2020",
            10: "smpte428",
            11: "smpte431", 12: "smpte432", 22: "ebu3213",
        ][primaries]
    }
    var transferName: String? {
        [
            1: "bt709", 4: "bt470m", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "linear", 9: "log100",
            10: "log316",
            11: "iec61966-2-4", 12: "bt1361e", 13: "iec61966-2-1", 14: "bt2020-10", 15: "bt2020-12", 16: "smpte2084",
            17: "smpte428", 18: "arib-std-b67",
        ][transfer]
    }
    var matrixName: String? {
        guard let matrix else { return nil }
        return [
            0: "gbr", 1: "bt709", 4: "fcc", 5: "bt470bg", 6: "smpte170m", 7: "smpte240m", 8: "ycgco", 9: "bt2020nc",
            10: "bt2020c", 12: "chroma-derived-nc", 13: "chroma-derived-c", 14: "ictcp",
        ][matrix]
    }
}
