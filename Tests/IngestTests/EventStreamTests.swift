import Curl
import Synchronization
import Testing
import Vocabulary

@testable import Ingest

@Suite struct EventStreamParserTests {
    typealias Event = EventStreamParser.Event

    @Test(arguments: [
        ("data: a\n\n", [Event(name: "message", data: "a")]),
        ("event: item\ndata: a\n\n", [Event(name: "item", data: "a")]),
        ("event: item\r\ndata: a\r\n\r\n", [Event(name: "item", data: "a")]),
        ("event: item\rdata: a\r\r", [Event(name: "item", data: "a")]),
        ("\u{FEFF}data: a\n\n", [Event(name: "message", data: "a")]),
        ("data:a\ndata:  b\ndata\n\n", [Event(name: "message", data: "a\n b\n")]),
        (": comment\n\ndata: a\n: more\n\n", [Event(name: "message", data: "a")]),
        ("event: item\n\ndata: a\n\n", [Event(name: "message", data: "a")]),
        ("data: cut off", []),
        ("data: cut off\n", []),
        ("nonsense\nmore: nonsense\n\n\n\n", []),
        ("data: 📸\n\ndata: ü\n\n", [Event(name: "message", data: "📸"), Event(name: "message", data: "ü")]),
    ]) func eachFormOfAStreamIsUnderstood(text: String, events: [Event]) throws {
        var parser = EventStreamParser()
        #expect(try parser.take(Array(text.utf8)) == events)
    }

    @Test func thePlaceAndTheWaitAreRemembered() throws {
        var parser = EventStreamParser(lastID: "3")
        _ = try parser.take(Array("retry: 1500\nid: 7\n\n".utf8))
        #expect(parser.lastID == "7" && parser.retry == 1500)
        // No number, and nothing that could end a header.
        _ = try parser.take(Array("retry: 1s\nid: a\u{0}b\nid: \(String(repeating: "9", count: 500))\n\n".utf8))
        #expect(parser.lastID == "7" && parser.retry == 1500)
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>) func howTheBytesAreSplitChangesNothing(seed: UInt64) throws {
        var random = BoxRandom.seeded(seed)
        let pieces = [
            "data: ü📸\r\n", "\r\n", "\n", "\r", "event: item\n", "id: 4\r", ": c\n", "data\n", "\u{FEFF}", "x: y\r\n",
        ]
        var bytes: [UInt8] = []
        for _ in 0..<60 { bytes += Array((pieces.randomElement(using: &random) ?? "").utf8) }
        var whole = EventStreamParser()
        let expected = try whole.take(bytes)
        var split = EventStreamParser()
        var events: [Event] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = min(rest.count, Int.random(in: 1...5, using: &random))
            events += try split.take(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
        #expect(events == expected && split.lastID == whole.lastID, "seed \(seed)")
    }

    @Test(arguments: 1...50 as ClosedRange<UInt64>) func nonsenseIsNoEventOrAFailure(seed: UInt64) {
        var random = BoxRandom.seeded(seed)
        var parser = EventStreamParser()
        let bytes = (0..<20_000).map { _ in UInt8.random(in: 0...255, using: &random) }
        #expect((try? parser.take(bytes)) ?? [] == [], "seed \(seed)")
    }

    @Test func anEndlessLineAndEndlessDataAreRefused() {
        var parser = EventStreamParser()
        #expect(throws: Failure.self) { try parser.take(repeatElement(UInt8(ascii: "a"), count: 1 << 17)) }
        var other = EventStreamParser()
        let line = Array("data: \(String(repeating: "a", count: 1000))\n".utf8)
        #expect(throws: Failure.self) { for _ in 0..<300 { _ = try other.take(line) } }
    }
}

@Suite struct EventReadingTests {
    let head = HTTPResponse(status: 200, headers: ["content-type": "text/event-stream"])
    func item(_ id: String, _ state: String) -> String {
        "id: 1\nevent: item\ndata: {\"item_id\":\"\(id)\",\"shoot\":\"s\",\"generation\":1,\"state\":\"\(state)\"}\n\n"
    }
    func read(_ texts: [String], _ head: HTTPResponse? = nil) -> (
        words: [EventReading.Word], goesOn: Bool, EventReading.End
    ) {
        let words = Mutex<[EventReading.Word]>([])
        let reading = EventReading(lastID: nil, policy: EventStreamPolicy()) { word in
            words.withLock { $0.append(word) }
        }
        var goesOn = true
        for text in texts where goesOn { goesOn = reading.take(head ?? self.head, Array(text.utf8)) }
        return (words.withLock { $0 }, goesOn, reading.end)
    }

    @Test func onlyAChangeThatSomebodyWaitsForIsToldAndAReset() {
        let (words, goesOn, end) = read([
            "retry: 1\n\n", item("a", "processing"), item("a", "ready"), item("a", "ready"), "event: new\ndata: 1\n\n",
            "id: 9\nevent: reset\ndata: {}\n\n",
        ])
        #expect(words == [.began, .item(ItemID.named("a")), .item(ItemID.named("a")), .reset])
        #expect(
            goesOn
                && end == EventReading.End(lastID: "9", wasProper: true, wasUseful: true, isNonsense: false, retry: 1))
    }

    @Test func whatIsNoEventStreamIsHungUpOn() {
        let page = read(["<html>"], HTTPResponse(status: 200, headers: ["Content-Type": "text/html"]))
        #expect(page.words == [] && !page.goesOn && page.2.isNonsense)
        #expect(read([String(repeating: "x", count: 1 << 17)]).2.isNonsense)
        let items = read(Array(repeating: "event: item\ndata: {}\n\n", count: 17))
        #expect(items.words == [.began] && items.2.isNonsense)
        #expect(!read(Array(repeating: "event: item\ndata: {}\n\n", count: 16)).2.isNonsense)
    }

    @Test func aFloodIsCutOff() {
        var policy = EventStreamPolicy()
        policy.bytesMax = 1000
        let reading = EventReading(lastID: nil, policy: policy) { _ in }
        let beat = Array(": heartbeat\n\n".utf8)
        var count = 0
        while reading.take(head, beat), count < 1000 { count += 1 }
        #expect(count == 76)
        // A long one is none that makes no sense: it goes on where it was.
        #expect(!reading.end.isNonsense)
    }
}

@Suite struct EventStreamPolicyTests {
    @Test func waitsGrowUntilAStreamWasUseful() {
        var policy = EventStreamPolicy()
        var random = BoxRandom.seeded(1)
        for ceiling in [1.0, 2, 4, 8, 16, 32, 60, 60] {
            #expect((ceiling / 2...ceiling).contains(policy.delay(after: .nonsense, using: &random)))
        }
        #expect(policy.delay(after: .closed(wasUseful: true), using: &random) <= 1)
        #expect(policy.delay(after: .closed(wasUseful: false), using: &random) <= 1)
    }

    @Test func aServerSaysWhenToComeBackWithinReason() {
        var random = BoxRandom.seeded(1)
        var policy = EventStreamPolicy()
        #expect(policy.delay(after: .refused(status: 503, retryAfter: 20), using: &random) == 20)
        #expect(policy.delay(after: .refused(status: 503, retryAfter: 1e9), using: &random) == 60)
        #expect(policy.delay(after: .refused(status: 404, retryAfter: nil), using: &random) >= 150)
        policy.asked(milliseconds: 7000)
        #expect(policy.delay(after: .closed(wasUseful: true), using: &random) == 7)
        #expect(policy.delay(after: .refused(status: 503, retryAfter: 2), using: &random) == 7)
        policy.asked(milliseconds: .max)
        #expect(policy.delay(after: .closed(wasUseful: true), using: &random) == 60)
    }
}

@Suite struct HintTests {
    let id = ItemID.named("a")
    /// An item that the backend is at work on, among others that are, all just looked at.
    func watching(isLive: Bool, others: Int = 0) -> WorkQueue {
        var queue = WorkQueue(bounds: IngestBounds())
        let ids = [id] + (0..<others).map { ItemID.named("other-\($0)") }
        queue.refresh(ids.map { WorkQueue.Item(id: $0, state: .processing) }, now: 0)
        queue.heard(EventFeed.News(isLive: isLive), now: 0)
        for _ in ids {
            for due in queue.takeDue(now: 0) {
                queue.advanced(due, .watched(1), item: WorkQueue.Item(id: due, state: .processing), now: 0)
            }
        }
        return queue
    }

    @Test func withoutEventsTheBackendIsAskedAndWithThemSeldom() {
        var polling = watching(isLive: false)
        #expect(polling.takeDue(now: 0.9) == [] && polling.takeDue(now: 1) == [id])
        var one = watching(isLive: true)
        #expect(one.takeDue(now: 1.9) == [] && one.takeDue(now: 2) == [id])
        var many = watching(isLive: true, others: 40)
        #expect(many.takeDue(now: 14.9) == [] && many.takeDue(now: 15).contains(id))
    }

    @Test func anEventMakesItLookedAtOnceHoweverOftenItComes() {
        var queue = watching(isLive: true)
        for _ in 0..<3 { queue.heard(EventFeed.News(items: [id], isLive: true), now: 1) }
        #expect(queue.takeDue(now: 1) == [id])
        #expect(queue.takeDue(now: 1) == [])
        queue.advanced(id, .watched(1), item: WorkQueue.Item(id: id, state: .processing), now: 1)
        #expect(queue.takeDue(now: 2.9) == [])
    }

    @Test func anEventThatComesWhileTheItemIsLookedAtIsNotLost() {
        var queue = watching(isLive: true)
        #expect(queue.takeDue(now: 15) == [id])
        queue.heard(EventFeed.News(items: [id], isLive: true), now: 15)
        queue.advanced(id, .watched(1), item: WorkQueue.Item(id: id, state: .processing), now: 16)
        #expect(queue.takeDue(now: 16.1) == [] && queue.takeDue(now: 16.2) == [id])
    }

    @Test(arguments: [(isLive: true, isTold: false), (true, true), (false, false)])
    func whatWasJustHandedOverIsLookedAtWhenTheBackendTells(isLive: Bool, isTold: Bool) {
        var queue = WorkQueue(bounds: IngestBounds())
        queue.refresh([WorkQueue.Item(id: id, state: .uploading)], now: 0)
        #expect(queue.takeDue(now: 0) == [id])
        queue.heard(EventFeed.News(items: isTold ? [id] : [], isLive: isLive), now: 1)
        queue.advanced(id, .watched(0), item: WorkQueue.Item(id: id, state: .processing), now: 2)
        let due = isTold ? 2.2 : isLive ? 4 : 2
        #expect(queue.takeDue(now: due - 0.1) == [] && queue.takeDue(now: due) == [id])
    }

    @Test func whatIsDoneAlreadyWhenItIsHandedOverIsLookedAtAtOnce() {
        var queue = WorkQueue(bounds: IngestBounds())
        queue.heard(EventFeed.News(isLive: true), now: 0)
        queue.refresh([WorkQueue.Item(id: id, state: .uploading)], now: 0)
        #expect(queue.takeDue(now: 0) == [id])
        queue.advanced(id, .moved, item: WorkQueue.Item(id: id, state: .processing), now: 1)
        #expect(queue.takeDue(now: 1) == [id])
    }

    @Test func eventsOfOthersAndOfItemsInOtherStatesChangeNothing() {
        var queue = watching(isLive: true)
        queue.heard(EventFeed.News(items: [ItemID.named("b")], isLive: true), now: 1)
        #expect(queue.takeDue(now: 1) == [])
        var uploading = WorkQueue(bounds: IngestBounds())
        uploading.refresh([WorkQueue.Item(id: id, state: .uploading)], now: 0)
        _ = uploading.takeDue(now: 0)
        uploading.advanced(id, .later(10), item: WorkQueue.Item(id: id, state: .uploading), now: 0)
        uploading.heard(EventFeed.News(items: [id], everything: true, isLive: true), now: 2)
        #expect(uploading.takeDue(now: 9) == [])
    }

    @Test func aResetLooksAtEverythingAndAStreamThatBreaksOffMeansPolling() {
        var reset = watching(isLive: true)
        reset.heard(EventFeed.News(everything: true, isLive: true), now: 1)
        #expect(reset.takeDue(now: 1) == [id])
        var broken = watching(isLive: true, others: 40)
        broken.heard(EventFeed.News(), now: 2)
        #expect(broken.takeDue(now: 6.9) == [] && broken.takeDue(now: 7).contains(id))
    }
}
