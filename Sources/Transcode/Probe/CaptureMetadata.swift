import FFmpeg
import Foundation
import Vocabulary

/// When, where and with what a recording was made, as its container says.
struct CaptureMetadata: Equatable {
    var takenAt: String?
    var takenAtSource: String?
    /// Latitude, longitude.
    var gps: [Double]?
    var camera: String?

    init() {}

    /// - Parameters:
    ///   - container, video: metadata with keys in lower case.
    init(container: [String: String], video: [String: String]) {
        func value(_ keys: String...) -> (key: String, text: String)? {
            for key in keys {
                for dictionary in [container, video] {
                    if let text = dictionary[key]?.trimmingCharacters(in: .whitespacesAndNewlines), !text.isEmpty {
                        return (key, text)
                    }
                }
            }
            return nil
        }
        // What the camera's owner saw on the clock comes before the UTC that the muxer wrote.
        let keys = [
            "com.apple.quicktime.creationdate", "date_recorded", "date_recorded-eng", "date-eng", "creation_time",
            "modification_date", "date",
        ]
        // The movie's date may be unset where the track's is right.
        for key in keys where takenAt == nil {
            takenAt = [container, video].lazy.compactMap { $0[key].flatMap(CaptureTime.normalized) }.first
            takenAtSource = takenAt == nil ? nil : key
        }
        gps = value("com.apple.quicktime.location.iso6709", "location", "location-eng", "xyz").flatMap {
            Self.location($0.text)
        }
        let make = value("com.apple.quicktime.make", "make", "make-eng", "com.android.manufacturer")?.text
        let model = value("com.apple.quicktime.model", "model", "model-eng", "com.android.model")?.text
        camera = Self.camera(make: make, model: model)
    }

    static func camera(make: String?, model: String?) -> String? {
        guard let model else { return make }
        guard let make, !model.lowercased().hasPrefix(make.lowercased()) else { return model }
        return "\(make) \(model)"
    }

    /// ISO 6709: `+52.4597+013.3220+051.178/`. Zero by zero means that there was no fix.
    static func location(_ text: String) -> [Double]? {
        var numbers: [String] = []
        for character in text {
            switch character {
            case "+", "-": numbers.append(String(character))
            case "0"..."9", ".": if !numbers.isEmpty { numbers[numbers.count - 1].append(character) }
            // Some phones write the number as their language does.
            case "," where numbers.last.map { !$0.contains(".") } ?? false: numbers[numbers.count - 1].append(".")
            default: if numbers.count >= 2 { return coordinates(numbers) }
            }
        }
        return coordinates(numbers)
    }

    private static func coordinates(_ numbers: [String]) -> [Double]? {
        guard numbers.count >= 2, let latitude = degrees(numbers[0], whole: 2),
            let longitude = degrees(numbers[1], whole: 3),
            abs(latitude) <= 90, abs(longitude) <= 180, latitude != 0 || longitude != 0
        else { return nil }
        return [latitude, longitude]
    }

    /// `±DD.D`, `±DDMM.M` or `±DDMMSS.S`, by the number of digits before the point.
    private static func degrees(_ text: String, whole: Int) -> Double? {
        guard let value = Double(text) else { return nil }
        let digits = text.drop { $0 == "+" || $0 == "-" }.prefix { $0 != "." }.count
        let magnitude = abs(value), sign = text.hasPrefix("-") ? -1.0 : 1.0
        switch digits - whole {
        case 2: return sign * ((magnitude / 100).rounded(.down) + magnitude.truncatingRemainder(dividingBy: 100) / 60)
        case 4:
            let minutes = (magnitude / 100).rounded(.down).truncatingRemainder(dividingBy: 100)
            return sign
                * ((magnitude / 10000).rounded(.down) + minutes / 60 + magnitude.truncatingRemainder(dividingBy: 100)
                    / 3600)
        default: return value
        }
    }
}

/// Times as containers write them, made ISO 8601.
enum CaptureTime {
    /// `2023-09-22T18:34:05+0200` → `2023-09-22T18:34:05+02:00`; fractions go. Dates alone, and the epochs that mean "not set", are nil.
    static func normalized(_ text: String) -> String? {
        let bytes = Array(text.trimmingCharacters(in: .whitespacesAndNewlines).utf8)
        guard bytes.count >= 19 else { return nil }
        func number(_ from: Int, _ count: Int) -> Int? {
            Int(String(decoding: bytes[from..<(from + count)], as: UTF8.self))
        }
        guard let year = number(0, 4), let month = number(5, 2), let day = number(8, 2), let hour = number(11, 2),
            let minute = number(14, 2), let second = number(17, 2), bytes[4] == bytes[7],
            [0x2D, 0x3A].contains(bytes[4]),
            [0x54, 0x20].contains(bytes[10])
        else { return nil }
        let zone = String(decoding: bytes[19...], as: UTF8.self).drop { $0 == "." || $0.isNumber }.trimmingCharacters(
            in: .whitespaces)
        return iso(year, month, day, hour, minute, second, zone: offset(zone))
    }

    /// - Parameter zone: `Z`, `+02:00` or nothing.
    static func iso(_ year: Int, _ month: Int, _ day: Int, _ hour: Int, _ minute: Int, _ second: Int, zone: String)
        -> String?
    {
        // 1904 and 1970 are QuickTime's and Unix's zero.
        guard year > 1970 || (year == 1970 && (month, day) != (1, 1)),
            CivilDate.isValid(year: year, month: month, day: day), (0...23).contains(hour), (0...59).contains(minute),
            (0...60).contains(second)
        else { return nil }
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        return "\(year)-\(two(month))-\(two(day))T\(two(hour)):\(two(minute)):\(two(second))\(zone)"
    }

    private static func offset(_ zone: String) -> String {
        if zone == "Z" || zone == "z" || zone == "UTC" { return "Z" }
        let digits = zone.filter(\.isNumber)
        guard zone.hasPrefix("+") || zone.hasPrefix("-"), digits.count == 4 || digits.count == 2 else { return "" }
        let minutes = digits.count == 4 ? String(digits.suffix(2)) : "00"
        return "\(zone.prefix(1))\(digits.prefix(2)):\(minutes)"
    }

    /// Windows FILETIME: 100 ns since 1601.
    static func fileTime(_ ticks: UInt64) -> String? {
        let unix = Double(ticks / 10_000_000) - 11_644_473_600
        guard unix > 86_400, unix < 4_102_444_800 else { return nil }
        return Date(timeIntervalSince1970: unix).formatted(.iso8601)
    }
}
