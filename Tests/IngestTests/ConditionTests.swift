import Curl
import Synchronization
import Testing
import Vocabulary

@testable import Curl
@testable import Ingest

@Suite struct ConditionTests {
    @Test(
        "a file waits for what its conditions ask for, one reason at a time, unless a person says otherwise",
        arguments: [
            // (metered, on power, minute, bytes, urgent, reason)
            (false, true, 600, 1 << 40, false, nil),
            (true, true, 600, 100, false, nil),
            (true, true, 600, 101, false, "Waiting for an unmetered network"),
            (true, true, 600, 101, true, nil),
            (false, false, 600, 1, false, "Waiting for mains power"),
            (false, false, 600, 1, true, nil),
            (true, false, 600, 101, false, "Waiting for mains power"),
            (true, false, 500, 101, false, "Waiting until 09:30"),
            (false, true, 1230, 1, false, "Waiting until 22:00"),
            (false, true, 30, 1, false, nil),
            (false, true, 300, 1, false, "Waiting until 09:30"),
            (false, true, 300, 1, true, nil),
        ] as [(Bool, Bool, Int, Int, Bool, String?)])
    func condition(
        isMetered: Bool, isOnPower: Bool, minute: Int, bytes: Int, isUrgent: Bool, reason: String?
    ) throws {
        var policy = ConditionPolicy()
        policy.meteredBytesMax = 100
        policy.needsPower = true
        policy.hours = try AllowedHours("22:00-05:00, 09:30-20:30")
        let around = Surroundings(isMetered: isMetered, isOnPower: isOnPower, minute: minute)
        #expect(policy.waitingReason(around, bytes: bytes, isUrgent: isUrgent) == reason)
    }

    @Test func withoutSettingsOnlyLargeFilesOnAMeteredNetworkWait() {
        let policy = ConditionPolicy()
        #expect(policy.waitingReason(Surroundings(isOnPower: false), bytes: 1 << 40, isUrgent: false) == nil)
        let metered = Surroundings(isMetered: true)
        #expect(policy.waitingReason(metered, bytes: 16 << 20, isUrgent: false) == nil)
        #expect(policy.waitingReason(metered, bytes: 16 << 20 + 1, isUrgent: false) != nil)
    }

    @Test(arguments: [
        ("08:00-18:00", [480, 1079], [479, 1080]), ("22:00-6:00", [1320, 1439, 0, 359], [360, 1319]),
        ("00:00-24:00", [0, 1439], []), ("12:00-12:00", [0, 719, 720, 1439], []),
    ])
    func aStretchOfTheDayMayGoOverMidnight(text: String, inside: [Int], outside: [Int]) throws {
        let span = try #require(DaySpan(text))
        for minute in inside { #expect(span.contains(minute), "\(minute)") }
        for minute in outside { #expect(!span.contains(minute), "\(minute)") }
    }

    @Test(arguments: [
        "", "8-18", "08:00", "08:00-", "24:00-06:00", "08:60-09:00", "08:00-25:00", "08:00-18:00,", "08:00-18:00-20:00",
        "-1:00-02:00", "+8:00-09:00", "008:00-09:00",
    ])
    func whatAreNoHoursIsRefused(text: String) {
        let failure = #expect(throws: Failure.self) { try AllowedHours(text) }
        #expect(failure?.code == .usage)
    }

    @Test(
        arguments: [
            ("2M", 0, 2 << 20), ("500K@08:00-18:00", 480, 500 << 10), ("500K@08:00-18:00", 1080, nil),
            ("500K@08:00-18:00, 4M", 1080, 4 << 20), ("1M@22:00-06:00,2M@05:00-07:00", 330, 1 << 20),
            ("1M@22:00-06:00,2M@05:00-07:00", 370, 2 << 20), ("65536", 1, 65536),
        ] as [(String, Int, Int?)])
    func theFirstEntryThatFitsIsTheBandwidthOfTheHour(text: String, minute: Int, rate: Int?) throws {
        #expect(try BandwidthTimetable(text).rate(at: minute) == rate)
    }

    @Test(arguments: ["", "M", "0", "1K", "2M@", "2M@8-18", "2M@08:00-18:00@x", "-2M", "2M,", "1.5M", "99999999999G"])
    func whatIsNoBandwidthIsRefused(text: String) {
        let failure = #expect(throws: Failure.self) { try BandwidthTimetable(text) }
        #expect(failure?.code == .usage)
    }

    @Test func aBucketGivesNoMoreThanItsRateAndSavesNoMoreThanABurst() {
        let time = Mutex(0.0)
        let rate = Mutex<Int?>(1 << 20)
        let throttle = SendThrottle(rate: { rate.withLock { $0 } }, seconds: { time.withLock { $0 } })
        let burst = 1 << 18
        #expect(throttle.take(1 << 30) == burst)
        #expect(throttle.take(1) == 0)
        time.withLock { $0 += 0.1 }
        #expect(throttle.take(1000) == 1000)
        #expect(throttle.take(1 << 30) == (1 << 20) / 10 - 1000)
        // Less than is worth a call is not given out, unless that is all that is wanted.
        time.withLock { $0 += 0.001 }
        #expect(throttle.take(1 << 20) == 0)
        #expect(throttle.take(100) == 100)
        time.withLock { $0 += 3600 }
        #expect(throttle.take(1 << 30) == burst)
        rate.withLock { $0 = nil }
        #expect(throttle.take(1 << 30) == 1 << 30)
        // A clock that was set back gives nothing, and takes nothing away.
        rate.withLock { $0 = 1 << 20 }
        time.withLock { $0 -= 1000 }
        #expect(throttle.take(1) == 0)
    }
}
