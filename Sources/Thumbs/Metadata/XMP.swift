/// The few properties of an XMP packet that matter where EXIF is silent. Looks for them as attributes or elements; no XML is built,
/// so there is nothing that an entity or a depth could blow up.
enum XMP {
    /// Bytes of a packet that are looked at.
    static let byteCountMax = 256 << 10

    static func read(_ packet: ByteView) -> PhotoMetadata {
        let text = Array(packet.clamped(at: 0, count: byteCountMax).bytes)
        var result = PhotoMetadata()
        func time(_ name: String) -> CaptureTime? {
            value(of: name, in: text).flatMap { CaptureTime(xmp: $0, source: name) }
        }
        // XMP's own prefix was `xap` in its first years.
        result.shot =
            time("exif:DateTimeOriginal") ?? time("photoshop:DateCreated") ?? time("xmp:CreateDate")
            ?? time("xap:CreateDate")
        result.located = time("exif:GPSTimeStamp")
        if let latitude = value(of: "exif:GPSLatitude", in: text).flatMap({ degrees($0, "N", "S") }),
            let longitude = value(of: "exif:GPSLongitude", in: text).flatMap({ degrees($0, "E", "W") })
        {
            result.position = GeoPosition(latitude: latitude, longitude: longitude)
        }
        result.camera = PhotoMetadata.camera(
            make: value(of: "tiff:Make", in: text), model: value(of: "tiff:Model", in: text))
        return result
    }

    /// `48,30.25N` or `48,30,15N` (XMP specification part 2, GPSCoordinate): degrees, minutes, perhaps seconds, and the half of the Earth.
    private static func degrees(_ text: String, _ positive: Character, _ negative: Character) -> Double? {
        guard let half = text.last.map({ Character($0.uppercased()) }), half == positive || half == negative else {
            return nil
        }
        let parts = text.dropLast().split(separator: ",", omittingEmptySubsequences: false).map { Double($0) }
        guard (2...3).contains(parts.count) else { return nil }
        var sum = 0.0
        for (part, scale) in zip(parts, [1.0, 60, 3600]) {
            guard let part, part >= 0 else { return nil }
            sum += part / scale
        }
        return half == positive ? sum : -sum
    }

    /// Google's and Apple's properties of a picture with a gain map.
    static func namesGainMap(_ packet: ByteView) -> Bool {
        let text = Array(packet.clamped(at: 0, count: byteCountMax).bytes)
        return [
            "hdrgm:Version", "HDRGainMap:HDRGainMapVersion", "Item:Semantic=\"GainMap\"",
            "urn:com:apple:photo:2020:aux:hdrgainmap",
        ].contains {
            firstIndex(of: Array($0.utf8), in: text) != nil
        }
    }

    /// Bytes of one value that are believed.
    private static let valueLengthMax = 128

    private static func value(of name: String, in text: [UInt8]) -> String? {
        let letters = Array(name.utf8)
        guard let start = firstIndex(of: letters, in: text) else { return nil }
        var position = start + letters.count
        while position < text.count, [0x20, 0x09, 0x0A, 0x0D].contains(text[position]) { position += 1 }
        guard position < text.count else { return nil }
        let end: UInt8
        if text[position] == UInt8(ascii: ">") {
            end = UInt8(ascii: "<")
        } else if text[position] == UInt8(ascii: "="), position + 1 < text.count {
            position += 1
            end = text[position]
            guard end == UInt8(ascii: "\"") || end == UInt8(ascii: "'") else { return nil }
        } else {
            return nil
        }
        let value = text[(position + 1)...].prefix(valueLengthMax).prefix { $0 != end }
        let trimmed = String(decoding: value, as: UTF8.self).filter { !$0.isNewline }
        return trimmed.isEmpty ? nil : trimmed
    }

    private static func firstIndex(of needle: [UInt8], in text: [UInt8]) -> Int? {
        guard let first = needle.first, text.count >= needle.count else { return nil }
        for start in 0...(text.count - needle.count) where text[start] == first {
            if text[start..<(start + needle.count)].elementsEqual(needle) { return start }
        }
        return nil
    }
}

extension CaptureTime {
    /// `2023-12-05T14:39:21.5+01:00`, ISO 8601 as XMP writes it. A date alone is not a capture time.
    init?(xmp stamp: String, source: String) {
        guard let split = stamp.firstIndex(of: "T") else { return nil }
        let clock = stamp[stamp.index(after: split)...]
        let zoneStart = clock.firstIndex { "Zz+-".contains($0) }
        let time = clock[..<(zoneStart ?? clock.endIndex)]
        let parts = time.split(separator: ".", maxSplits: 1)
        guard let whole = parts.first else { return nil }
        self.init(
            exif: "\(stamp[..<split]) \(whole)", offset: zoneStart.map { String(clock[$0...]) },
            fraction: parts.count > 1 ? String(parts[1]) : nil, source: source)
    }
}
