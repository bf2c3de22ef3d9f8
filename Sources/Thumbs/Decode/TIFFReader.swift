import CTIFF
import Foundation
import Vocabulary

/// One page of a TIFF in libtiff, which reads from memory through callbacks.
final class TIFFReader {
    /// Rows whose samples can be taken as they are.
    struct PlainRows {
        var layout: Raster.Layout
        var coding: TIFFSamples
        /// Of one pixel in the file, with those that are left out.
        var samples: Int
        var isInverted: Bool
        var isPremultiplied: Bool
        /// In a plane for each sample.
        var isPlanar: Bool
        /// TIFF's own L*a*b* counts a* and b* from -128, ICC's from 0.
        var hasSignedColors = false
        var depth: Int { coding.depth }
    }

    /// What is thrown while opening closes the file only when everything has a value.
    private(set) var size = PixelSize(width: 0, height: 0)
    private(set) var plainRows: PlainRows?
    private let tiff: OpaquePointer
    private let source: TIFFSource

    init(_ bytes: ByteView, page: Int) throws(Failure) {
        // Messages go nowhere: the failure says what a person can use.
        TIFFSetErrorHandler(nil)
        TIFFSetWarningHandler(nil)
        source = TIFFSource(bytes)
        let client = Unmanaged.passUnretained(source).toOpaque()
        let opened = TIFFClientOpen(
            "picture", "rm", client, tiffRead, tiffWrite, tiffSeek, tiffClose, tiffSize, nil, nil)
        guard let opened else { throw .corrupt("libtiff") }
        tiff = opened
        guard page == 0 || TIFFSetDirectory(opened, UInt32(page)) != 0 else { throw .corrupt("libtiff: page \(page)") }
        let compression = Self.get16(opened, TIFFTAG_COMPRESSION)
        guard TIFFIsCODECConfigured(UInt16(compression)) != 0 else {
            throw .unsupported("TIFF of compression \(compression)")
        }
        // libtiff looks up no more than 8 bits.
        let (kind, bits) = (Self.get16(opened, TIFFTAG_PHOTOMETRIC), Self.get16(opened, TIFFTAG_BITSPERSAMPLE))
        guard Int32(kind) != PHOTOMETRIC_PALETTE || bits <= 8 else {
            throw .unsupported("TIFF of a \(bits)-bit palette")
        }
        size = PixelSize(width: Self.get32(opened, TIFFTAG_IMAGEWIDTH), height: Self.get32(opened, TIFFTAG_IMAGELENGTH))
        plainRows = Self.plainRows(opened, width: size.width)
        // libtiff's own RGBA takes all numbers for unsigned ones, but for those of its logarithmic codec.
        let format = Self.get16(opened, TIFFTAG_SAMPLEFORMAT)
        guard
            plainRows != nil || [SAMPLEFORMAT_UINT, SAMPLEFORMAT_VOID].contains(Int32(format))
                || [COMPRESSION_SGILOG, COMPRESSION_SGILOG24].contains(Int32(compression))
        else {
            throw .unsupported("TIFF of \(Self.get16(opened, TIFFTAG_BITSPERSAMPLE))-bit numbers of kind \(format)")
        }
    }

    deinit { TIFFClose(tiff) }

    /// Rows as they come, scaled, on white.
    func decode(_ rows: PlainRows, _ target: PixelSize, encoding: ColorEncoding, budget: MemoryBudget) throws(Failure)
        -> DecodedPicture
    {
        let row = try Raster(
            size: PixelSize(width: size.width, height: 1), layout: rows.layout, depth: rows.depth, budget: budget)
        let resampler = try Resampler(
            source: size, target: target, layout: rows.layout.withoutAlpha, depth: rows.depth, budget: budget)
        let lineBytes = Int(TIFFScanlineSize(tiff)) + 64
        let sampleCount = size.width * rows.samples
        let sampleBytes = rows.depth / 8
        try budget.admit(sum(codedBytes, lineBytes, product(sampleCount, sampleBytes)))
        let band =
            rows.isPlanar || TIFFIsTiled(tiff) != 0
            ? try TIFFBand(tiff, size, rows: rows, budget: budget) : nil
        let coded = UnsafeMutableRawPointer.allocate(byteCount: lineBytes, alignment: 16)
        let line =
            rows.coding.isPlain
            ? nil : UnsafeMutableRawPointer.allocate(byteCount: sampleCount * sampleBytes, alignment: 16)
        defer {
            coded.deallocate()
            line?.deallocate()
        }
        func read(_ y: Int) -> UnsafeMutableRawPointer? {
            if let band { return band.row(y) }
            guard TIFFReadScanline(tiff, coded, UInt32(y), 0) == 1 else { return nil }
            guard let line else { return coded }
            rows.coding.expand(coded, sampleCount, into: line)
            return line
        }
        var encoding = rows.layout == .lab ? .plain : encoding
        if rows.coding.isFloat, case .plain = encoding {
            // Light, unless grey leaves its range: then something else was measured, which is shown from its least to its most.
            encoding = .gamma(exponent: 1, chromaticities: nil)
            if rows.layout == .grey {
                for y in 0..<size.height { _ = read(y) }
                if rows.coding.showAllThatWasSeen() { encoding = .plain }
            }
        }
        let (kept, step) = (rows.layout.channelCount * sampleBytes, rows.samples * sampleBytes)
        let bytes = row.pixels.bindMemory(to: UInt8.self)
        let rowBytes = row.rowBytes
        var damagedRows = 0
        for y in 0..<size.height {
            row.reuse(as: rows.layout)
            row.isPremultiplied = rows.isPremultiplied
            if let line = read(y) {
                for x in 0..<(kept == step ? 1 : size.width) {
                    (row.row(0) + x * kept).copyMemory(
                        from: line + x * step, byteCount: kept == step ? rowBytes : kept)
                }
                if rows.layout == .lab { row.countAsICC(hasSignedColors: rows.hasSignedColors) }
                if rows.isInverted { for index in 0..<rowBytes { bytes[index] = ~bytes[index] } }
            } else {
                damagedRows += 1
                memset(row.row(0), 0x80, rowBytes)
            }
            row.flattenOnWhite()
            resampler.take(row.row(0))
        }
        guard damagedRows < size.height else {
            throw hasForeignJPEG ? .unsupported("TIFF with a lossless JPEG") : .corrupt("libtiff: no row can be read")
        }
        return DecodedPicture(
            raster: resampler.result, encoding: encoding,
            warnings: damagedRows > 0 || band?.isDamaged == true ? [DecodedPicture.damaged] : [])
    }

    /// Of a kind that libjpeg has no decoder for.
    private var hasForeignJPEG: Bool {
        guard Self.get16(tiff, TIFFTAG_COMPRESSION) == COMPRESSION_JPEG else { return false }
        let start = Int(clamping: TIFFGetStrileOffset(tiff, 0)), count = Int(clamping: TIFFGetStrileByteCount(tiff, 0))
        return JPEGStructure(source.bytes.clamped(at: start, count: count))?.frame?.isDecodable == false
    }

    /// Strips or tiles whose lengths are looked at.
    private static let pieceCountMax = 1_000_000
    /// Codecs that decode a strip or tile whole, and take as much again for it: LERC, JBIG, WebP.
    private static let wholePieceCompressions: Set<Int32> = [COMPRESSION_LERC, COMPRESSION_JBIG, COMPRESSION_WEBP]

    /// What libtiff takes for the longest strip or tile: it reads each whole as it is in the file.
    private var codedBytes: Int? {
        let count = Int(TIFFIsTiled(tiff) != 0 ? TIFFNumberOfTiles(tiff) : TIFFNumberOfStrips(tiff))
        let longest = (0..<min(count, Self.pieceCountMax)).lazy.map { TIFFGetStrileByteCount(self.tiff, UInt32($0)) }
            .max()
        let isWhole = Self.wholePieceCompressions.contains(Int32(Self.get16(tiff, TIFFTAG_COMPRESSION)))
        return sum(
            min(Int(clamping: longest ?? 0), source.bytes.count), isWhole ? product(2, pieceBytes) : 0)
    }

    /// Of a strip or tile, decoded.
    private var pieceBytes: Int { Int(TIFFIsTiled(tiff) != 0 ? TIFFTileSize(tiff) : TIFFStripSize(tiff)) }

    /// Everything else that libtiff can show: palettes, YCbCr …
    func decodeRGBA(encoding: ColorEncoding, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        try budget.admit(
            sum(
                product(size.width, size.height, 4), codedBytes, pieceBytes))
        var message = [CChar](repeating: 0, count: 1024)
        guard TIFFRGBAImageOK(tiff, &message) != 0 else {
            throw Failure(
                .unsupportedCodec, "This kind of TIFF cannot be decoded here.",
                detail: String(decoding: message.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        let raster = try Raster(size: size, layout: .rgba, depth: 8, budget: budget)
        raster.isPremultiplied = true
        // As stored: the turn is made later for all formats alike.
        let orientation = Int32(max(1, Self.get16(tiff, TIFFTAG_ORIENTATION)))
        let pixels = raster.pixels.bindMemory(to: UInt32.self)
        guard
            TIFFReadRGBAImageOriented(
                tiff, UInt32(size.width), UInt32(size.height), pixels.baseAddress, orientation, 1) != 0
        else { throw .corrupt("libtiff") }
        // libtiff packs a pixel as ABGR in one number.
        for index in 0..<pixels.count { pixels[index] = pixels[index].littleEndian }
        // A profile of ink or grey does not fit what has become RGB: it is left aside with a warning then.
        return DecodedPicture(raster: raster, encoding: encoding)
    }

    private static func plainRows(_ tiff: OpaquePointer, width: Int) -> PlainRows? {
        let (bits, samples) = (get16(tiff, TIFFTAG_BITSPERSAMPLE), get16(tiff, TIFFTAG_SAMPLESPERPIXEL))
        let isPlanar = samples > 1 && get16(tiff, TIFFTAG_PLANARCONFIG) == PLANARCONFIG_SEPARATE
        let photometric = Int32(get16(tiff, TIFFTAG_PHOTOMETRIC))
        var format = get16(tiff, TIFFTAG_SAMPLEFORMAT)
        // Of L*a*b* two samples have a sign, whatever is said of all of them.
        if photometric == PHOTOMETRIC_CIELAB, format == SAMPLEFORMAT_INT { format = Int(SAMPLEFORMAT_UINT) }
        // This libtiff's JPEG has 8 bits.
        let isJPEG = get16(tiff, TIFFTAG_COMPRESSION) == COMPRESSION_JPEG
        guard let coding = TIFFSamples(bits: bits, format: format), samples >= 1, samples <= 8, !isJPEG || bits == 8
        else { return nil }
        var (extraCount, kinds) = (UInt16(0), UnsafeMutablePointer<UInt16>?.none)
        _ = rushes_tiff_get_extra_samples(tiff, &extraCount, &kinds)
        let alpha = extraCount > 0 ? kinds.map { Int32($0[0]) } : nil
        let hasAlpha = alpha == EXTRASAMPLE_ASSOCALPHA || alpha == EXTRASAMPLE_UNASSALPHA
        let layout: Raster.Layout
        switch photometric {
        case PHOTOMETRIC_MINISWHITE, PHOTOMETRIC_MINISBLACK:
            layout = hasAlpha && samples >= 2 && photometric == PHOTOMETRIC_MINISBLACK ? .greyAlpha : .grey
        case PHOTOMETRIC_RGB where samples >= 3: layout = hasAlpha && samples >= 4 ? .rgba : .rgb
        case PHOTOMETRIC_YCBCR
        where samples == 3 && !isPlanar && TIFFIsTiled(tiff) == 0 && isJPEG:
            guard rushes_tiff_jpeg_as_rgb(tiff) != 0 else { return nil }
            layout = .rgb
        case PHOTOMETRIC_SEPARATED where samples >= 4: layout = .cmyk
        case PHOTOMETRIC_CIELAB where samples >= 3 && coding.isPlain,
            PHOTOMETRIC_ICCLAB where samples >= 3 && coding.isPlain:
            layout = .lab
        default: return nil
        }
        guard let lineBytes = product(width, isPlanar ? 1 : samples).flatMap(coding.rowBytes),
            Int(TIFFScanlineSize(tiff)) == lineBytes
        else { return nil }
        return PlainRows(
            layout: layout, coding: coding, samples: samples, isInverted: photometric == PHOTOMETRIC_MINISWHITE,
            isPremultiplied: layout.hasAlpha && alpha == EXTRASAMPLE_ASSOCALPHA,
            isPlanar: isPlanar,
            hasSignedColors: photometric == PHOTOMETRIC_CIELAB)
    }

    private static func get16(_ tiff: OpaquePointer, _ tag: Int32) -> Int {
        var value: UInt16 = 0
        return rushes_tiff_get16(tiff, UInt32(tag), &value) != 0 ? Int(value) : 0
    }
    private static func get32(_ tiff: OpaquePointer, _ tag: Int32) -> Int {
        var value: UInt32 = 0
        return rushes_tiff_get32(tiff, UInt32(tag), &value) != 0 ? Int(value) : 0
    }
}

/// The bytes and the place that libtiff reads from.
private final class TIFFSource {
    let bytes: ByteView
    var offset = 0
    init(_ bytes: ByteView) { self.bytes = bytes }

    static func of(_ client: thandle_t?) -> TIFFSource? {
        client.map { Unmanaged<TIFFSource>.fromOpaque($0).takeUnretainedValue() }
    }
}

private func tiffRead(_ client: thandle_t?, _ target: UnsafeMutableRawPointer?, _ count: tmsize_t) -> tmsize_t {
    guard let source = TIFFSource.of(client), let target, count > 0 else { return 0 }
    let part = source.bytes.clamped(at: source.offset, count: Int(count))
    guard let start = part.bytes.baseAddress, part.count > 0 else { return 0 }
    target.copyMemory(from: start, byteCount: part.count)
    source.offset += part.count
    return tmsize_t(part.count)
}
private func tiffWrite(_: thandle_t?, _: UnsafeMutableRawPointer?, _: tmsize_t) -> tmsize_t { -1 }
private func tiffSeek(_ client: thandle_t?, _ offset: toff_t, _ whence: Int32) -> toff_t {
    guard let source = TIFFSource.of(client) else { return toff_t.max }
    let base = whence == SEEK_CUR ? source.offset : whence == SEEK_END ? source.bytes.count : 0
    let (place, isOver) = base.addingReportingOverflow(Int(truncatingIfNeeded: offset))
    guard !isOver, place >= 0 else { return toff_t.max }
    source.offset = place
    return toff_t(place)
}
private func tiffClose(_: thandle_t?) -> Int32 { 0 }
private func tiffSize(_ client: thandle_t?) -> toff_t { TIFFSource.of(client).map { toff_t($0.bytes.count) } ?? 0 }
