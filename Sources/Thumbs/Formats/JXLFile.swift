import CJPEGXL
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
        blackChannel = reader.blackChannel(among: Int(info.num_extra_channels))
        isGrey = info.num_color_channels == 1 && blackChannel == nil
        depth = info.bits_per_sample > 8 && blackChannel == nil ? 16 : 8
        let turn = Orientation(exif: Int(info.orientation.rawValue)) ?? .upright
        var header = PictureHeader(
            size: turn.size(ofStored: PixelSize(width: Int(info.xsize), height: Int(info.ysize))), codec: "jpegxl",
            pixelFormat: blackChannel == nil
                ? Self.pixelFormat(isGrey: isGrey, hasAlpha: hasAlpha, depth: depth) : "cmyk")
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

    /// FFmpeg's name.
    private static func pixelFormat(isGrey: Bool, hasAlpha: Bool, depth: Int) -> String {
        switch (isGrey, hasAlpha) {
        case (true, false): depth == 16 ? "gray16le" : "gray"
        case (true, true): depth == 16 ? "ya16le" : "ya8"
        case (false, false): depth == 16 ? "rgb48le" : "rgb24"
        case (false, true): depth == 16 ? "rgba64le" : "rgba"
        }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        try decodePicture(0, budget: budget)
    }

    /// Of an animation the last picture too: its header says nothing of whether its end is there.
    func tryPixels(budget: MemoryBudget) throws(Failure) -> [MediaWarning] {
        if header.frames > 1 { _ = try decodePicture(header.frames - 1, budget: budget) }
        return try decodePicture(0, budget: budget).warnings
    }

    private func decodePicture(_ index: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let layout: Raster.Layout = isGrey ? (hasAlpha ? .greyAlpha : .grey) : (hasAlpha ? .rgba : .rgb)
        // libjxl works in 32-bit floats, three to four planes, some of them twice, and one more of black.
        try budget.admit(product(header.size.width, header.size.height, blackChannel == nil ? 40 : 48))
        let raster = try Raster(size: header.size, layout: layout, depth: depth, budget: budget)
        raster.clear()
        let reader = try JXLReader(bytes, events: JXL_DEC_FULL_IMAGE.rawValue)
        var format = JxlPixelFormat(
            num_channels: UInt32(layout.channelCount), data_type: depth == 16 ? JXL_TYPE_UINT16 : JXL_TYPE_UINT8,
            endianness: JXL_NATIVE_ENDIAN, align: 0)
        reader.skip(index)
        try reader.advance(to: JXL_DEC_NEED_IMAGE_OUT_BUFFER)
        try reader.setOutput(raster, &format)
        var black: Raster?
        if let blackChannel {
            let plane = try Raster(size: header.size, layout: .grey, depth: depth, budget: budget)
            plane.clear()
            try reader.setExtraChannel(blackChannel, plane, &format)
            black = plane
        }
        try reader.advance(to: JXL_DEC_FULL_IMAGE)
        raster.isPremultiplied = try reader.info().alpha_premultiplied != 0
        guard let black else { return DecodedPicture(raster: raster, encoding: header.encoding) }
        return DecodedPicture(raster: try Self.ink(raster, black, budget: budget), encoding: header.encoding)
    }

    /// On paper. In JPEG XL, no ink is the largest value, of black too (ISO/IEC 18181-1, extra channels of type kBlack).
    private static func ink(_ colors: Raster, _ black: Raster, budget: MemoryBudget) throws(Failure) -> Raster {
        let ink = try Raster(size: colors.size, layout: .cmyk, depth: 8, budget: budget)
        let channels = colors.layout.channelCount
        for pixel in 0..<(colors.size.width * colors.size.height) {
            let from = pixel * channels
            let alpha = colors.layout.hasAlpha ? Int(colors.pixels[from + 3]) : 255
            for channel in 0..<4 {
                let light = Int(channel < 3 ? colors.pixels[from + channel] : black.pixels[pixel])
                let isDone = colors.isPremultiplied && channel < 3
                ink.pixels[pixel * 4 + channel] = UInt8(
                    isDone ? max(0, alpha - light) : (alpha * (255 - light) + 127) / 255)
            }
        }
        return ink
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
