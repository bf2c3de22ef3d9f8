import Foundation

/// The marker segments of a JPEG stream (ITU-T T.81, annex B), read without decoding. Pure; every length is checked.
struct JPEGStructure {
    struct Frame: Equatable {
        /// The last byte of the start-of-frame marker: 0xC0 baseline, 0xC2 progressive, 0xC3 lossless …
        var marker: UInt8
        var precision: Int
        var size: PixelSize
        /// Horizontal and vertical sampling of each component.
        var sampling: [(horizontal: Int, vertical: Int)]
        /// The components are called R, G and B.
        var isNamedRGB = false
        /// Blocks of 8 x 8 of all components, about: one scan may go over all of them.
        var blockCount: Int {
            let finest = (sampling.map(\.horizontal).max() ?? 1) * (sampling.map(\.vertical).max() ?? 1)
            let samples = sampling.reduce(0) { $0 + $1.horizontal * $1.vertical }
            return size.width * size.height / 64 * samples / max(1, finest)
        }
        var isProgressive: Bool { marker & 0x03 == 2 }
        var isArithmetic: Bool { marker & 0x08 != 0 }
        /// Differential, lossless or hierarchical: what TurboJPEG has no decoder for.
        var isDecodable: Bool { [0xC0, 0xC1, 0xC2, 0xC9, 0xCA].contains(marker) && precision == 8 }

        static func == (left: Frame, right: Frame) -> Bool {
            left.marker == right.marker && left.precision == right.precision && left.size == right.size
                && left.sampling.elementsEqual(right.sampling) { $0 == $1 }
        }
    }

    private(set) var frame: Frame?
    private(set) var scanCount = 0
    var hasScan: Bool { scanCount > 0 }
    /// The end marker was found: what is missing then is missing inside.
    private(set) var hasEnd = false
    private(set) var exif: [ByteView] = []
    private(set) var xmp: ByteView?
    private(set) var iptc: ByteView?
    /// Google's, Apple's or ISO's mark of a second picture that brightens the first (ISO 21496-1).
    private(set) var hasGainMap = false
    /// Bytes that belong to no segment lie before the picture's data.
    private(set) var hasStrayBytes = false
    /// The directory of a multi-picture file (CIPA DC-007).
    private var pictures: ByteView?
    /// Behind the end marker.
    private var end: Int?
    private var hasJFIF = false
    private var adobeTransform: UInt8?
    private var profileParts: [Int: ByteView] = [:]
    private var profilePartCount = 0

    /// Segments of one file: multi-picture files and editors write some dozens.
    static let segmentCountMax = 20_000
    /// Blocks of EXIF; one is the rule.
    static let exifCountMax = 16

    /// Pictures behind the first that are looked at; phones write up to four.
    private static let pictureCountMax = 8

    /// - Returns: nil without the start marker.
    init?(_ bytes: ByteView) {
        self.init(alone: bytes)
        if !hasGainMap {
            hasGainMap = furtherPictures(in: bytes).contains { JPEGStructure(alone: $0)?.hasGainMap == true }
        }
    }

    /// Without the pictures behind it.
    private init?(alone bytes: ByteView) {
        guard bytes.u16(at: 0) == 0xFFD8 else { return nil }
        var offset = 2
        for _ in 0..<Self.segmentCountMax {
            if !hasScan, bytes.byte(at: offset) != 0xFF { hasStrayBytes = true }
            guard let marker = Self.nextMarker(bytes, from: &offset, inScan: hasScan) else { break }
            if marker == 0xD9 {
                hasEnd = true
                end = offset
                break
            }
            if marker == 0x01 || (0xD0...0xD8).contains(marker) { continue }
            guard let length = bytes.u16(at: offset).map(Int.init) else { break }
            // Shorter than itself: libjpeg goes on behind it.
            if length < 2 {
                offset += 2
                continue
            }
            let body = bytes.clamped(at: offset + 2, count: length - 2)
            read(marker, body)
            if body.count < length - 2 { break }
            offset += length
        }
        // A damaged scan may hold bytes that look like a segment and hide the end behind its length.
        if hasScan, !hasEnd { hasEnd = Self.endsWithEndMarker(bytes) }
    }

    /// Three components that are no luma and chroma, as libjpeg takes them: by Adobe's mark, else by their names.
    var isRGB: Bool {
        guard let frame, frame.sampling.count == 3, !hasJFIF else { return false }
        return adobeTransform.map { $0 == 0 } ?? frame.isNamedRGB
    }

    private func furtherPictures(in bytes: ByteView) -> [ByteView] {
        guard let pictures, let tags = TIFFStructure(pictures), let start = pictures.bytes.baseAddress,
            let base = bytes.bytes.baseAddress,
            let table = tags.directory(at: tags.firstDirectory)?.entry(0xB002)?.value
        else { return [] }
        // 16 bytes for each: attributes, length, place from the directory's start on.
        return (1..<max(1, min(table.count / 16, Self.pictureCountMax))).compactMap { index in
            guard let length = table.u32(at: index * 16 + 4, bigEndian: tags.isBigEndian),
                let place = table.u32(at: index * 16 + 8, bigEndian: tags.isBigEndian)
            else { return nil }
            // No place at all: it follows the first.
            if place == 0 { return end.map { bytes.clamped(at: $0, count: Int(length)) } }
            return bytes.clamped(at: start - base + Int(place), count: Int(length))
        }
    }

    /// A profile of which a part is missing.
    var hasBrokenProfile: Bool { profilePartCount > 0 && profile == nil }

    /// The profile, put together from its parts; nil when one is missing.
    var profile: ByteView? {
        guard profilePartCount > 0, profileParts.count == profilePartCount else { return nil }
        if profilePartCount == 1 { return profileParts[1] }
        var whole: [UInt8] = []
        for index in 1...profilePartCount {
            guard let part = profileParts[index] else { return nil }
            whole += part.bytes
        }
        return ByteView(whole)
    }

    private mutating func read(_ marker: UInt8, _ body: ByteView) {
        switch marker {
        case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
            guard frame == nil, let precision = body.byte(at: 0), let height = body.u16(at: 1),
                let width = body.u16(at: 3),
                let count = body.byte(at: 5)
            else { return }
            let sampling = (0..<Int(min(count, 4))).compactMap { index in
                body.byte(at: 7 + index * 3).map { (horizontal: Int($0 >> 4), vertical: Int($0 & 15)) }
            }
            guard sampling.count == Int(count) || count > 4 else { return }
            let names = (0..<min(3, Int(count))).map { body.byte(at: 6 + $0 * 3) }
            frame = Frame(
                marker: marker, precision: Int(precision), size: PixelSize(width: Int(width), height: Int(height)),
                sampling: sampling, isNamedRGB: names == [0x52, 0x47, 0x42])
        case 0xDA: scanCount += 1
        case 0xE0 where !hasScan && body.starts(with: "JFIF\0"): hasJFIF = true
        case 0xEE where !hasScan && body.starts(with: "Adobe"): adobeTransform = body.byte(at: 11)
        case 0xE2 where !hasScan && body.starts(with: "MPF\0"): pictures = pictures ?? body.suffix(from: 4)
        case 0xE1 where !hasScan:
            if body.starts(with: "Exif\0"), exif.count < Self.exifCountMax {
                exif.append(body.suffix(from: 6))
            } else if body.starts(with: "http://ns.adobe.com/xap/1.0/\0"), xmp == nil {
                xmp = body.suffix(from: 29)
                hasGainMap = hasGainMap || XMP.namesGainMap(body)
            }
        case 0xED where !hasScan && body.starts(with: "Photoshop 3.0\0"):
            iptc =
                iptc
                ?? PhotoshopResources.read(body.suffix(from: 14)).first { $0.id == PhotoshopResources.iptc }?.body
        case 0xE2 where !hasScan && body.starts(with: "ICC_PROFILE\0"):
            guard let index = body.byte(at: 12), let count = body.byte(at: 13), index > 0, index <= count else {
                return
            }
            profilePartCount = Int(count)
            profileParts[Int(index)] = body.suffix(from: 14)
        case 0xE2 where !hasScan && body.starts(with: "urn:iso:std:iso:ts:21496:-1"): hasGainMap = true
        default: return
        }
    }

    /// - Parameter offset: moved behind the marker.
    private static func nextMarker(_ bytes: ByteView, from offset: inout Int, inScan: Bool) -> UInt8? {
        let all = bytes.bytes
        var position = offset
        while position + 1 < all.count {
            if all[position] != 0xFF {
                // Almost all of a file is passed here.
                guard let start = all.baseAddress,
                    let found = memchr(start + position, 0xFF, all.count - position)
                else { return nil }
                position = UnsafeRawPointer(found) - start
                continue
            }
            let code = all[position + 1]
            if code == 0xFF {
                position += 1
                continue
            }
            position += 2
            if code == 0 { continue }
            // Inside a scan only these can follow; anything else is damage, and its length is not to be believed.
            if inScan, !(code == 0xC4 || (0xD0...0xDD).contains(code) || code == 0xFE || (0xE0...0xEF).contains(code)) {
                continue
            }
            offset = position
            return code
        }
        return nil
    }

    private static func endsWithEndMarker(_ bytes: ByteView) -> Bool {
        let all = bytes.bytes
        // Cameras pad with zeros, transfers with 0xFF.
        var end = all.count
        while end > 2, all[end - 1] == 0 || all[end - 1] == 0xFF { end -= 1 }
        return end >= 2 && all[end - 2] == 0xFF && all[end - 1] == 0xD9
    }
}
