import CLittleCMS
import Vocabulary

/// From whatever a picture's numbers mean to 8-bit sRGB, by Little CMS: relative colorimetric with black point compensation,
/// as photo viewers do it.
enum ColorTransform {
    static let profileIgnored = MediaWarning(
        "profile-ignored", "The picture's colour profile is damaged or does not fit it.")

    /// - Parameter raster: without alpha.
    /// - Returns: 8 bits, grey or RGB. A profile that is damaged or of another kind of colour is left aside, with a warning.
    static func toSRGB(_ raster: Raster, _ encoding: ColorEncoding, budget: MemoryBudget) throws(Failure) -> (
        raster: Raster, warnings: [MediaWarning]
    ) {
        var warnings: [MediaWarning] = []
        let source: Profile?
        switch encoding {
        case .plain: source = nil
        case .profile(let bytes):
            source = Profile(icc: bytes, for: raster.layout)
            if source == nil {
                // Grey under a profile of RGB means equal parts of it.
                if raster.layout == .grey, Profile(icc: bytes, for: .rgb) != nil {
                    return try toSRGB(try raster.asRGB(budget: budget), encoding, budget: budget)
                }
                warnings.append(profileIgnored)
            }
        case .codePoints(let points):
            if raster.layout == .rgb || raster.layout == .grey, let toneMap = ToneMap(points) {
                return (try toneMap.run(try raster.asRGB(budget: budget), budget: budget), warnings)
            }
            source = points.isPlain(isGrey: raster.layout == .grey) ? nil : Profile(points, for: raster.layout)
        case .gamma(let exponent, let chromaticities):
            source = Profile(exponent: exponent, chromaticities: chromaticities, for: raster.layout)
        }
        if let source, let converted = try convert(raster, from: source, budget: budget) {
            return (converted, warnings)
        }
        return (try plain(raster, budget: budget), warnings)
    }

    /// Whether the numbers can be taken for sRGB as they are, so that nothing has to be converted.
    static func isSRGB(_ encoding: ColorEncoding, isGrey: Bool) -> Bool {
        switch encoding {
        case .plain: true
        case .codePoints(let points): points.isPlain(isGrey: isGrey)
        case .profile(let bytes):
            // One that cannot be used gives a warning when it is tried.
            if isGrey, let grey = Profile(icc: bytes, for: .grey) {
                isIdentity(grey, isGrey: true)
            } else {
                Profile(icc: bytes, for: .rgb).map { isIdentity($0, isGrey: false) } ?? false
            }
        case .gamma: false
        }
    }

    /// Two of 255 steps cannot be seen, and rounding alone gives one.
    private static let differenceMax = 2

    /// Tried on a grid of colours, for no two programs write the same profile.
    private static func isIdentity(_ source: Profile, isGrey: Bool) -> Bool {
        let steps = stride(from: 0, through: 255, by: 51).map { UInt8($0) }
        let greys = stride(from: 0, through: 255, by: 15).map { UInt8($0) }
        let colors = steps.flatMap { r in steps.flatMap { g in steps.flatMap { b in [r, g, b] } } }
        let input = isGrey ? greys : colors + greys.flatMap { [$0, $0, $0] }
        let expected = isGrey ? greys.flatMap { [$0, $0, $0] } : input
        guard let transform = transform(from: source, isGrey ? .grey : .rgb, depth: 8) else { return false }
        defer { cmsDeleteTransform(transform) }
        var output = [UInt8](repeating: 0, count: expected.count)
        cmsDoTransform(transform, input, &output, UInt32(expected.count / 3))
        return zip(output, expected).allSatisfy { abs(Int($0) - Int($1)) <= differenceMax }
    }

    /// Without a profile: grey and RGB are sRGB already; Lab is defined; ink is taken as plain subtraction from white.
    private static func plain(_ raster: Raster, budget: MemoryBudget) throws(Failure) -> Raster {
        switch raster.layout {
        case .lab:
            if let lab = Profile.lab(), let converted = try convert(raster, from: lab, budget: budget) {
                return converted
            }
            throw Failure(.internalError, "The picture's colours could not be converted.", detail: "Lab")
        case .cmyk:
            let result = try Raster(size: raster.size, layout: .rgb, depth: 8, budget: budget)
            let output = result.pixels
            for pixel in 0..<(raster.size.width * raster.size.height) {
                let black = 255 - sample8(raster, pixel * 4 + 3)
                for channel in 0..<3 {
                    let light = (255 - sample8(raster, pixel * 4 + channel)) * black
                    output[pixel * 3 + channel] = UInt8(truncatingIfNeeded: (light + 127) / 255)
                }
            }
            return result
        case .grey, .rgb, .greyAlpha, .rgba:
            guard raster.depth == 16 else { return raster }
            let result = try Raster(size: raster.size, layout: raster.layout, depth: 8, budget: budget)
            for index in 0..<result.pixels.count {
                result.pixels[index] = UInt8(truncatingIfNeeded: sample8(raster, index))
            }
            return result
        }
    }

    private static func sample8(_ raster: Raster, _ index: Int) -> UInt32 {
        guard raster.depth == 16 else { return UInt32(raster.pixels[index]) }
        return (UInt32(raster.pixels.load(fromByteOffset: index * 2, as: UInt16.self)) * 255 + 32767) / 65535
    }

    /// - Returns: nil when Little CMS finds no way between the profiles.
    private static func transform(from source: Profile, _ layout: Raster.Layout, depth: Int) -> cmsHTRANSFORM? {
        guard let target = Profile.sRGB(), let kind = pixelFormat(layout, depth: depth) else { return nil }
        let flags = UInt32(cmsFLAGS_BLACKPOINTCOMPENSATION) | UInt32(cmsFLAGS_NOCACHE)
        return cmsCreateTransform(
            source.pointer, kind, target.pointer, rgb8, UInt32(INTENT_RELATIVE_COLORIMETRIC), flags)
    }

    /// - Returns: nil when Little CMS finds no way between the profiles.
    private static func convert(_ raster: Raster, from source: Profile, budget: MemoryBudget) throws(Failure) -> Raster?
    {
        guard let transform = transform(from: source, raster.layout, depth: raster.depth) else { return nil }
        defer { cmsDeleteTransform(transform) }
        let result = try Raster(size: raster.size, layout: .rgb, depth: 8, budget: budget)
        for y in 0..<raster.size.height {
            cmsDoTransform(transform, raster.row(y), result.row(y), UInt32(raster.size.width))
        }
        return result
    }

    // lcms2.h builds these with macros that Swift does not see: COLORSPACE_SH, CHANNELS_SH, BYTES_SH.
    private static var rgb8: UInt32 { UInt32(PT_RGB) << 16 | 3 << 3 | 1 }
    private static func pixelFormat(_ layout: Raster.Layout, depth: Int) -> UInt32? {
        let space: Int32
        switch layout {
        case .grey: space = PT_GRAY
        case .rgb: space = PT_RGB
        case .cmyk: space = PT_CMYK
        case .lab: space = PT_Lab
        case .greyAlpha, .rgba: return nil
        }
        return UInt32(space) << 16 | UInt32(layout.channelCount) << 3 | UInt32(depth / 8)
    }
}

/// A colour profile of Little CMS.
private final class Profile {
    /// A profile with its tables: the largest in use have a few megabytes.
    static let byteCountMax = 64 << 20

    let pointer: cmsHPROFILE

    private init?(owning pointer: cmsHPROFILE?) {
        guard let pointer else { return nil }
        self.pointer = pointer
    }
    deinit { cmsCloseProfile(pointer) }

    /// - Returns: nil unless the profile is whole and for this kind of colour.
    convenience init?(icc: ByteView, for layout: Raster.Layout) {
        guard icc.count >= 128, icc.count <= Self.byteCountMax else { return nil }
        self.init(owning: cmsOpenProfileFromMem(icc.bytes.baseAddress, UInt32(icc.count)))
        let expected: cmsColorSpaceSignature
        switch layout {
        case .grey, .greyAlpha: expected = cmsSigGrayData
        case .rgb, .rgba: expected = cmsSigRgbData
        case .cmyk: expected = cmsSigCmykData
        case .lab: expected = cmsSigLabData
        }
        guard cmsGetColorSpace(pointer) == expected, hasColors else { return nil }
    }

    /// False for primaries that span no colours; some writers leave them 0.
    private var hasColors: Bool {
        guard cmsIsMatrixShaper(pointer) != 0, cmsIsTag(pointer, cmsSigAToB0Tag) == 0,
            cmsGetColorSpace(pointer) == cmsSigRgbData
        else { return true }
        let tags = [cmsSigRedColorantTag, cmsSigGreenColorantTag, cmsSigBlueColorantTag]
        let primaries = tags.compactMap { cmsReadTag(pointer, $0)?.assumingMemoryBound(to: cmsCIEXYZ.self).pointee }
        guard primaries.count == 3 else { return false }
        let (r, g, b) = (primaries[0], primaries[1], primaries[2])
        let volume =
            r.X * (g.Y * b.Z - g.Z * b.Y) - r.Y * (g.X * b.Z - g.Z * b.X) + r.Z * (g.X * b.Y - g.Y * b.X)
        return abs(volume) > 1e-4
    }

    convenience init?(_ points: CodePoints, for layout: Raster.Layout) {
        let curve: OpaquePointer?
        switch points.transfer {
        case 4: curve = cmsBuildGamma(nil, 2.2)
        case 5: curve = cmsBuildGamma(nil, 2.8)
        case 8: curve = cmsBuildGamma(nil, 1)
        case 17: curve = cmsBuildGamma(nil, 2.6)
        default: curve = Self.sRGBCurve()
        }
        self.init(chromaticities: points.chromaticities, curve: curve, for: layout)
    }

    convenience init?(exponent: Double, chromaticities: [Double]?, for layout: Raster.Layout) {
        // An exponent outside this range is a mistake of the writer.
        guard exponent > 0.1, exponent < 10 else { return nil }
        // 1/2.2 is how sRGB writes itself down in gAMA.
        let curve = abs(exponent - 1 / 2.2) < 0.005 ? Self.sRGBCurve() : cmsBuildGamma(nil, 1 / exponent)
        self.init(
            chromaticities: chromaticities ?? CodePoints(primaries: 1, transfer: 13).chromaticities, curve: curve,
            for: layout)
    }

    /// Of grey or RGB. Takes the curve over.
    private convenience init?(chromaticities: [Double], curve: OpaquePointer?, for layout: Raster.Layout) {
        defer { cmsFreeToneCurve(curve) }
        guard chromaticities.count == 8, let curve, layout == .grey || layout == .rgb else { return nil }
        var white = cmsCIExyY(x: chromaticities[0], y: chromaticities[1], Y: 1)
        if layout == .grey {
            self.init(owning: cmsCreateGrayProfile(&white, curve))
            return
        }
        var primaries = cmsCIExyYTRIPLE(
            Red: cmsCIExyY(x: chromaticities[2], y: chromaticities[3], Y: 1),
            Green: cmsCIExyY(x: chromaticities[4], y: chromaticities[5], Y: 1),
            Blue: cmsCIExyY(x: chromaticities[6], y: chromaticities[7], Y: 1))
        let curves: [OpaquePointer?] = [curve, curve, curve]
        self.init(owning: cmsCreateRGBProfile(&white, &primaries, curves))
    }

    static func sRGB() -> Profile? { Profile(owning: cmsCreate_sRGBProfile()) }
    static func lab() -> Profile? { Profile(owning: cmsCreateLab4Profile(nil)) }

    /// IEC 61966-2-1 as a parametric curve of type 4.
    private static func sRGBCurve() -> OpaquePointer? {
        cmsBuildParametricToneCurve(nil, 4, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
    }
}
