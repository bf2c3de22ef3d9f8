import CFFmpeg
package import Vocabulary

/// Owns one libswscale context: scales and converts pictures, slower but of any format to any other.
package struct Scaler: ~Copyable {
    private let pointer: OpaquePointer
    private let width: Int
    private let height: Int
    private let format: PixelFormat

    private init(owning pointer: OpaquePointer, _ width: Int, _ height: Int, _ format: PixelFormat) {
        self.pointer = pointer
        self.width = width
        self.height = height
        self.format = format
    }
    deinit { sws_freeContext(pointer) }

    /// From pictures like `source`.
    /// - Parameter matrix: the source's YCbCr matrix by FFmpeg's name; nil means BT.601.
    package static func make(
        from source: borrowing Frame, width: Int, height: Int, format: PixelFormat, matrix: String? = nil
    ) throws(Failure) -> Scaler {
        let flags = SWS_AREA | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP
        let context = sws_getContext(
            Int32(source.width), Int32(source.height), source.pixelFormat.raw, Int32(width), Int32(height), format.raw,
            flags, nil, nil,
            nil)
        let scaler = Scaler(owning: try allocated("sws_getContext", context), width, height, format)
        // Grey that does not say so otherwise has the full range, as in every picture format.
        let isFull =
            source.pixelFormat.isRGB || source.pixelFormat.isFullRangeByName || source.color.range == .full
            || source.pixelFormat.isGray && source.color.range != .limited
        let coefficients = sws_getCoefficients(
            matrix == "bt709" ? SWS_CS_ITU709 : matrix?.hasPrefix("bt2020") == true ? SWS_CS_BT2020 : SWS_CS_ITU601)
        // Refused where neither side is YCbCr, which then needs no matrix.
        sws_setColorspaceDetails(
            scaler.pointer, coefficients, isFull ? 1 : 0, sws_getCoefficients(SWS_CS_ITU601),
            format.isRGB || format.isGray ? 1 : 0, 0,
            1 << 16, 1 << 16)
        return scaler
    }

    package func scale(_ source: borrowing Frame) throws(Failure) -> Frame {
        let target = try Frame.allocate(width: width, height: height, format: format)
        try check("sws_scale_frame", sws_scale_frame(pointer, target.pointer, source.pointer))
        return target
    }
}
