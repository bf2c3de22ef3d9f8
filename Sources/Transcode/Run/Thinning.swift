import FFmpeg

/// Drops frames of a variable rate by their times, so that never more come in a second than are wanted, and none is lost where there are few.
struct Thinning {
    /// Ticks from one kept frame to the next; 0 keeps all.
    private let interval: Int64
    /// Ticks by which a frame may come too early, since times waver.
    private let early: Int64
    private var due: Int64?

    private static let earlyShare = 0.25

    init(_ plan: TranscodePlan.Encode) {
        interval = plan.timeBase.ticks(plan.intervalMin)
        early = plan.timeBase.ticks(plan.intervalMin * Self.earlyShare)
    }

    /// - Parameter time: in the plan's time base, later than the one before.
    mutating func keeps(_ time: Int64) -> Bool {
        guard interval > 0 else { return true }
        let wanted = due ?? time
        guard time >= wanted - early else { return false }
        due = max(wanted, time - early) + interval
        return true
    }
}
