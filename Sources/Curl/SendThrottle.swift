import Synchronization

/// A bound on how fast several bodies together are sent: a bucket that fills at the rate of the moment (token bucket).
public final class SendThrottle: Sendable {
    private struct Bucket {
        var bytes = 0.0
        var filledAt: Double?
    }
    private let bucket = Mutex(Bucket())
    private let rate: @Sendable () -> Int?
    private let seconds: @Sendable () -> Double

    /// Seconds of the rate that the bucket holds at most: what may go at once after a pause.
    static let burstSeconds = 0.25
    /// Bytes that are given out at least, where so many are wanted: fewer cost more than they are worth.
    static let grantMin = 4 << 10

    /// - Parameters:
    ///   - rate: bytes a second at this moment; nil: no bound.
    ///   - seconds: on a clock that nobody sets.
    public init(rate: @escaping @Sendable () -> Int?, seconds: @escaping @Sendable () -> Double) {
        self.rate = rate
        self.seconds = seconds
    }

    /// - Returns: bytes that may go now, at most `wanted`; 0: come back later.
    func take(_ wanted: Int) -> Int {
        guard let rate = rate() else { return wanted }
        let now = seconds()
        return bucket.withLock { bucket in
            let capacity = max(Double(rate) * Self.burstSeconds, Double(Self.grantMin))
            let filled = bucket.filledAt.map { (now - $0) * Double(rate) } ?? capacity
            bucket.bytes = min(capacity, bucket.bytes + max(0, filled))
            bucket.filledAt = now
            let granted = min(wanted, Int(bucket.bytes))
            guard granted >= min(wanted, Self.grantMin) else { return 0 }
            bucket.bytes -= Double(granted)
            return granted
        }
    }
}
