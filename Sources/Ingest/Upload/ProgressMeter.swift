/// Turns counted bytes into what a person sees: a share that never goes back, a smoothed rate, and the time left once that means something.
struct ProgressMeter: Sendable, Equatable {
    /// Bytes.
    let total: Int
    private(set) var confirmed = 0
    /// The highest count shown so far.
    private(set) var shown = 0
    /// Bytes a second.
    private(set) var rate: Double?
    private var lastTime: Double?
    private var lastBytes = 0
    private var samples = 0

    /// Seconds over which the rate is smoothed.
    static let smoothing = 5.0
    /// Samples before the time left is shown.
    static let samplesMin = 4
    /// Seconds between two samples at least.
    static let sampleInterval = 0.25

    init(total: Int, confirmed: Int = 0) {
        self.total = total
        self.confirmed = min(confirmed, total)
        shown = self.confirmed
        lastBytes = self.confirmed
    }

    /// - Parameters:
    ///   - confirmed: bytes that the store acknowledged.
    ///   - inFlight: bytes handed to the network and not acknowledged; a failed part takes its own back, what was shown stays.
    ///   - time: seconds on any steady clock.
    mutating func update(confirmed: Int, inFlight: Int, at time: Double) {
        self.confirmed = max(self.confirmed, min(confirmed, total))
        shown = max(shown, min(confirmed + inFlight, total))
        guard let last = lastTime else {
            lastTime = time
            lastBytes = shown
            return
        }
        let elapsed = time - last
        guard elapsed >= Self.sampleInterval else { return }
        let sample = Double(shown - lastBytes) / elapsed
        let weight = min(1, elapsed / Self.smoothing)
        rate = rate.map { $0 + (sample - $0) * weight } ?? sample
        samples += 1
        lastTime = time
        lastBytes = shown
    }

    /// 0 to 1.
    var fraction: Double { total == 0 ? 1 : Double(shown) / Double(total) }

    /// Nil until the rate has settled.
    var secondsLeft: Double? {
        guard let rate, rate > 1, samples >= Self.samplesMin else { return nil }
        return Double(total - shown) / rate
    }
}
