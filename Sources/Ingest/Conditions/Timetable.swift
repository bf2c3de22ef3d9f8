public import Vocabulary

/// A stretch of the day, by the clock on the wall: `22:00-06:00`. One that ends before it begins goes over midnight.
public struct DaySpan: Sendable, Hashable {
    /// Minutes since midnight; the end is not in it.
    public let start, end: Int
    public static let minutesOfDay = 24 * 60

    /// Nil for what is no such stretch. One that begins and ends at the same minute is the whole day.
    public init?(_ text: some StringProtocol) {
        let ends = text.split(separator: "-", omittingEmptySubsequences: false).map { Self.minute($0) }
        guard ends.count == 2, let start = ends[0], let end = ends[1], start < Self.minutesOfDay else { return nil }
        self.start = start
        self.end = end
    }

    /// `00:00` to `24:00`.
    private static func minute(_ text: some StringProtocol) -> Int? {
        let pieces = text.split(separator: ":", omittingEmptySubsequences: false)
        guard pieces.count == 2,
            pieces.allSatisfy({ (1...2).contains($0.count) && $0.utf8.allSatisfy(ByteCount.isDigit) }),
            let hour = UInt8(pieces[0]), let minute = UInt8(pieces[1]), minute < 60
        else { return nil }
        let minutes = Int(hour) * 60 + Int(minute)
        return minutes <= minutesOfDay ? minutes : nil
    }

    public func contains(_ minute: Int) -> Bool {
        start < end ? (start..<end).contains(minute) : minute >= start || minute < end
    }
}

/// The hours in which anything is sent: `22:00-06:00,12:00-13:00`.
public struct AllowedHours: Sendable, Hashable {
    public let spans: [DaySpan]

    /// - Throws: `usage`.
    public init(_ text: String) throws(Failure) {
        var spans: [DaySpan] = []
        for piece in text.split(separator: ",", omittingEmptySubsequences: false) {
            guard let span = DaySpan(piece.filter { $0 != " " }) else {
                throw Failure(.usage, "Hours are written 22:00-06:00, several of them with commas: not “\(text)”.")
            }
            spans.append(span)
        }
        self.spans = spans
    }

    public func contains(_ minute: Int) -> Bool { spans.contains { $0.contains(minute) } }

    /// When they begin next, as `22:00`.
    func next(after minute: Int) -> String {
        let waits = spans.map { ($0.start - minute + DaySpan.minutesOfDay) % DaySpan.minutesOfDay }
        let start = (minute + (waits.min() ?? 0)) % DaySpan.minutesOfDay
        let digits = { (number: Int) in number < 10 ? "0\(number)" : "\(number)" }
        return digits(start / 60) + ":" + digits(start % 60)
    }
}

/// How fast parts may be sent, by the hour: `500K@08:00-18:00,4M`. The first entry that fits counts; where none does there is no limit.
public struct BandwidthTimetable: Sendable, Hashable {
    public struct Entry: Sendable, Hashable {
        /// Bytes a second of all parts together.
        public let rate: Int
        /// Nil: always.
        public let span: DaySpan?
    }
    public let entries: [Entry]
    /// Below the lowest, several parts at once would each be given up as too slow.
    public static let rates = (16 << 10)...(16 << 30)

    /// - Throws: `usage`.
    public init(_ text: String) throws(Failure) {
        var entries: [Entry] = []
        for piece in text.split(separator: ",", omittingEmptySubsequences: false) {
            let halves = piece.filter { $0 != " " }.split(separator: "@", omittingEmptySubsequences: false)
            let span = halves.count == 2 ? DaySpan(halves[1]) : nil
            guard (1...2).contains(halves.count), halves.count == 1 || span != nil,
                let rate = ByteCount.parse(halves[0]), Self.rates.contains(rate)
            else {
                throw Failure(
                    .usage,
                    "A bandwidth is written 2M or 500K@08:00-18:00,4M, in bytes a second from 16K on: not “\(text)”.")
            }
            entries.append(Entry(rate: rate, span: span))
        }
        self.entries = entries
    }

    /// Bytes a second; nil: no limit.
    public func rate(at minute: Int) -> Int? {
        entries.first { $0.span?.contains(minute) ?? true }?.rate
    }
}
