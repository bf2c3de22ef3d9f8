/// An MP4 put together box by box, for what the muxers here do not write.
struct WrittenMP4 {
    /// Of the movie header, in thousandths of a second.
    var duration: UInt32 = 1000
    /// The sample entry of one track of sound without its size.
    var soundEntry: [UInt8]
    var bytesPerSample: UInt32
    var sampleRate: UInt32 = 48_000
    var samples: [UInt8]

    static func box(_ type: String, _ content: [UInt8]...) -> [UInt8] {
        let content = content.flatMap(\.self)
        return be(UInt32(content.count + 8)) + Array(type.utf8) + content
    }
    static func be(_ number: UInt32) -> [UInt8] {
        (0..<4).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    private static func be(_ numbers: UInt32...) -> [UInt8] { numbers.flatMap { be($0) } }
    private static let matrix = be(0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000)
    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    /// One channel, whose older field says 16 bits.
    static func pcmEntry(bits: UInt8, isLittleEndian: Bool) -> [UInt8] {
        box(
            "ipcm", zeros(6), [0, 1], zeros(8), [0, 1, 0, 16], zeros(4), be(48_000 << 16),
            box("pcmC", zeros(4), [isLittleEndian ? 1 : 0, bits]))
    }

    var bytes: [UInt8] {
        let fileType = Self.box("ftyp", Array("isom".utf8), Self.be(512), Array("isommp42".utf8))
        let media = Self.box("mdat", samples)
        let count = UInt32(samples.count) / bytesPerSample
        let table = Self.box(
            "stbl", Self.box("stsd", Self.be(0, 1), soundEntry), Self.box("stts", Self.be(0, 1, count, 1)),
            Self.box("stsc", Self.be(0, 1, 1, count, 1)), Self.box("stsz", Self.be(0, bytesPerSample, count)),
            Self.box("stco", Self.be(0, 1, UInt32(fileType.count + 8))))
        let reference = Self.box("dinf", Self.box("dref", Self.be(0, 1), Self.box("url ", Self.be(1))))
        let information = Self.box("minf", Self.box("smhd", Self.zeros(8)), reference, table)
        let language: UInt32 = 0x55C4_0000
        let header = Self.box("mdhd", Self.be(0, 0, 0, sampleRate, count, language))
        let kind = Self.box("hdlr", Self.zeros(8), Array("soun".utf8), Self.zeros(13))
        let track = Self.box(
            "trak",
            Self.box(
                "tkhd", Self.be(3, 0, 0, 1, 0, duration), Self.zeros(8), Self.be(0, 0x0100_0000), Self.matrix,
                Self.zeros(8)),
            Self.box("mdia", header, kind, information))
        let movie = Self.box(
            "mvhd", Self.be(0, 0, 0, 1000, duration, 0x10000, 0x0100_0000), Self.zeros(8), Self.matrix, Self.zeros(24),
            Self.be(2))
        return fileType + media + Self.box("moov", movie, track)
    }
}
