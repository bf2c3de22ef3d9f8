/// What a file's first bytes say it is. Names and extensions are never asked.
public enum MediaFormat: String, Codable, Sendable, Hashable, CaseIterable {
    // Stills
    case jpeg, png, gif, webp, tiff, bmp, psd, heif, avif, jxl, raf, cr3, jp2, x3f
    // Containers of moving pictures or sound
    case isoMedia = "iso-media"
    case matroska, avi, wav, mpegTS = "mpeg-ts", mpegPS = "mpeg-ps", mxf, asf, ogg, flac, mp3, aac, flv, dv, aiff, caf

    /// How many first bytes `sniff` may look at.
    public static let headLength = 4096

    /// Stills and image sequences go to the photo path; all else, and what is not known at all, to the demuxers.
    public var isPicture: Bool {
        switch self {
        case .jpeg, .png, .gif, .webp, .tiff, .bmp, .psd, .heif, .avif, .jxl, .raf, .cr3, .jp2, .x3f: true
        default: false
        }
    }

    /// - Parameter head: the first bytes of the file, `headLength` of them where the file has so many.
    /// - Returns: nil when the bytes belong to no known format; that alone is not yet a verdict.
    public static func sniff(_ head: [UInt8]) -> MediaFormat? {
        func has(_ bytes: [UInt8], at offset: Int = 0) -> Bool {
            head.count >= offset + bytes.count && head[offset..<(offset + bytes.count)].elementsEqual(bytes)
        }
        func has(_ text: String, at offset: Int = 0) -> Bool { has(Array(text.utf8), at: offset) }

        if has([0xFF, 0xD8, 0xFF]) { return .jpeg }
        if has([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) { return .png }
        if has("GIF87a") || has("GIF89a") { return .gif }
        if has("RIFF") {
            if has("WEBP", at: 8) { return .webp }
            if has("AVI ", at: 8) { return .avi }
            if has("WAVE", at: 8) { return .wav }
        }
        if has("RF64"), has("WAVE", at: 8) { return .wav }
        if has("FUJIFILMCCD-RAW") { return .raf }
        if has("FOVb") { return .x3f }
        if has([0x49, 0x49, 0x2A, 0x00]) || has([0x4D, 0x4D, 0x00, 0x2A]) || has([0x49, 0x49, 0x2B, 0x00])
            || has([0x4D, 0x4D, 0x00, 0x2B])
        {
            return .tiff
        }
        // Olympus' and Panasonic's raws are TIFFs with a mark of their own.
        if has("IIRO") || has("IIRS") || has("MMOR") || has([0x49, 0x49, 0x55, 0x00]) { return .tiff }
        if has("8BPS") { return .psd }
        if has("BM"), head.count >= 14, head[6..<10].allSatisfy({ $0 == 0 }) || isBitmapHeader(head) { return .bmp }
        if has([0xFF, 0x0A]) || has([0, 0, 0, 0x0C, 0x4A, 0x58, 0x4C, 0x20, 0x0D, 0x0A, 0x87, 0x0A]) { return .jxl }
        // In its boxes, or the bare codestream.
        if has([0, 0, 0, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]) || has([0xFF, 0x4F, 0xFF, 0x51]) {
            return .jp2
        }
        if has("ftyp", at: 4) { return isoBrand(head) }
        for box in ["moov", "mdat", "free", "skip", "wide", "pnot", "moof", "styp"] where has(box, at: 4) {
            return .isoMedia
        }
        if has([0x1A, 0x45, 0xDF, 0xA3]) { return .matroska }
        if has([0x06, 0x0E, 0x2B, 0x34, 0x02, 0x05, 0x01, 0x01, 0x0D, 0x01, 0x02]) { return .mxf }
        if has([0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11]) { return .asf }
        if has("OggS") { return .ogg }
        if has("fLaC") { return .flac }
        if has("FLV\u{1}") { return .flv }
        if has("FORM"), has("AIFF", at: 8) || has("AIFC", at: 8) { return .aiff }
        if has("caff") { return .caf }
        if has([0x00, 0x00, 0x01, 0xBA]) || has([0x00, 0x00, 0x01, 0xB3]) { return .mpegPS }
        // Transport streams repeat 0x47 every 188 bytes, AVCHD every 192 after a 4-byte time stamp.
        for (first, stride) in [(0, 188), (4, 192)]
        where [0, 1, 2].allSatisfy({ has([0x47], at: first + $0 * stride) }) {
            return .mpegTS
        }
        if has([0x1F, 0x07, 0x00]) { return .dv }
        if has("ID3") { return .mp3 }
        // Frames of MPEG audio: eleven bits of one, the version, then the layer, which is 3 for MP3 and nothing for AAC (ADTS).
        guard head.count >= 2, head[0] == 0xFF else { return nil }
        if head[1] & 0xE6 == 0xE2, head[1] & 0x18 != 0x08 { return .mp3 }
        return head[1] & 0xF6 == 0xF0 ? .aac : nil
    }

    /// OS/2 keeps a cursor's hot spot where others leave zeros: the second header's length tells then.
    private static func isBitmapHeader(_ head: [UInt8]) -> Bool {
        head.count >= 18 && [12, 16, 40, 52, 56, 64, 108, 124].contains(head[14])
            && head[15..<18].allSatisfy { $0 == 0 }
    }

    /// The major brand decides; where it is a general one (`mif1`, `msf1`) or one that nobody knows, the compatible brands do.
    private static func isoBrand(_ head: [UInt8]) -> MediaFormat {
        let boxSize = head[0..<4].reduce(0) { $0 << 8 | Int($1) }
        let end = min(head.count, max(16, boxSize))
        var brands: [String] = []
        for offset in stride(from: 8, to: end - 3, by: 4) where offset != 12 {
            brands.append(String(decoding: head[offset..<(offset + 4)], as: UTF8.self))
        }
        guard let major = brands.first else { return .isoMedia }
        let heif: Set<String> = ["heic", "heix", "hevc", "hevx", "heim", "heis", "hevm", "hevs"]
        if major == "avif" || major == "avis" { return .avif }
        if heif.contains(major) { return .heif }
        if major == "crx " { return .cr3 }
        if major == "mif1" || major == "msf1" || major == "miaf" {
            return brands.contains("avif") || brands.contains("avis") ? .avif : .heif
        }
        // A major brand that nobody knows: what the file is compatible with decides.
        let video: Set<String> = ["isom", "iso2", "mp41", "mp42", "qt  ", "avc1", "M4V ", "3gp4", "3gp5", "dash"]
        if !brands.contains(where: video.contains) {
            if brands.contains("avif") || brands.contains("avis") { return .avif }
            if brands.contains(where: heif.union(["mif1", "msf1", "miaf"]).contains) { return .heif }
        }
        return .isoMedia
    }
}
