import CJPEGXL
import Foundation
import Vocabulary

/// JPEG XL by libjxl, which applies the picture's own orientation.
struct JXLFile: PictureFile {
    static let frameCountMax = 100_000

    let header: PictureHeader
    private let bytes: ByteView
    private let hasAlpha: Bool
    private let isGrey: Bool
    private let depth: Int
    /// Of the extra channel that holds black, where the colours are ink.
    private let blackChannel: Int?

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        self.bytes = bytes
        // Told to turn nothing, libjxl says how the picture lies.
        let reader = try JXLReader(
            bytes, events: JXL_DEC_BASIC_INFO.rawValue | JXL_DEC_COLOR_ENCODING.rawValue, turns: false)
        try reader.advance(to: JXL_DEC_BASIC_INFO)
        let info = try reader.info()
        hasAlpha = info.alpha_bits > 0
        isGrey = info.num_color_channels == 1
        depth = info.bits_per_sample > 8 ? 16 : 8
        blackChannel = reader.blackChannel(among: Int(info.num_extra_channels))
        let turn = Orientation(exif: Int(info.orientation.rawValue)) ?? .upright
        var header = PictureHeader(
            size: turn.size(ofStored: PixelSize(width: Int(info.xsize), height: Int(info.ysize))), codec: "jpegxl",
            pixelFormat: blackChannel != nil
                ? "cmyk"
                : (isGrey ? (hasAlpha ? "ya" : "gray") : (hasAlpha ? "rgba" : "rgb"))
                    + (depth == 16
                        ? (isGrey ? "16" : hasAlpha ? "64" : "48") + "le" : isGrey ? "" : hasAlpha ? "" : "24"))
        try header.admit(limits)
        try reader.advance(to: JXL_DEC_COLOR_ENCODING)
        (header.encoding, header.codePoints) = reader.color()
        var boxes = Self.boxes(bytes)
        header.hasGainMap = boxes.contains { $0.type == "jhgm" }
        if boxes.contains(where: { $0.type == "brob" && ["Exif", "xml "].contains($0.body.fourCC(at: 0)) }) {
            boxes += JXLReader.unpackedBoxes(bytes)
        }
        // Four bytes say how many come before the TIFF header.
        let exif = boxes.filter { $0.type == "Exif" }.compactMap { box in
            box.body.u32(at: 0).map { box.body.suffix(from: 4 + Int($0)) }
        }
        header.metadata = PhotoMetadata(exif: exif, xmp: boxes.first("xml ")?.body)
        // The codestream's own orientation is the one that counts, and libjxl has applied it.
        header.metadata.orientation = nil
        header.containerTurn = turn
        if info.have_animation != 0 {
            let (frames, ticks) = try Self.countFrames(bytes)
            let rate = Double(info.animation.tps_numerator) / Double(max(1, info.animation.tps_denominator))
            header.frames = max(1, frames)
            header.duration = frames > 1 && rate > 0 ? Double(ticks) / rate : nil
        }
        self.header = header
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        if let blackChannel { return try decodeInk(blackChannel, budget: budget) }
        return try decodePicture(0, budget: budget)
    }

    /// Of an animation the last picture too: its header says nothing of whether its end is there.
    func tryPixels(budget: MemoryBudget) throws(Failure) -> [MediaWarning] {
        let warnings = try decode(longSide: 1, budget: budget).warnings
        if header.frames > 1 { _ = try decodePicture(header.frames - 1, budget: budget) }
        return warnings
    }

    private func decodePicture(_ index: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let layout: Raster.Layout = isGrey ? (hasAlpha ? .greyAlpha : .grey) : (hasAlpha ? .rgba : .rgb)
        // libjxl works in 32-bit floats, three to four planes, some of them twice.
        try budget.admit(product(header.size.width, header.size.height, 40))
        let raster = try Raster(size: header.size, layout: layout, depth: depth, budget: budget)
        raster.clear()
        let reader = try JXLReader(bytes, events: JXL_DEC_FULL_IMAGE.rawValue)
        var format = JxlPixelFormat(
            num_channels: UInt32(layout.channelCount), data_type: depth == 16 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
            endianness: JXL_NATIVE_ENDIAN, align: 0)
        reader.skip(index)
        try reader.advance(to: JXL_DEC_NEED_IMAGE_OUT_BUFFER)
        try reader.setOutput(raster, &format)
        try reader.advance(to: JXL_DEC_FULL_IMAGE)
        raster.isPremultiplied = try reader.info().alpha_premultiplied != 0
        return DecodedPicture(raster: raster, encoding: header.encoding)
    }

    /// In 8 bits, on paper. In JPEG XL, no ink is the largest value, of black too (ISO/IEC 18181-1, extra channels of type kBlack).
    private func decodeInk(_ blackChannel: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        try budget.admit(product(header.size.width, header.size.height, 48))
        let colors = try Raster(size: header.size, layout: hasAlpha ? .rgba : .rgb, depth: 8, budget: budget)
        let black = try Raster(size: header.size, layout: .grey, depth: 8, budget: budget)
        colors.clear()
        black.clear()
        let reader = try JXLReader(bytes, events: JXL_DEC_FULL_IMAGE.rawValue)
        var format = JxlPixelFormat(
            num_channels: UInt32(colors.layout.channelCount), data_type: JXL_TYPE_UINT8,
            endianness: JXL_NATIVE_ENDIAN, align: 0)
        try reader.advance(to: JXL_DEC_NEED_IMAGE_OUT_BUFFER)
        try reader.setOutput(colors, &format)
        try reader.setExtraChannel(blackChannel, black, &format)
        try reader.advance(to: JXL_DEC_FULL_IMAGE)
        let isPremultiplied = try reader.info().alpha_premultiplied != 0

        let ink = try Raster(size: header.size, layout: .cmyk, depth: 8, budget: budget)
        let channels = colors.layout.channelCount
        for pixel in 0..<(header.size.width * header.size.height) {
            let from = pixel * channels
            let alpha = hasAlpha ? Int(colors.pixels[from + 3]) : 255
            for channel in 0..<4 {
                let light = Int(channel < 3 ? colors.pixels[from + channel] : black.pixels[pixel])
                let isDone = isPremultiplied && channel < 3
                ink.pixels[pixel * 4 + channel] = UInt8(
                    isDone ? max(0, alpha - light) : (alpha * (255 - light) + 127) / 255)
            }
        }
        return DecodedPicture(raster: ink, encoding: header.encoding)
    }

    private static func boxes(_ bytes: ByteView) -> [ISOBox] {
        bytes.u32(at: 0) == 12 ? ISOBox.boxes(in: bytes) : []
    }

    private static func countFrames(_ bytes: ByteView) throws(Failure) -> (frames: Int, ticks: UInt64) {
        let reader = try JXLReader(bytes, events: JXL_DEC_FRAME.rawValue)
        var (frames, ticks) = (0, UInt64(0))
        while frames < frameCountMax, try reader.finds(JXL_DEC_FRAME) {
            frames += 1
            ticks += UInt64(reader.frameTicks())
        }
        return (frames, ticks)
    }
}

/// One pass of libjxl's decoder over the whole file.
final class JXLReader {
    /// Steps of one pass: each frame, box and pass of progressive detail is some.
    static let stepCountMax = 10_000_000
    static let profileBytesMax = 16 << 20

    private let decoder: OpaquePointer
    private let bytes: ByteView

    /// - Parameter turns: by the picture's own orientation, as libjxl does by itself.
    init(_ bytes: ByteView, events: UInt32, turns: Bool = true) throws(Failure) {
        guard let decoder = JxlDecoderCreate(nil) else { throw Failure(.internalError, "libjxl could not be started.") }
        self.decoder = decoder
        self.bytes = bytes
        guard JxlDecoderSubscribeEvents(decoder, Int32(bitPattern: events)) == JXL_DEC_SUCCESS,
            JxlDecoderSetKeepOrientation(decoder, turns ? JXL_FALSE : JXL_TRUE) == JXL_DEC_SUCCESS,
            JxlDecoderSetInput(decoder, bytes.bytes.bindMemory(to: UInt8.self).baseAddress, bytes.count)
                == JXL_DEC_SUCCESS
        else { throw Failure(.internalError, "libjxl could not be started.") }
        // The input is left open, so that a missing end is told apart from damage.
    }
    deinit { JxlDecoderDestroy(decoder) }

    /// Of one packed box.
    private static let boxBytesMax = 16 << 20
    private static let boxCountMax = 16

    /// EXIF and XMP that are packed by Brotli; none where libjxl cannot unpack them.
    static func unpackedBoxes(_ bytes: ByteView) -> [ISOBox] {
        (try? JXLReader(bytes, events: JXL_DEC_BOX.rawValue))?.unpackedBoxes() ?? []
    }

    private func unpackedBoxes() -> [ISOBox] {
        guard JxlDecoderSetDecompressBoxes(decoder, JXL_TRUE) == JXL_DEC_SUCCESS else { return [] }
        JxlDecoderCloseInput(decoder)
        var found: [ISOBox] = []
        var current: String?
        let room = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: Self.boxBytesMax)
        defer { room.deallocate() }
        func finish() {
            guard let type = current else { return }
            let left = JxlDecoderReleaseBoxBuffer(decoder)
            found.append(ISOBox(type: type, body: ByteView(Array(room[..<(room.count - left)])), isWhole: true))
            current = nil
        }
        for _ in 0..<Self.stepCountMax where found.count < Self.boxCountMax {
            switch JxlDecoderProcessInput(decoder) {
            case JXL_DEC_BOX:
                finish()
                guard let packed = boxType(unpacked: false), let plain = boxType(unpacked: true) else { return found }
                guard packed == "brob", ["Exif", "xml "].contains(plain) else { continue }
                guard JxlDecoderSetBoxBuffer(decoder, room.baseAddress, room.count) == JXL_DEC_SUCCESS else {
                    return found
                }
                current = plain
            case JXL_DEC_SUCCESS:
                finish()
                return found
            default: return found
            }
        }
        return found
    }

    private func boxType(unpacked: Bool) -> String? {
        // All four letters have to be lent: a pointer to the first alone lets the optimizer forget what is written to the others.
        var letters = [CChar](repeating: 0, count: MemoryLayout<JxlBoxType>.size)
        guard JxlDecoderGetBoxType(decoder, &letters, unpacked ? JXL_TRUE : JXL_FALSE) == JXL_DEC_SUCCESS else {
            return nil
        }
        return String(decoding: letters.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    func advance(to event: JxlDecoderStatus) throws(Failure) {
        guard try finds(event) else { throw .corrupt("libjxl: the end before event \(event.rawValue)") }
    }

    /// - Returns: false at the end.
    func finds(_ event: JxlDecoderStatus) throws(Failure) -> Bool {
        for _ in 0..<Self.stepCountMax {
            switch JxlDecoderProcessInput(decoder) {
            case event: return true
            case JXL_DEC_SUCCESS: return false
            case JXL_DEC_NEED_MORE_INPUT: throw .truncated("libjxl wants more bytes")
            case JXL_DEC_ERROR: throw .corrupt("libjxl")
            case JXL_DEC_NEED_IMAGE_OUT_BUFFER where event == JXL_DEC_FULL_IMAGE:
                throw Failure(.internalError, "The picture could not be decoded.", detail: "libjxl wants a buffer")
            default: continue
            }
        }
        throw .corrupt("libjxl comes to no end")
    }

    func info() throws(Failure) -> JxlBasicInfo {
        var info = JxlBasicInfo()
        guard JxlDecoderGetBasicInfo(decoder, &info) == JXL_DEC_SUCCESS else { throw .corrupt("libjxl: no header") }
        return info
    }

    func setOutput(_ raster: Raster, _ format: inout JxlPixelFormat) throws(Failure) {
        var needed = 0
        guard JxlDecoderImageOutBufferSize(decoder, &format, &needed) == JXL_DEC_SUCCESS, needed <= raster.pixels.count,
            JxlDecoderSetImageOutBuffer(decoder, &format, raster.pixels.baseAddress, raster.pixels.count)
                == JXL_DEC_SUCCESS
        else { throw .corrupt("libjxl: \(needed) bytes") }
    }

    /// - Returns: nil where the colours are no ink.
    func blackChannel(among count: Int) -> Int? {
        (0..<min(count, Self.extraChannelMax)).first { index in
            var info = JxlExtraChannelInfo()
            return JxlDecoderGetExtraChannelInfo(decoder, index, &info) == JXL_DEC_SUCCESS
                && info.type == JXL_CHANNEL_BLACK
        }
    }
    private static let extraChannelMax = 256

    func setExtraChannel(_ index: Int, _ raster: Raster, _ format: inout JxlPixelFormat) throws(Failure) {
        guard
            JxlDecoderSetExtraChannelBuffer(
                decoder, &format, raster.pixels.baseAddress, raster.pixels.count, UInt32(index)) == JXL_DEC_SUCCESS
        else { throw .corrupt("libjxl: extra channel \(index)") }
    }

    /// So many pictures are passed over.
    func skip(_ count: Int) { JxlDecoderSkipFrames(decoder, count) }

    func frameTicks() -> UInt32 {
        var frame = JxlFrameHeader()
        return JxlDecoderGetFrameHeader(decoder, &frame) == JXL_DEC_SUCCESS ? frame.duration : 0
    }

    /// The meaning of the pixels as they are given out.
    func color() -> (ColorEncoding, CodePoints?) {
        var format = JxlPixelFormat(
            num_channels: 3, data_type: JXL_TYPE_UINT8, endianness: JXL_NATIVE_ENDIAN, align: 0)
        var color = JxlColorEncoding()
        if JxlDecoderGetColorAsEncodedProfile(decoder, &format, JXL_COLOR_PROFILE_TARGET_DATA, &color)
            == JXL_DEC_SUCCESS,
            color.transfer_function != JXL_TRANSFER_FUNCTION_GAMMA, color.primaries != JXL_PRIMARIES_CUSTOM,
            color.white_point != JXL_WHITE_POINT_CUSTOM, color.white_point != JXL_WHITE_POINT_E
        {
            // libjxl numbers both as H.273 does. P3 with DCI white is another code point there.
            var primaries = Int(color.primaries.rawValue)
            if color.primaries == JXL_PRIMARIES_P3, color.white_point == JXL_WHITE_POINT_D65 { primaries = 12 }
            let points = CodePoints(
                primaries: color.color_space == JXL_COLOR_SPACE_GRAY ? 1 : primaries,
                transfer: Int(color.transfer_function.rawValue), matrix: 0)
            return (.codePoints(points), points)
        }
        var size = 0
        guard JxlDecoderGetICCProfileSize(decoder, &format, JXL_COLOR_PROFILE_TARGET_DATA, &size) == JXL_DEC_SUCCESS,
            size > 0, size <= Self.profileBytesMax
        else { return (.plain, nil) }
        var profile = [UInt8](repeating: 0, count: size)
        let status = JxlDecoderGetColorAsICCProfile(decoder, &format, JXL_COLOR_PROFILE_TARGET_DATA, &profile, size)
        return (status == JXL_DEC_SUCCESS ? .profile(ByteView(profile)) : .plain, nil)
    }
}
