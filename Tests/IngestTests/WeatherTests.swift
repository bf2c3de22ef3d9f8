import Synchronization
import Testing
import Vocabulary

@testable import Ingest

@Suite struct WeatherTests {
    /// A store may keep one file locked for minutes: that ends no run in which others get on.
    @Test(arguments: [true, false]) func patienceIsOverOnlyWhenNothingAtAllGetsThrough(othersSucceed: Bool) async throws
    {
        let seconds = Mutex(0.0)
        let clock = BoxClock(now: { 0 }, steady: { seconds.withLock { $0 } }) { rest in
            seconds.withLock { $0 += rest }
        }
        let weather = Weather(
            clock: clock, patience: 120, policy: RetryPolicy(), random: .seeded(1), isBackendWell: { true },
            say: { _ in })
        let faults = Mutex(0)
        var ended: Failure?
        do throws(Failure) {
            try await weather.persist { () throws(Failure) in
                if othersSucceed { await weather.succeeded() }
                let count = faults.withLock { faults in
                    faults += 1
                    return faults
                }
                if count <= 40 { throw Failure(.busy, "The store is not done.") }
            }
        } catch { ended = error }
        #expect(seconds.withLock { $0 } > 120)
        #expect(ended?.code == (othersSucceed ? nil : .busy))
        #expect(await weather.verdict?.code == ended?.code)
    }

    /// Whoever reads why nothing gets on has to look at the right one of the two, for as long as it is true.
    @Test func whatGetsThroughToTheBackendIsNotTheEndOfATroubleWithTheStore() async throws {
        let seconds = Mutex(0.0)
        let said = Mutex<[String?]>([])
        let clock = BoxClock(now: { 0 }, steady: { seconds.withLock { $0 } }) { rest in
            seconds.withLock { $0 += rest }
        }
        let weather = Weather(
            clock: clock, patience: nil, policy: RetryPolicy(), random: .seeded(1), isBackendWell: { true }
        ) { words in said.withLock { $0.append(words) } }
        let faults = Mutex(0)
        try await weather.persist(.store) { () throws(Failure) in
            await weather.succeeded(.backend)
            let count = faults.withLock { faults in
                faults += 1
                return faults
            }
            if count <= 5 { throw Failure(.busy, "The store is busy.") }
        }
        #expect(said.withLock { $0 } == ["The store is busy.", nil])
    }
}
