import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

@testable import rushes

/// Conditions that change while the real box works against the real backend.
@Suite(.timeLimit(.minutes(2))) struct ConditionTests {
    private final class World: Sendable {
        private let around = Mutex(Surroundings())
        var look: @Sendable () async -> Surroundings { { self.around.withLock { $0 } } }
        func change(_ body: @Sendable (inout Surroundings) -> Void) { around.withLock { body(&$0) } }
    }

    /// Runs until all items are at their ends.
    /// - Parameter whenWaiting: called once when an item says that it waits.
    private func run(
        _ stage: Stage, _ settings: IngestSettings, events: @escaping @Sendable (BoxEvent) -> Void = { _ in },
        whenWaiting: @escaping @Sendable (Box) async throws -> Void
    ) async throws -> (items: [ItemStatus], reasons: Set<String>) {
        let box = try await Box.open(settings)
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        let reasons = Mutex<Set<String>>([])
        let acting = Mutex<Task<Void, any Error>?>(nil)
        try await box.run(until: .itemsFinal(report.items)) { event in
            events(event)
            guard case .item(let item) = event, let reason = item.waiting else { return }
            reasons.withLock { _ = $0.insert("\(item.name): \(reason)") }
            acting.withLock { if $0 == nil { $0 = Task { try await whenWaiting(box) } } }
        }
        try await acting.withLock { $0 }?.value
        for id in report.items { #expect(try await box.show(id).attempts == 0) }
        return (try await box.items(report.items), reasons.withLock { $0 })
    }

    @Test func onAMeteredNetworkTheLargeFileWaitsTheSmallOneGoesAndBothAreReadyOnAnotherNetwork() async throws {
        let stage = try await Stage()
        try stage.write("large.mp4", .video, size: 2 << 20, seed: 1)
        try stage.write("small.jpg", .photo, size: 1000, seed: 2)
        let world = World()
        world.change { $0.isMetered = true }
        var settings = stage.settings()
        settings.surroundings = world.look
        settings.conditions.meteredBytesMax = 1 << 20
        let isSmallReady = Signal()
        let (items, reasons) = try await run(stage, settings) { event in
            if case .item(let item) = event, item.name == "small.jpg", item.state == .ready { isSmallReady.give() }
        } whenWaiting: { box in
            // The small one does not wait for the large one.
            await isSmallReady.wait()
            let large = try #require(try await box.items().first { $0.name == "large.mp4" })
            #expect(large.state == .uploading && large.waiting == "Waiting for an unmetered network")
            world.change { $0.isMetered = false }
        }
        #expect(items.map(\.state) == [.ready, .ready])
        #expect(reasons == ["large.mp4: Waiting for an unmetered network"])
        try await stage.end()
    }

    @Test func whenTheHoursEndInTheMiddleOfAFileItGoesOnLaterFromWhereItWas() async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 60 << 20, seed: 1)
        let world = World()
        var settings = stage.settings()
        settings.conditions.hours = try AllowedHours("00:00-06:00")
        settings.surroundings = world.look
        let puts = Tally()
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.headers["Content-MD5"] != nil else { return nil }
            let number = puts.next()
            if number == 3 { world.change { $0.minute = 360 } }
            // What comes after stays on its way until the look at the clock breaks it off.
            if number > 3, await world.look().minute == 360 {
                let (never, keep) = AsyncStream.makeStream(of: Void.self)
                for await _ in never {}
                withExtendedLifetime(keep) {}
            }
            return nil
        }
        settings.transport = network
        let (items, reasons) = try await run(stage, settings) { _ in world.change { $0.minute = 0 } }
        #expect(items.map(\.state) == [.ready])
        #expect(reasons == ["a.mp4: Waiting until 00:00"])
        #expect(network.sentAgain == [])
        try await stage.end()
    }

    @Test func whatAPersonWantsNowWaitsForNothingAlsoWhenItWaitedBefore() async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 1000, seed: 1)
        var settings = stage.settings()
        settings.conditions.hours = try AllowedHours("00:00-01:00")
        settings.surroundings = { Surroundings(minute: 600) }
        let card = stage.card
        let (items, reasons) = try await run(stage, settings) { box in
            let again = try await box.enrol(
                PickRequest(paths: [card], shoot: "test", prepare: .original, uploadNow: true))
            #expect(again.picks.map(\.outcome) == [.joined])
        }
        #expect(items.map(\.state) == [.ready])
        #expect(reasons == ["a.mp4: Waiting until 00:00"])
        let story = try await Box.open(settings).show(items[0].item).history.map(\.entry)
        #expect(story.contains { $0.what == .steered && $0.words == "upload now" })

        try stage.write("b.mp4", .video, size: 1000, seed: 2)
        let box = try await Box.open(settings)
        let report = try await box.enrol(
            PickRequest(paths: [stage.card], shoot: "test", prepare: .original, uploadNow: true))
        try await box.run(until: .itemsFinal(report.items)) { event in
            if case .item(let item) = event { #expect(item.waiting == nil) }
        }
        #expect(try await box.items(report.items).allSatisfy { $0.state == .ready })
        try await stage.end()
    }

    @Test func partsTogetherGoNoFasterThanTheClockAllowsAndArriveWhole() async throws {
        let stage = try await Stage()
        for index in 0..<3 { try stage.write("\(index).mp4", .video, size: 512 << 10, seed: index) }
        // 2 KiB a tick: less than is ever given out, so that every other look has to wait.
        let rate = 400 << 10
        // Each look at this clock is a tick: whoever sends has to look so often, however fast the machine is.
        let ticks = Mutex(0)
        var settings = stage.settings()
        settings.throttle = SendThrottle(
            rate: { rate },
            seconds: {
                ticks.withLock {
                    $0 += 1
                    return Double($0) / 200
                }
            })
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0)
        settings.transport = network
        let (_, items) = try await stage.ingest(settings, prepare: .original)
        #expect(items.map(\.state) == [.ready, .ready, .ready])
        let sent = network.exchanges.filter { $0.contentMD5 != nil }.reduce(0) { $0 + $1.bytes }
        #expect(sent > 3 * 512 << 10)
        #expect(Double(ticks.withLock { $0 }) / 200 * Double(rate) + Double(rate) / 4 >= Double(sent))
        try await stage.end()
    }

    // MARK: What the machine says

    private static let wifi = """
        GENERAL.DEVICE:wlan0
        GENERAL.STATE:100 (connected)
        GENERAL.METERED:METERED
        IP4.GATEWAY:192.168.43.1
        IP6.GATEWAY:

        GENERAL.DEVICE:lo
        GENERAL.STATE:100 (connected (externally))
        GENERAL.METERED:no (guessed)
        IP4.GATEWAY:

        """

    @Test(arguments: [
        ("", false), ("Error: NetworkManager is not running.\n", false),
        (wifi.replacing("METERED:METERED", with: "METERED:yes"), true),
        (wifi.replacing("METERED:METERED", with: "METERED:yes (guessed)"), true),
        (wifi.replacing("METERED:METERED", with: "METERED:no (guessed)"), false),
        (wifi.replacing("METERED:METERED", with: "METERED:unknown"), false),
        // Not connected, or not the way out.
        (
            wifi.replacing("METERED:METERED", with: "METERED:yes").replacing(
                "100 (connected)", with: "30 (disconnected)"), false
        ),
        (wifi.replacing("METERED:METERED", with: "METERED:yes").replacing("192.168.43.1", with: "--"), false),
        (wifi.replacing("METERED:METERED", with: "METERED:yes").replacing("\n\n", with: "\n"), true),
    ])
    func aNetworkIsMeteredWhereNetworkManagerSaysSoOfTheWayOut(text: String, expected: Bool) {
        #expect(NetworkManagerWords.isMetered(text) == expected)
    }

    @Test(
        arguments: [
            ([], true), ([("Mains", "1", nil)], true), ([("Mains", "0", nil), ("Battery", nil, "Discharging")], false),
            ([("Mains", "1", nil), ("Battery", nil, "Discharging")], true), ([("Battery", nil, "Full")], true),
            ([("USB", "1", nil), ("Battery", nil, "Charging")], true), ([("Battery", nil, "Discharging")], false),
        ] as [([(String, String?, String?)], Bool)])
    func aMachineIsOnPowerUnlessABatteryIsWhatItRunsOn(supplies: [(String, String?, String?)], expected: Bool) {
        let supplies = supplies.map { PowerSupply(type: $0.0, online: $0.1, status: $0.2) }
        #expect(PowerSupply.isOnPower(supplies) == expected)
    }

    @Test func aSettingThatNobodyKnowsIsRefusedByName() throws {
        let failure = #expect(throws: Failure.self) {
            try Configuration(environment: ["HOME": "/h"]) { _ throws(Failure) in
                Data(#"{needs_power: "yes", needs_powr: "yes"}"#.utf8)
            }
        }
        #expect(failure?.code == .usage && failure?.message.contains(" sets needs_powr, ") == true)
    }

    @Test func conditionsComeFromVariablesOverTheFile() throws {
        let file =
            #"{hours: "01:00-02:00", bandwidth: "1M", metered: "yes", metered_max: "5M", needs_power: "yes", order: "newest"}"#
        let read = { (_: String) throws(Failure) -> Data? in Data(file.utf8) }
        let plain = try Configuration(environment: ["HOME": "/h"], read: read)
        #expect(plain.conditions.hours == (try AllowedHours("01:00-02:00")))
        #expect(plain.conditions.meteredBytesMax == 5 << 20 && plain.conditions.needsPower)
        #expect(plain.metering == .yes && plain.bandwidth?.rate(at: 0) == 1 << 20)
        #expect(plain.order == .newest)
        let over = try Configuration(
            environment: [
                "HOME": "/h", "RUSHES_HOURS": "03:00-04:00", "RUSHES_METERED": "no", "RUSHES_METERED_MAX": "1G",
                "RUSHES_NEEDS_POWER": "no", "RUSHES_BANDWIDTH": "2M", "RUSHES_ORDER": "smallest",
            ], read: read)
        #expect(over.conditions.hours == (try AllowedHours("03:00-04:00")))
        #expect(over.conditions.meteredBytesMax == 1 << 30 && !over.conditions.needsPower)
        #expect(over.metering == .no && over.bandwidth?.rate(at: 0) == 2 << 20)
        #expect(over.order == .smallest)
        for (name, value) in [
            ("RUSHES_METERED", "maybe"), ("RUSHES_METERED_MAX", "x"), ("RUSHES_NEEDS_POWER", "1"),
            ("RUSHES_HOURS", "x"),
            ("RUSHES_BANDWIDTH", "x"), ("RUSHES_ORDER", "size"),
        ] {
            let failure = #expect(throws: Failure.self) {
                try Configuration(environment: ["HOME": "/h", name: value]) { _ throws(Failure) in nil }
            }
            #expect(failure?.code == .usage)
        }
    }
}
