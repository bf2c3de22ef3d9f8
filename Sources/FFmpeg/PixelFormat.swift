import CFFmpeg

/// A libavutil pixel format by number, with what decisions need to know about it.
package struct PixelFormat: Sendable, Equatable {
    let raw: AVPixelFormat
    init(_ raw: AVPixelFormat) { self.raw = raw }
    init(_ number: Int32) { self.init(AVPixelFormat(rawValue: number)) }

    package static let rgb24 = PixelFormat(AV_PIX_FMT_RGB24)
    package static let gray = PixelFormat(AV_PIX_FMT_GRAY8)
    package static func == (left: PixelFormat, right: PixelFormat) -> Bool { left.raw.rawValue == right.raw.rawValue }

    package var name: String? { av_get_pix_fmt_name(raw).map { String(cString: $0) } }
    private var description: UnsafePointer<AVPixFmtDescriptor>? { av_pix_fmt_desc_get(raw) }
    private func has(_ flag: Int32) -> Bool { (description?.pointee.flags ?? 0) & UInt64(flag) != 0 }

    /// Bits of the first component.
    package var bitDepth: Int { Int(description?.pointee.comp.0.depth ?? 0) }
    package var isRGB: Bool { has(AV_PIX_FMT_FLAG_RGB) }
    package var hasAlpha: Bool { has(AV_PIX_FMT_FLAG_ALPHA) }
    package var isPalette: Bool { has(AV_PIX_FMT_FLAG_PAL) }
    package var isPlanar: Bool { has(AV_PIX_FMT_FLAG_PLANAR) }
    package var isBayer: Bool { has(AV_PIX_FMT_FLAG_BAYER) }
    package var isGray: Bool { (description?.pointee.nb_components ?? 0) <= 2 && !isPalette && !isRGB }
    /// Log2 of the chroma subsampling, horizontally and vertically.
    package var chromaShift: (x: Int, y: Int) {
        (Int(description?.pointee.log2_chroma_w ?? 0), Int(description?.pointee.log2_chroma_h ?? 0))
    }
    /// The deprecated `yuvj…` formats, which say full range by themselves.
    package var isFullRangeByName: Bool { name?.hasPrefix("yuvj") ?? false }
    /// Average bits a pixel over all planes.
    package var bitsPerPixel: Int { description.map { Int(av_get_padded_bits_per_pixel($0)) } ?? 0 }
}
