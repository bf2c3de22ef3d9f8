import CHEIF
import Foundation
import Vocabulary

/// The primary picture of a HEIF or AVIF file, as libheif sees it.
final class HEIFStill {
    /// Bytes of one block of EXIF or XMP.
    static let metadataBytesMax = 16 << 20
    private static let metadataBlocksMax = 16
    /// What libheif allows where nobody says otherwise (heif_context.cc).
    private static let longSideDefault = 32768
    /// Threads of libheif, each with a tile of its own.
    private static let tilesAtATime = 4

    /// Upright: after the container's turns and crop.
    let size: PixelSize
    let depth: Int
    private(set) var encoding: ColorEncoding = .plain
    private(set) var codePoints: CodePoints?
    private(set) var metadata = PhotoMetadata()
    var hasAlpha: Bool { heif_image_handle_has_alpha_channel(handle) != 0 }
    private let isAV1: Bool
    /// RGB is coded as it is, in the limited range, which libheif does not see.
    private var isLimitedRGB = false
    // libheif reads from these bytes for as long as the context lives.
    private let bytes: ByteView
    private let context: OpaquePointer
    private let handle: OpaquePointer
    /// Nil for a picture that libheif puts together in RGB.
    private let chroma: HEIFStructure.Chroma?
    /// Pixels that are decoded at a time, before any crop; nil when they are too many to count.
    private let decodedArea: Int?

    init(_ bytes: ByteView, _ structure: HEIFStructure) throws(Failure) {
        guard let context = heif_context_alloc() else { throw Failure(.internalError, "libheif could not be started.") }
        self.bytes = bytes
        isAV1 = structure.codedItem?.type == "av01"
        chroma = structure.isOverlay ? nil : structure.chroma
        // The bound on pixels is ours; libheif's own is on each side, and panoramas are longer.
        let longSide = max(Self.longSideDefault, structure.size?.longSide ?? 0)
        heif_context_set_maximum_image_size_limit(context, Int32(clamping: longSide))
        heif_context_set_max_decoding_threads(context, Int32(Self.tilesAtATime))
        var handle: OpaquePointer?
        var status = heif_context_read_from_memory_without_copy(context, bytes.bytes.baseAddress, bytes.count, nil)
        if status.code == heif_error_Ok { status = heif_context_get_primary_image_handle(context, &handle) }
        guard status.code == heif_error_Ok, let handle else {
            heif_context_free(context)
            throw Self.failure(status)
        }
        self.context = context
        self.handle = handle
        // libheif's own count takes a turn that is listed before the size for none.
        size =
            structure.uprightSize
            ?? PixelSize(
                width: Int(heif_image_handle_get_width(handle)), height: Int(heif_image_handle_get_height(handle)))
        // Rows of whole blocks.
        let margin = product(size.width + size.height + 64, 64)
        decodedArea = sum(structure.size == nil ? size.area : structure.decodedArea(atATime: Self.tilesAtATime), margin)
        depth = max(8, Int(heif_image_handle_get_luma_bits_per_pixel(handle)))
        readColor()
        readMetadata()
    }

    deinit {
        heif_image_handle_release(handle)
        heif_context_free(context)
    }

    /// Of a pixel of 8 bits as it is coded: the decoder's own pictures and libheif's (measured at 24 megapixels, with dav1d and libde265).
    private var codedBytes: Int {
        switch chroma {
        case .some(.none): isAV1 ? 5 : 4
        case .c420: isAV1 ? 7 : 5
        case .c422: isAV1 ? 9 : 6
        case .c444, nil: isAV1 ? 13 : 8
        }
    }

    /// The whole picture: libheif knows no smaller scale.
    func decode(budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let isDeep = depth > 8
        let sampleBytes = isDeep ? 2 : 1
        // Beside what is coded libheif's RGB and ours, when the decoder has let go of its own.
        try budget.admit(decodedArea.flatMap { product($0, sampleBytes, hasAlpha ? 13 : max(9, codedBytes)) })
        guard let options = heif_decoding_options_alloc() else {
            throw Failure(.internalError, "libheif could not be started.")
        }
        defer { heif_decoding_options_free(options) }
        let alphaRange = hasAlpha && isAV1 ? HEIFAlpha.range(of: handle) : .full
        if self.chroma == HEIFStructure.Chroma.none, let grey = try decodeGrey(alphaRange, budget: budget) {
            return grey
        }
        let chroma: heif_chroma
        switch (isDeep, hasAlpha) {
        case (false, false): chroma = heif_chroma_interleaved_RGB
        case (false, true): chroma = heif_chroma_interleaved_RGBA
        case (true, false): chroma = heif_chroma_interleaved_RRGGBB_LE
        case (true, true): chroma = heif_chroma_interleaved_RRGGBBAA_LE
        }
        var image: OpaquePointer?
        let status = heif_decode_image(handle, &image, heif_colorspace_RGB, chroma, options)
        guard status.code == heif_error_Ok, let image else { throw Self.failure(status) }
        defer { heif_image_release(image) }

        let decoded = PixelSize(
            width: Int(heif_image_get_width(image, heif_channel_interleaved)),
            height: Int(heif_image_get_height(image, heif_channel_interleaved)))
        var stride: Int32 = 0
        guard let plane = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride) else {
            throw .corrupt("libheif gave no pixels")
        }
        let raster = try Raster(size: decoded, layout: hasAlpha ? .rgba : .rgb, depth: isDeep ? 16 : 8, budget: budget)
        guard Int(stride) >= raster.rowBytes else { throw .corrupt("libheif: stride \(stride)") }
        raster.isPremultiplied = heif_image_handle_is_premultiplied_alpha(handle) != 0
        let bits = Int(heif_image_get_bits_per_pixel_range(image, heif_channel_interleaved))
        for y in 0..<decoded.height {
            let row = raster.row(y)
            row.copyMemory(from: plane + y * Int(stride), byteCount: raster.rowBytes)
            guard isDeep, (9...15).contains(bits) else { continue }
            // From `bits` to the full range of 16 by repeating the upper bits.
            let samples = row.assumingMemoryBound(to: UInt16.self)
            for index in 0..<(raster.rowBytes / 2) {
                let value = UInt16(littleEndian: samples[index])
                samples[index] = value << UInt16(16 - bits) | value >> UInt16(2 * bits - 16)
            }
        }
        if isLimitedRGB { raster.expand(channels: 0..<3, from: .limited(depth)) }
        if hasAlpha { raster.expand(channels: 3..<4, from: alphaRange) }
        return DecodedPicture(raster: raster, encoding: Self.encoding(encoding, of: image))
    }

    /// Grey as it is coded: libheif's way to RGB forgets the limited range of more than 8 bits. Nil for what it gives in RGB only.
    private func decodeGrey(_ alphaRange: SampleRange, budget: MemoryBudget) throws(Failure) -> DecodedPicture? {
        var image: OpaquePointer?
        let status = heif_decode_image(handle, &image, heif_colorspace_monochrome, heif_chroma_monochrome, nil)
        if status.code == heif_error_Unsupported_feature { return nil }
        guard status.code == heif_error_Ok, let image else { throw Self.failure(status) }
        defer { heif_image_release(image) }
        let size = PixelSize(
            width: Int(heif_image_get_width(image, heif_channel_Y)),
            height: Int(heif_image_get_height(image, heif_channel_Y)))
        let channels = hasAlpha ? [heif_channel_Y, heif_channel_Alpha] : [heif_channel_Y]
        guard let coding = Self.coding(image), channels.allSatisfy({ heif_image_has_channel(image, $0) != 0 }) else {
            return nil
        }
        let raster = try Raster(size: size, layout: hasAlpha ? .greyAlpha : .grey, depth: 16, budget: budget)
        let output = raster.pixels.bindMemory(to: UInt16.self)
        for (index, channel) in channels.enumerated() {
            var stride: Int32 = 0
            let bits = Int(heif_image_get_bits_per_pixel_range(image, channel))
            guard let plane = heif_image_get_plane_readonly(image, channel, &stride), (8...16).contains(bits),
                Int(heif_image_get_width(image, channel)) == size.width,
                Int(heif_image_get_height(image, channel)) == size.height
            else { return nil }
            let last = UInt32(1) << UInt32(bits) - 1
            for y in 0..<size.height {
                let row = UnsafeRawPointer(plane + y * Int(stride))
                for x in 0..<size.width {
                    let value =
                        bits == 8
                        ? UInt32(row.load(fromByteOffset: x, as: UInt8.self))
                        : UInt32(UInt16(littleEndian: row.load(fromByteOffset: x * 2, as: UInt16.self)))
                    output[(y * size.width + x) * channels.count + index] = UInt16(
                        truncatingIfNeeded: (min(value, last) * 65535 + last / 2) / last)
                }
            }
        }
        raster.isPremultiplied = heif_image_handle_is_premultiplied_alpha(handle) != 0
        raster.expand(channels: 0..<1, from: coding.isFullRange ? .full : .limited(depth))
        if hasAlpha { raster.expand(channels: 1..<2, from: alphaRange) }
        return DecodedPicture(raster: raster, encoding: Self.encoding(encoding, of: image))
    }

    /// Luma and chroma of an ordinary picture of 8 bits, scaled without a way through RGB; nil for all others.
    func decodePlanes(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPlanes? {
        guard depth == 8, let chroma, !hasAlpha, codePoints?.hdr == nil,
            codePoints?.matrix.map({ YCbCrCoding(matrix: $0, isFullRange: true) != nil }) ?? true
        else { return nil }
        // And the decoder's tables, and our planes.
        try budget.admit(
            sum(decodedArea.flatMap { product($0, codedBytes) }, 16 << 20, Planes.byteCount(target)))
        var image: OpaquePointer?
        // Asked for nothing, libheif would give RGB.
        let (space, format) = Self.asCoded(chroma)
        let status = heif_decode_image(handle, &image, space, format, nil)
        // What it cannot crop or turn so, such as grey, it can in RGB.
        if status.code == heif_error_Unsupported_feature { return nil }
        guard status.code == heif_error_Ok, let image else { throw Self.failure(status) }
        defer { heif_image_release(image) }
        let channels: [heif_channel]
        switch heif_image_get_colorspace(image) {
        case heif_colorspace_YCbCr: channels = [heif_channel_Y, heif_channel_Cb, heif_channel_Cr]
        case heif_colorspace_monochrome: channels = [heif_channel_Y]
        default: return nil
        }
        guard let coding = Self.coding(image) else { return nil }
        // The picture as it came: what the file says of it may be something else.
        let luma = PixelSize(
            width: Int(heif_image_get_width(image, heif_channel_Y)),
            height: Int(heif_image_get_height(image, heif_channel_Y)))
        var components: [Plane] = []
        for (index, channel) in channels.enumerated() {
            guard heif_image_get_bits_per_pixel_range(image, channel) == 8 else { return nil }
            var stride: Int32 = 0
            guard let samples = heif_image_get_plane_readonly(image, channel, &stride) else {
                throw .corrupt("libheif gave no samples")
            }
            let size = PixelSize(
                width: Int(heif_image_get_width(image, channel)), height: Int(heif_image_get_height(image, channel)))
            // Seen from the planes: those of 4:2:2 change places when libheif turns them, and it goes on calling them so.
            let extent = (
                Double(luma.width) / (size.width < luma.width ? 2 : 1),
                Double(luma.height) / (size.height < luma.height ? 2 : 1)
            )
            let source = Plane(borrowing: samples, rowBytes: Int(stride), size, extent: extent)
            let (shape, covered) = Planes.shape(index, of: target)
            components.append(try PlaneScaler.scaledCopy(of: source, to: shape, extent: covered, budget: budget))
        }
        return DecodedPlanes(
            planes: Planes(components: components), coding: coding, encoding: Self.encoding(encoding, of: image))
    }

    private static func asCoded(_ chroma: HEIFStructure.Chroma) -> (heif_colorspace, heif_chroma) {
        switch chroma {
        case .none: (heif_colorspace_monochrome, heif_chroma_monochrome)
        case .c420: (heif_colorspace_YCbCr, heif_chroma_420)
        case .c422: (heif_colorspace_YCbCr, heif_chroma_422)
        case .c444: (heif_colorspace_YCbCr, heif_chroma_444)
        }
    }

    /// - Returns: nil for a matrix that is not one of luma and chroma.
    private static func coding(_ image: OpaquePointer) -> YCbCrCoding? {
        var found: UnsafeMutablePointer<heif_color_profile_nclx>?
        guard heif_image_get_nclx_color_profile(image, &found).code == heif_error_Ok, let found else { return .jpeg }
        defer { heif_nclx_color_profile_free(found) }
        return YCbCrCoding(
            matrix: Int(found.pointee.matrix_coefficients.rawValue), isFullRange: found.pointee.full_range_flag != 0)
    }

    /// Where the container says nothing, the coded picture may.
    private static func encoding(_ known: ColorEncoding, of image: OpaquePointer) -> ColorEncoding {
        guard case .plain = known else { return known }
        var found: UnsafeMutablePointer<heif_color_profile_nclx>?
        guard heif_image_get_nclx_color_profile(image, &found).code == heif_error_Ok, let found else { return known }
        defer { heif_nclx_color_profile_free(found) }
        return .codePoints(CodePoints(found.pointee))
    }

    /// A profile is the better description, except that an HDR curve can only be told by code points.
    private func readColor() {
        var found: UnsafeMutablePointer<heif_color_profile_nclx>?
        if heif_image_handle_get_nclx_color_profile(handle, &found).code == heif_error_Ok, let found {
            codePoints = CodePoints(found.pointee)
            isLimitedRGB = codePoints?.matrix == 0 && found.pointee.full_range_flag == 0
            heif_nclx_color_profile_free(found)
        }
        let count = heif_image_handle_get_raw_color_profile_size(handle)
        if let codePoints { encoding = .codePoints(codePoints) }
        guard count > 0, count <= Self.metadataBytesMax, codePoints?.hdr == nil else { return }
        var profile = [UInt8](repeating: 0, count: count)
        guard heif_image_handle_get_raw_color_profile(handle, &profile).code == heif_error_Ok else { return }
        encoding = .profile(ByteView(profile))
    }

    private func readMetadata() {
        var ids = [heif_item_id](repeating: 0, count: Self.metadataBlocksMax)
        let count = heif_image_handle_get_list_of_metadata_block_IDs(handle, nil, &ids, Int32(ids.count))
        var (exif, xmp): ([ByteView], ByteView?) = ([], nil)
        for id in ids.prefix(max(0, Int(count))) {
            let size = heif_image_handle_get_metadata_size(handle, id)
            guard size > 4, size <= Self.metadataBytesMax, let type = heif_image_handle_get_metadata_type(handle, id)
            else {
                continue
            }
            var block = [UInt8](repeating: 0, count: size)
            guard heif_image_handle_get_metadata(handle, id, &block).code == heif_error_Ok else { continue }
            let view = ByteView(block)
            switch String(cString: type) {
            case "Exif":
                // Four bytes say how many come before the TIFF header.
                if let skipped = view.u32(at: 0) { exif.append(view.suffix(from: 4 + Int(skipped))) }
            case "mime": xmp = xmp ?? view
            default: continue
            }
        }
        metadata = PhotoMetadata(exif: exif, xmp: xmp)
    }

    private static func failure(_ status: heif_error) -> Failure {
        let words = status.message.map { String(cString: $0) } ?? "error \(status.code.rawValue)"
        switch status.code {
        case heif_error_Memory_allocation_error:
            return status.subcode == heif_suberror_Security_limit_exceeded
                ? Failure(.tooLarge, "The picture has more pixels than can be worked on.", detail: words)
                : Failure(.overBudget, "This picture needs more memory than there is.", detail: words)
        case heif_error_Unsupported_filetype, heif_error_Unsupported_feature:
            return Failure(.unsupportedCodec, "This kind of HEIF picture cannot be decoded here.", detail: words)
        default:
            return status.subcode == heif_suberror_End_of_data ? .truncated(words) : .corrupt(words)
        }
    }
}

extension CodePoints {
    init(_ profile: heif_color_profile_nclx) {
        self.init(
            primaries: Int(profile.color_primaries.rawValue), transfer: Int(profile.transfer_characteristics.rawValue),
            matrix: Int(profile.matrix_coefficients.rawValue))
    }
}
