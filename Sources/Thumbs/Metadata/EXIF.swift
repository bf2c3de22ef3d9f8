/// EXIF 2.32: which tags of the shared structure mean what. Pure; every offset is checked.
enum EXIF {
    /// - Parameter block: from the TIFF header on; a leading `Exif\0\0` is skipped.
    static func read(_ block: ByteView) -> PhotoMetadata? {
        let start = block.starts(with: "Exif\0\0") ? block.suffix(from: 6) : block
        guard let structure = TIFFStructure(start) else { return nil }
        return read(structure)
    }

    static func read(_ structure: TIFFStructure) -> PhotoMetadata? {
        structure.directory(at: structure.firstDirectory).map { read(structure, $0) }
    }

    /// Of one of the main directories.
    static func read(_ structure: TIFFStructure, _ main: TIFFStructure.Directory) -> PhotoMetadata {
        read(
            structure, main: main, photo: structure.children(main.entry(0x8769)).first,
            place: structure.children(main.entry(0x8825)).first)
    }

    /// Canon's CR3 keeps the three directories in blocks of their own.
    static func read(main: ByteView?, photo: ByteView?, place: ByteView?) -> PhotoMetadata {
        var result = PhotoMetadata()
        for (block, role) in [(photo, 1), (place, 2), (main, 0)] {
            guard let block, let structure = TIFFStructure(block),
                let directory = structure.directory(at: structure.firstDirectory)
            else { continue }
            let empty = TIFFStructure.Directory(entries: [], next: 0)
            result = result.completed(
                by: read(
                    structure, main: role == 0 ? directory : empty, photo: role == 1 ? directory : nil,
                    place: role == 2 ? directory : nil))
        }
        return result
    }

    private static func read(
        _ structure: TIFFStructure, main: TIFFStructure.Directory, photo: TIFFStructure.Directory?,
        place: TIFFStructure.Directory?
    ) -> PhotoMetadata {
        PhotoMetadata(
            orientation: structure.integer(main.entry(0x0112)).flatMap(Orientation.init(exif:)),
            shot: shot(structure, main: main, photo: photo),
            located: place.flatMap { satelliteTime(structure, $0) },
            written: CaptureTime(
                exif: structure.text(main.entry(0x0132)), offset: structure.text(photo?.entry(0x9010)),
                fraction: structure.text(photo?.entry(0x9290)), source: "DateTime"),
            position: place.flatMap { position(structure, $0) },
            camera: PhotoMetadata.camera(
                make: structure.text(main.entry(0x010F)), model: structure.text(main.entry(0x0110))),
            contentIdentifier: photo?.entry(0x927C).flatMap { contentIdentifier($0.value) },
            isAdobeRGB: photo.map { isAdobeRGB(structure, $0) } ?? false)
    }

    /// DCF 2.0's optional colour space: what is not sRGB, and the rule `R03` in the directory of interoperability. Some write 2 instead.
    private static func isAdobeRGB(_ structure: TIFFStructure, _ photo: TIFFStructure.Directory) -> Bool {
        let space = structure.integer(photo.entry(0xA001))
        let rule = structure.children(photo.entry(0xA005)).first.flatMap { structure.text($0.entry(0x0001)) }
        return space == 2 || space == 0xFFFF && rule == "R03"
    }

    /// Of Apple's maker note: a header of 14 bytes, of which the last two say the byte order, then a directory whose offsets count from the
    /// note's start (exiftool.org/TagNames/Apple.html, tag 0x0011).
    private static func contentIdentifier(_ note: ByteView) -> String? {
        guard note.starts(with: "Apple iOS\0"), note.starts(with: "MM", at: 12) || note.starts(with: "II", at: 12)
        else {
            return nil
        }
        let structure = TIFFStructure(directoriesIn: note, isBigEndian: note.starts(with: "MM", at: 12))
        return structure.text(structure.directory(at: 14)?.entry(0x0011))
    }

    /// The shutter's time, else that of digitizing.
    private static func shot(
        _ structure: TIFFStructure, main: TIFFStructure.Directory, photo: TIFFStructure.Directory?
    ) -> CaptureTime? {
        func text(_ directory: TIFFStructure.Directory?, _ tag: UInt16) -> String? {
            structure.text(directory?.entry(tag))
        }
        // A scanner or an editor may put the directory's tags into the first one.
        for directory in [photo, main] {
            let original = CaptureTime(
                exif: text(directory, 0x9003), offset: text(directory, 0x9011), fraction: text(directory, 0x9291),
                source: "DateTimeOriginal")
            if let original { return original }
            let digitized = CaptureTime(
                exif: text(directory, 0x9004), offset: text(directory, 0x9012), fraction: text(directory, 0x9292),
                source: "DateTimeDigitized")
            if let digitized { return digitized }
        }
        return nil
    }

    private static func satelliteTime(_ structure: TIFFStructure, _ place: TIFFStructure.Directory) -> CaptureTime? {
        let clock = place.entry(0x0007)
        guard let date = structure.text(place.entry(0x001D)), let hour = structure.number(clock, at: 0),
            let minute = structure.number(clock, at: 1), let second = structure.number(clock, at: 2),
            (0..<24).contains(hour), (0..<60).contains(minute), (0..<61).contains(second)
        else { return nil }
        let numbers = date.split { !$0.isASCII || !$0.isNumber }.compactMap { Int($0) }
        guard numbers.count == 3 else { return nil }
        let milliseconds = min(999, Int(((second - second.rounded(.down)) * 1000).rounded()))
        let digits = String(milliseconds)
        return CaptureTime(
            year: numbers[0], month: numbers[1], day: numbers[2], hour: Int(hour), minute: Int(minute),
            second: Int(second),
            offset: "Z", fraction: milliseconds == 0 ? nil : String(repeating: "0", count: 3 - digits.count) + digits,
            source: "GPSDateTime")
    }

    /// Without the letters N or S, E or W the half of the Earth is not known, so neither is the place.
    private static func position(_ structure: TIFFStructure, _ place: TIFFStructure.Directory) -> GeoPosition? {
        func degrees(_ tag: UInt16) -> Double? {
            guard let entry = place.entry(tag), let whole = structure.number(entry, at: 0) else { return nil }
            return whole + (structure.number(entry, at: 1) ?? 0) / 60 + (structure.number(entry, at: 2) ?? 0) / 3600
        }
        guard let latitude = degrees(0x0002), let longitude = degrees(0x0004),
            let northSouth = structure.text(place.entry(0x0001))?.first,
            let eastWest = structure.text(place.entry(0x0003))?.first
        else { return nil }
        let signs: [Character: Double] = ["N": 1, "n": 1, "S": -1, "s": -1, "E": 1, "e": 1, "W": -1, "w": -1]
        guard let vertical = signs[northSouth], let horizontal = signs[eastWest] else { return nil }
        return GeoPosition(latitude: latitude * vertical, longitude: longitude * horizontal)
    }
}
