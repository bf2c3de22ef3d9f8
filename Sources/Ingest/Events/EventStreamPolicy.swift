import Vocabulary

/// When to open the event stream again. Pure.
struct EventStreamPolicy: Sendable, Equatable {
    /// Its longest is also as long as a server may ask for at most.
    var backoff = Backoff(firstDelay: 1, delayMax: 60)
    /// Until a server that knows no streams is asked again; it may be a newer one by then.
    var absence = Backoff(firstDelay: 300, delayMax: 300)
    /// A stream that lasted so many seconds was none that keeps breaking off.
    var lastedMin = 60.0
    /// Events of one stream that cannot be understood before it is given up.
    var nonsenseMax = 16
    /// Bytes of one stream; one that is longer is opened again where it was, so that a flood costs no more than its beginning each time.
    var bytesMax = 64 << 20

    /// How a stream came to its end.
    enum Ending: Sendable, Equatable {
        /// - Parameter wasUseful: events came, or it lasted.
        case closed(wasUseful: Bool)
        /// - Parameter retryAfter: seconds.
        case refused(status: Int, retryAfter: Double?)
        /// Nothing came that is an event stream.
        case nonsense
    }

    private(set) var failures = 0
    /// Seconds that the server wants between the end of a stream and the next one, as it said last.
    private(set) var interval = 0.0

    mutating func asked(milliseconds: Int) { interval = min(backoff.delayMax, Double(milliseconds) / 1000) }

    /// - Returns: seconds to wait.
    mutating func delay(after ending: Ending, using random: inout some RandomNumberGenerator) -> Double {
        var least = interval
        switch ending {
        case .closed(wasUseful: true):
            failures = 0
            return max(least, backoff.delay(faults: 1, using: &random))
        case .refused(404, _), .refused(405, _), .refused(406, _), .refused(501, _):
            return absence.delay(faults: 1, using: &random)
        case .refused(_, let retryAfter): least = max(least, min(backoff.delayMax, retryAfter ?? 0))
        case .closed(wasUseful: false), .nonsense: break
        }
        failures += 1
        return max(least, backoff.delay(faults: failures, using: &random))
    }
}
