import Foundation

/// A moment, in milliseconds since 1970 UTC.
public struct Timestamp: Sendable, Hashable, Comparable {
    public var milliseconds: Int64
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    public func adding(seconds: Double) -> Timestamp {
        Timestamp(milliseconds: milliseconds + Int64((seconds * 1000).rounded()))
    }
    var seconds: Int64 { milliseconds / 1000 }
    private var date: Date { Date(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// ISO 8601, UTC, whole seconds.
    var iso8601: String { date.formatted(.iso8601) }
    /// As HTTP writes dates (RFC 9110, section 5.6.7).
    var httpDate: String {
        date.formatted(
            Date.VerbatimFormatStyle(
                format:
                    "\(weekday: .abbreviated), \(day: .twoDigits) \(month: .abbreviated) \(year: .defaultDigits) \(hour: .twoDigits(clock: .twentyFourHour, hourCycle: .zeroBased)):\(minute: .twoDigits):\(second: .twoDigits) GMT",
                locale: Locale(identifier: "en_US_POSIX"), timeZone: .gmt, calendar: Calendar(identifier: .gregorian)))
    }

    /// The system's clock. Tests give another.
    public static let system: @Sendable () -> Timestamp = {
        Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000))
    }
}
