import CRaw
import Vocabulary

/// One raw file in LibRaw.
final class RAWDevelopment {
    /// Bytes of a preview that are believed.
    static let previewBytesMax = 256 << 20

    let size: PixelSize
    let orientation: Orientation?
    // LibRaw reads from these bytes for as long as it is open.
    private let bytes: ByteView
    private let raw: UnsafeMutablePointer<libraw_data_t>
    private var isUnpacked = false

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let raw = libraw_init(0) else { throw Failure(.internalError, "LibRaw could not be started.") }
        self.bytes = bytes
        self.raw = raw
        // Megabytes; LibRaw refuses what needs more.
        raw.pointee.params.max_raw_memory_mb = UInt32(min(max(limits.memoryBytes >> 20, 1), 1 << 20))
        let status = libraw_open_buffer(raw, UnsafeMutableRawPointer(mutating: bytes.bytes.baseAddress), bytes.count)
        let sizes = raw.pointee.sizes
        size = PixelSize(width: Int(sizes.width), height: Int(sizes.height))
        orientation = Self.orientation(sizes.flip)
        guard status == LIBRAW_SUCCESS.rawValue else { throw Self.failure(status) }
        try PictureHeader(size: size, codec: "raw").admit(limits)
        try PictureHeader(size: PixelSize(width: Int(sizes.raw_width), height: Int(sizes.raw_height)), codec: "raw")
            .admit(limits)
    }

    deinit { libraw_close(raw) }

    /// FFmpeg's name for the sensor's samples; nil for what it has no name for, such as Fujifilm's filter of six columns.
    var pixelFormat: String? {
        // Two bits a place, from the first row's first on; 3 is the second green.
        let filters = raw.pointee.idata.filters
        return switch filters & ~((filters & 0x5555_5555) << 1) {
        case 0x9494_9494: "bayer_rggb16le"
        case 0x1616_1616: "bayer_bggr16le"
        case 0x6161_6161: "bayer_grbg16le"
        case 0x4949_4949: "bayer_gbrg16le"
        default: nil
        }
    }

    /// The largest embedded JPEG; nil where there is none.
    func preview() -> ByteView? {
        guard libraw_unpack_thumb(raw) == LIBRAW_SUCCESS.rawValue else { return nil }
        let thumbnail = raw.pointee.thumbnail
        guard thumbnail.tformat == LIBRAW_THUMBNAIL_JPEG, let start = thumbnail.thumb,
            (1...Self.previewBytesMax).contains(Int(thumbnail.tlength))
        else { return nil }
        return ByteView(Array(UnsafeRawBufferPointer(start: start, count: Int(thumbnail.tlength))))
    }

    /// Not turned. At half size, one pixel from each cell of the filter, where that is large enough.
    func develop(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let sizes = raw.pointee.sizes
        let half = size.longSide / 2 >= longSide
        let shrink = half ? 4 : 1
        // The sensor's samples, LibRaw's four 16-bit channels (twice while it interpolates), its RGB and ours.
        try budget.admit(
            sum(
                product(Int(sizes.raw_width), Int(sizes.raw_height), 8),
                product(Int(sizes.width), Int(sizes.height), 22).map { $0 / shrink }))
        raw.pointee.params.half_size = half ? 1 : 0
        raw.pointee.params.use_camera_wb = 1
        raw.pointee.params.output_bps = 8
        raw.pointee.params.user_flip = 0
        // sRGB's curve (IEC 61966-2-1) as its power and its slope in the shadows; LibRaw's own is that of BT.709.
        raw.pointee.params.gamm.0 = 1 / 2.4
        raw.pointee.params.gamm.1 = 12.92
        if !isUnpacked {
            try check(libraw_unpack(raw))
            isUnpacked = true
        }
        try check(libraw_dcraw_process(raw))
        var status: Int32 = 0
        guard let image = libraw_dcraw_make_mem_image(raw, &status) else { throw Self.failure(status) }
        defer { libraw_dcraw_clear_mem(image) }
        let found = image.pointee
        let layout: Raster.Layout = found.colors == 1 ? .grey : .rgb
        guard found.type == LIBRAW_IMAGE_BITMAP, found.bits == 8, found.colors == 3 || found.colors == 1 else {
            throw .unsupported("a camera raw of \(found.colors) colours")
        }
        let raster = try Raster(
            size: PixelSize(width: Int(found.width), height: Int(found.height)), layout: layout, depth: 8,
            budget: budget)
        guard Int(found.data_size) >= raster.pixels.count,
            let offset = MemoryLayout<libraw_processed_image_t>.offset(of: \.data)
        else { throw .corrupt("LibRaw: \(found.data_size) bytes") }
        raster.pixels.copyMemory(
            from: UnsafeRawBufferPointer(start: UnsafeRawPointer(image) + offset, count: raster.pixels.count))
        return DecodedPicture(raster: raster, encoding: .plain)
    }

    private func check(_ status: Int32) throws(Failure) {
        if status != LIBRAW_SUCCESS.rawValue { throw Self.failure(status) }
    }

    /// LibRaw's numbers: 3 half a turn, 5 a quarter against the clock, 6 a quarter with it.
    private static func orientation(_ flip: Int32) -> Orientation? {
        switch flip {
        case 0: .upright
        case 3: .turned180
        case 5: .turned270
        case 6: .turned90
        default: nil
        }
    }

    private static func failure(_ status: Int32) -> Failure {
        let words = libraw_strerror(status).map { String(cString: $0) } ?? "error \(status)"
        switch LibRaw_errors(status) {
        case LIBRAW_TOO_BIG:
            return Failure(.overBudget, "This picture needs more memory than is allowed.", detail: words)
        case LIBRAW_DATA_ERROR, LIBRAW_IO_ERROR, LIBRAW_BAD_CROP: return .corrupt(words)
        default: return Failure(.unsupportedCodec, "This camera's raw files cannot be decoded here.", detail: words)
        }
    }
}
