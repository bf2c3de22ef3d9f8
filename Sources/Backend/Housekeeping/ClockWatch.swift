/// Tells when the system's clock was set, by a clock that only ever goes forward at its own pace. Pure.
///
/// Leases and expiries are stored, so they are in the time of the system's clock; as durations they must not end early or late because that
/// clock was set.
struct ClockWatch: Sendable {
    /// Seconds; smaller steps are the clock being steered.
    static let stepMin = 5.0
    private var wall: Timestamp
    private var steady: Double

    /// - Parameter steady: seconds on a clock that cannot be set.
    init(wall: Timestamp, steady: Double) {
        self.wall = wall
        self.steady = steady
    }

    /// - Returns: seconds by which the clock was set since the last look, forward or back.
    mutating func look(wall: Timestamp, steady: Double) -> Double? {
        let passed = Double(wall.milliseconds - self.wall.milliseconds) / 1000
        let step = passed - (steady - self.steady)
        (self.wall, self.steady) = (wall, steady)
        return abs(step) >= Self.stepMin ? step : nil
    }
}
