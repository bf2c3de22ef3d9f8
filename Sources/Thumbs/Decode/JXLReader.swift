import CJPEGXL
import Vocabulary

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
