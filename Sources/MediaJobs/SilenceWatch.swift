/// Whether a process that gives no sign is still at work. Pure.
///
/// A long decode shows nothing in between, and on a slow or busy machine time alone would end it. So only a process that hardly uses the
/// processor either is silent: it waits for something that never comes. One that computes on and on is bounded by its processor time.
struct SilenceWatch {
    /// Of the time; less is what idle threads with timers use.
    static let busyShare = 0.01

    enum Verdict: Equatable { case alive, silent, endless }

    let silenceMax: Duration
    let cpuTimeMax: Duration
    private var cpuAtSign: Duration
    /// The stretch without a sign that is being looked at.
    private var start: (time: ContinuousClock.Instant, cpu: Duration)

    init(silenceMax: Duration, cpuTimeMax: Duration, now: ContinuousClock.Instant, cpu: Duration?) {
        self.silenceMax = silenceMax
        self.cpuTimeMax = cpuTimeMax
        cpuAtSign = cpu ?? .zero
        start = (now, cpuAtSign)
    }

    /// The process has shown that it gets on.
    mutating func gaveSign(now: ContinuousClock.Instant, cpu: Duration?) {
        cpuAtSign = cpu ?? start.cpu
        start = (now, cpuAtSign)
    }

    /// - Parameter cpu: processor time so far; nil where the kernel does not say, which is then no sign of life.
    mutating func look(now: ContinuousClock.Instant, cpu: Duration?) -> Verdict {
        let cpu = cpu ?? start.cpu
        if cpu - cpuAtSign > cpuTimeMax { return .endless }
        let stretch = now - start.time
        guard stretch >= silenceMax else { return .alive }
        let isBusy = cpu - start.cpu >= stretch * Self.busyShare
        start = (now, cpu)
        return isBusy ? .alive : .silent
    }
}
