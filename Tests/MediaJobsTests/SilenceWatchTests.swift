import Testing

@testable import MediaJobs

@Suite struct SilenceWatchTests {
    private let origin = ContinuousClock.now

    /// Looked at each 200 ms until a verdict other than alive.
    /// - Parameters:
    ///   - cpu: the processor time at a moment, both in seconds; nil where the kernel does not say.
    ///   - signs: the seconds at which it gives a sign.
    private func end(signs: [Double] = [], cpu: (Double) -> Double?) -> (SilenceWatch.Verdict, after: Double)? {
        func used(_ seconds: Double) -> Duration? { cpu(seconds).map { .seconds($0) } }
        var watch = SilenceWatch(
            silenceMax: .seconds(10), cpuTimeMax: .seconds(100), now: origin, cpu: used(0))
        for tick in 1...6000 {
            let seconds = Double(tick) * 0.2
            if signs.contains(where: { abs($0 - seconds) < 0.1 }) {
                watch.gaveSign(now: origin + .seconds(seconds), cpu: used(seconds))
            }
            let verdict = watch.look(now: origin + .seconds(seconds), cpu: used(seconds))
            if verdict != .alive { return (verdict, seconds) }
        }
        return nil
    }

    @Test func whoNeitherTalksNorComputesIsSilent() throws {
        let idle = try #require(end { _ in 3 })
        #expect(idle.0 == .silent && abs(idle.after - 10) < 0.3)
        let nearlyIdle = try #require(end { $0 * 0.001 })
        #expect(nearlyIdle.0 == .silent && abs(nearlyIdle.after - 10) < 0.3)
        let unknown = try #require(end { _ in nil })
        #expect(unknown.0 == .silent)
    }

    @Test func whoComputesOnIsAliveAsLongAsItsProcessorTimeLasts() throws {
        let alone = try #require(end { $0 })
        #expect(alone.0 == .endless && abs(alone.after - 100) < 0.5)
        // A tenth of the machine: ten times as long.
        let crowded = try #require(end { $0 / 10 + 5 })
        #expect(crowded.0 == .endless && crowded.after > 990)
    }

    @Test func whoStopsComputingIsFoundInTheNextStretch() throws {
        let stopped = try #require(end { min($0, 13) })
        #expect(stopped.0 == .silent && abs(stopped.after - 30) < 0.3)
    }

    @Test func aSignBeginsBothCountsAnew() throws {
        let talking = try #require(end(signs: [8, 16], cpu: { _ in 0 }))
        #expect(talking.0 == .silent && abs(talking.after - 26) < 0.3)
        let computing = try #require(end(signs: [90], cpu: { $0 }))
        #expect(computing.0 == .endless && abs(computing.after - 190) < 0.5)
    }
}
