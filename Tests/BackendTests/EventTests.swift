import Foundation
import SQLite
import Testing
import Vocabulary

@testable import Backend

@Suite struct EventTests {
    /// One that needs no bytes: the photo's own are there already after the first.
    func makeReady(_ backend: TestBackend, _ number: Int) async throws -> ItemID {
        let file = try TestFile("up-\(number)", item: "item-\(number)", Array("photo \(number)".utf8))
        try await backend.client.upload(file)
        _ = try await backend.client.attach(file)
        return try await backend.client.item(file.item) { $0.state == .ready }.itemID
    }

    @Test(.timeLimit(.minutes(1))) func anEventComesAsItHappensAndSaysWhatItIsAbout() async throws {
        let backend = try await TestBackend()
        let stream = try TestEventStream(backend.backend.address)
        var blocks = stream.blocks.makeAsyncIterator()
        let head = try #require(await blocks.next())
        #expect(head.contains("200 OK") && head.lowercased().contains("content-type: text/event-stream"))
        #expect(await blocks.next() == "retry: 2000\nid: 0")
        _ = try await makeReady(backend, 1)
        #expect(
            await stream.events(2) == [
                "id: 1\nevent: item\ndata: {\"generation\":1,\"item_id\":\"item-1\",\"shoot\":\"wedding\",\"state\":\"processing\"}",
                "id: 2\nevent: item\ndata: {\"generation\":1,\"item_id\":\"item-1\",\"shoot\":\"wedding\",\"state\":\"ready\"}",
            ])
        await backend.backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func whoComesBackGetsEveryEventThatItMissedOnce() async throws {
        let backend = try await TestBackend()
        let first = try TestEventStream(backend.backend.address)
        for number in 1...3 { _ = try await makeReady(backend, number) }
        var seen = await first.events(4).compactMap(TestEventStream.number)
        first.hangUp()
        for number in 4...6 { _ = try await makeReady(backend, number) }
        let second = try TestEventStream(backend.backend.address, last: "4")
        seen += await second.events(8).compactMap(TestEventStream.number)
        #expect(seen == Array(1...12))
        let tool = try TestEventStream(backend.backend.address, query: "?last_event_id=10&shoot=wedding")
        #expect(await tool.events(2).compactMap(TestEventStream.number) == [11, 12])
        await backend.backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func anotherShootsEventsAreNotSentButPassed() async throws {
        var streams = EventStreams.Settings()
        streams.heartbeat = 0.05
        let backend = try await TestBackend(streams: streams)
        let other = try TestEventStream(backend.backend.address, query: "?shoot=other", last: "0")
        _ = try await makeReady(backend, 1)
        var passed: String?
        for await block in other.blocks {
            #expect(!block.contains("event: "))
            if block == ": heartbeat\nid: 2" {
                passed = block
                break
            }
        }
        #expect(passed != nil)
        await backend.backend.stop()
    }

    @Test(.timeLimit(.minutes(1)), arguments: ["0", "2", "99", "-1", "nonsense"])
    func whoseNextEventIsNotInTheLogIsToldToLookAtEverything(last: String) async throws {
        let backend = try await TestBackend()
        for number in 1...3 { _ = try await makeReady(backend, number) }
        let ledger = try await SQLiteLedger.open(backend.data + "/ledger.sqlite")
        try await ledger.trimEvents(EventLogBounds(keptMax: 3, keptMin: 1), now: backend.clock.read())
        #expect(try await ledger.eventSpan(owner: .local) == EventSpan(trimmedTo: 3, last: 6))
        let stream = try TestEventStream(backend.backend.address, last: last)
        #expect(await stream.events(1) == ["id: 6\nevent: reset\ndata: {}"])
        // It goes on from there.
        _ = try await makeReady(backend, 4)
        #expect(await stream.events(2).compactMap(TestEventStream.number) == [7, 8])
        let whole = try TestEventStream(backend.backend.address, last: "3")
        #expect(await whole.events(1).compactMap(TestEventStream.number) == [4])
        await backend.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: backend.data) == [])
    }

    @Test func aLogIsTrimmedByCountAndAgeButNeverToTheLast() async throws {
        let backend = try await TestBackend()
        for number in 1...2 { _ = try await makeReady(backend, number) }
        let ledger = try await SQLiteLedger.open(backend.data + "/ledger.sqlite")
        let now = backend.clock.read()
        try await ledger.trimEvents(EventLogBounds(), now: now.adding(seconds: 1e9))
        #expect(try await ledger.eventSpan(owner: .local).trimmedTo == 0)
        try await ledger.trimEvents(EventLogBounds(age: 60, keptMin: 1), now: now.adding(seconds: 59))
        #expect(try await ledger.eventSpan(owner: .local).trimmedTo == 0)
        try await ledger.trimEvents(EventLogBounds(age: 60, keptMin: 1, sweptMax: 2), now: now.adding(seconds: 61))
        #expect(try await ledger.eventSpan(owner: .local) == EventSpan(trimmedTo: 2, last: 4))
        try await ledger.trimEvents(EventLogBounds(age: 60, keptMin: 0), now: now.adding(seconds: 61))
        #expect(try await ledger.eventSpan(owner: .local) == EventSpan(trimmedTo: 3, last: 4))
        _ = try await makeReady(backend, 3)
        #expect(try await ledger.eventSpan(owner: .local) == EventSpan(trimmedTo: 3, last: 6))
        await backend.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: backend.data) == [])
    }

    @Test(.timeLimit(.minutes(1))) func aClientThatDoesNotReadHoldsUpNobodyAndIsClosed() async throws {
        var streams = EventStreams.Settings()
        streams.readInterval = 0
        let backend = try await TestBackend(idleTimeout: 1, streams: streams)
        // A log that no socket's buffer holds.
        let database = try await SQLiteLedger.open(backend.data + "/ledger.sqlite").database
        try await database.write("test") { database throws(Failure) in
            for number in 1...40_000 {
                try database.run(
                    "INSERT INTO events VALUES('local', ?1, 'item', 'wedding', 1, 'ready', NULL, NULL, 0)",
                    [.int(number)])
            }
        }
        let lazy = try TestEventStream(backend.backend.address, last: "0", reads: false)
        let eager = try TestEventStream(backend.backend.address, last: "39998")
        #expect(await eager.events(2).compactMap(TestEventStream.number) == [39_999, 40_000])
        // The lazy one's place is free again once it has been idle for too long.
        while backend.backend.streamCount != 1 { try await Task.sleep(for: .milliseconds(20)) }
        withExtendedLifetime(lazy) {}
        let again = try TestEventStream(backend.backend.address, last: "0")
        #expect(await again.events(40_000).compactMap(TestEventStream.number) == Array(1...40_000))
        await backend.backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func aServerWithAHundredOpenStreamsStopsAtOnce() async throws {
        let backend = try await TestBackend()
        var streams: [TestEventStream] = []
        for _ in 0..<100 { streams.append(try TestEventStream(backend.backend.address)) }
        // The beginning has come: all of them are waiting for events.
        for stream in streams { #expect(await stream.blocks.first { $0.hasPrefix("retry: ") } != nil) }
        let start = ContinuousClock.now
        await backend.backend.stop()
        // Far from the ten seconds that requests under way get.
        #expect(ContinuousClock.now - start < .seconds(5))
        for stream in streams { for await block in stream.blocks { #expect(!block.contains("event: ")) } }
    }

    @Test(.timeLimit(.minutes(1))) func oneStreamTooManyIsAskedToComeBack() async throws {
        var streams = EventStreams.Settings()
        streams.streamsPerOwnerMax = 2
        let backend = try await TestBackend(streams: streams)
        let open = try (0..<2).map { _ in try TestEventStream(backend.backend.address) }
        for stream in open { _ = await stream.blocks.first { $0.hasPrefix("retry: ") } }
        let answer = try await backend.client.request("GET", "/v1/events")
        #expect(answer.status == 503)
        #expect(answer.headers["retry-after"] == "1")
        #expect(answer.code == .busy)
        await backend.backend.stop()
    }

    @Test(.timeLimit(.minutes(1))) func anOwnerIsNotToldOfAnothersItems() async throws {
        let backend = try await TestBackend()
        let ledger = try await SQLiteLedger.open(backend.data + "/ledger.sqlite")
        let database = ledger.database
        _ = try await database.write("test") { database throws(Failure) in
            try database.run(
                "INSERT INTO events VALUES('stranger', 1, 'theirs', 'wedding', 1, 'ready', NULL, NULL, 0)", [])
        }
        let stream = try TestEventStream(backend.backend.address, last: "0")
        _ = try await makeReady(backend, 1)
        let events = await stream.events(2)
        #expect(events.allSatisfy { $0.contains("item-1") })
        await backend.backend.stop()
    }
}

@Suite struct ClockTests {
    @Test(arguments: [86_400.0, -86_400.0, 6, -6]) func aClockThatWasSetIsNoticedOnceInBothDirections(step: Double) {
        let start = Timestamp(milliseconds: 1_700_000_000_000)
        var watch = ClockWatch(wall: start, steady: 50)
        #expect(watch.look(wall: start.adding(seconds: 1), steady: 51) == nil)
        #expect(watch.look(wall: start.adding(seconds: 2 + step), steady: 52) == step)
        #expect(watch.look(wall: start.adding(seconds: 3 + step), steady: 53) == nil)
    }

    @Test(arguments: [2.0, -2.0]) func aClockThatIsSteeredIsNoJump(step: Double) {
        let start = Timestamp(milliseconds: 0)
        var watch = ClockWatch(wall: start, steady: 0)
        #expect(watch.look(wall: start.adding(seconds: 60 + step), steady: 60) == nil)
    }

    @Test(arguments: [86_400.0, -86_400.0]) func aJumpCostsNoLeaseAndKeepsNoJobWaiting(step: Double) async throws {
        let scratch = try ScratchFolder()
        let ledger = try await SQLiteLedger.open(scratch.path + "/ledger.sqlite")
        let start = Timestamp(milliseconds: 1_700_000_000_000)
        for number in 1...2 {
            _ = try await ledger.database.write("test") { database throws(Failure) in
                try database.run(
                    "INSERT INTO items(id, owner, shoot, state, generation, created_at, updated_at) VALUES(?1, 'local', 's', 'processing', 1, 0, 0)",
                    [.text("item-\(number)")])
                try database.run(
                    "INSERT INTO jobs(item, state, runnable_at, attempts, epoch) VALUES(?1, 'available', ?2, 0, 0)",
                    [.text("item-\(number)"), SQLValue(start)])
            }
        }
        let held = try #require(try await ledger.claim(now: start, leaseUntil: start.adding(seconds: 60)))
        let after = start.adding(seconds: step)
        try await ledger.followClock(by: step, leaseUntil: after.adding(seconds: 60))
        try await ledger.sweep(now: after, isRestart: false, policy: RetryPolicy())
        #expect(
            try await ledger.heartbeat(held.item.id, epoch: held.epoch, leaseUntil: after.adding(seconds: 60)))
        let next = try #require(try await ledger.claim(now: after, leaseUntil: after.adding(seconds: 60)))
        #expect(next.item.id != held.item.id)
        // A worker that is gone is missed as soon as without the jump.
        try await ledger.sweep(now: after.adding(seconds: 61), isRestart: false, policy: RetryPolicy())
        #expect(try await !ledger.heartbeat(held.item.id, epoch: held.epoch, leaseUntil: after.adding(seconds: 120)))
    }
}
