/// Phones put several AMR frames into one sample of a 3GP file, and FFmpeg's decoder reads only the first of them.
enum AMRFrames {
    /// Seconds of one frame (3GPP TS 26.101, TS 26.201).
    static let duration = 0.02

    /// Bytes of a frame by its mode, with the byte that names it (RFC 4867, 5.3).
    private static let narrowBand = [13, 14, 16, 18, 20, 21, 27, 32, 6, 1, 1, 1, 1, 1, 1, 1]
    private static let wideBand = [18, 24, 33, 37, 41, 47, 51, 59, 61, 6, 1, 1, 1, 1, 1, 1]

    /// - Returns: the sizes of the frames in a sample; nil for other codecs, for one frame, and where the sizes do not add up.
    static func sizes(_ sample: [UInt8], codec: String?) -> [Int]? {
        let table: [Int]
        switch codec {
        case "amr_nb": table = narrowBand
        case "amr_wb": table = wideBand
        default: return nil
        }
        var sizes: [Int] = []
        var offset = 0
        while offset < sample.count {
            let size = table[Int(sample[offset] >> 3) & 0x0F]
            sizes.append(size)
            offset += size
        }
        return offset == sample.count && sizes.count > 1 ? sizes : nil
    }
}
