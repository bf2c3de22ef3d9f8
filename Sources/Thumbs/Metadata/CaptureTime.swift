import Vocabulary

/// When a photo was taken, as far as the file says.
struct CaptureTime: Sendable, Equatable {
    /// ISO 8601; local time without an offset where the file has none.
    var text: String
    /// The field that it was read from.
    var source: String

    /// - Parameters:
    ///   - stamp: `2023:10:31 11:44:43` as EXIF writes it; other separators are taken too.
    ///   - offset: `+01:00`, `-08:00` or `Z`.
    ///   - fraction: decimals of the second.
    /// - Returns: nil for a time that no calendar has; cameras without a set clock write zeros or blanks.
    init?(exif stamp: String?, offset: String? = nil, fraction: String? = nil, source: String) {
        guard let stamp else { return nil }
        let numbers = stamp.split { !$0.isASCII || !$0.isNumber }.prefix(6).compactMap { Int($0) }
        guard numbers.count == 6 || numbers.count == 5 else { return nil }
        self.init(
            year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4],
            second: numbers.count == 6 ? numbers[5] : 0, offset: offset, fraction: fraction, source: source)
    }

    init?(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int, offset: String?, fraction: String?,
        source: String
    ) {
        guard (1826...9999).contains(year), CivilDate.isValid(year: year, month: month, day: day),
            (0...23).contains(hour), (0...59).contains(minute), (0...60).contains(second)
        else { return nil }
        let decimals = (fraction ?? "").filter { $0.isASCII && $0.isNumber }.prefix(6)
        text =
            "\(Self.padded(year, to: 4))-\(Self.padded(month))-\(Self.padded(day))T\(Self.padded(hour)):\(Self.padded(minute))"
            + ":\(Self.padded(min(second, 59)))" + (decimals.isEmpty ? "" : ".\(decimals)") + (Self.zone(offset) ?? "")
        self.source = source
    }

    /// Seconds since the epoch of ISO media files, 1 January 1904 UTC.
    init?(secondsSince1904 seconds: UInt64, source: String) {
        // 2,082,844,800 s lie between that epoch and 1970; times before 1970 are clocks that were never set.
        guard seconds > 2_082_844_800, let total = Int(exactly: seconds - 2_082_844_800), total < 253_402_300_800 else {
            return nil
        }
        let (days, rest) = (total / 86400, total % 86400)
        let (year, month, day) = Self.date(daysSince1970: days)
        self.init(
            year: year, month: month, day: day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60,
            offset: "Z",
            fraction: nil, source: source)
    }

    private static func padded(_ number: Int, to width: Int = 2) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    /// - Returns: `Z` or `+hh:mm`; nil for anything else.
    static func zone(_ offset: String?) -> String? {
        guard let offset = offset?.filter({ $0 != " " }), let sign = offset.first else { return nil }
        if sign == "Z" || sign == "z" { return "Z" }
        guard sign == "+" || sign == "-" else { return nil }
        let digits = offset.dropFirst().filter { $0 != ":" }
        guard digits.count == 4, let number = Int(digits), number / 100 <= 15, number % 100 < 60 else { return nil }
        return "\(sign)\(padded(number / 100)):\(padded(number % 100))"
    }

    /// The proleptic Gregorian date (H. Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days).
    private static func date(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
