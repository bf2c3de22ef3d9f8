import Testing
import Vocabulary

@testable import Ingest

@Suite struct QueueOrderTests {
    func item(_ name: String, bytes: Int, modified: Int64, isAsked: Bool = true) -> WorkQueue.Item {
        WorkQueue.Item(
            id: ItemID.named(name), state: .picked, bytes: bytes, modified: modified, isAsked: isAsked)
    }

    @Test(arguments: [
        (QueueOrder.chosen, "b c e a d"), (.smallest, "c b e d a"), (.newest, "b e c a d"),
    ]) func whatAPersonHasAskedForGoesFirstAndThenTheOrderCounts(order: QueueOrder, expected: String) {
        let items = [
            item("a", bytes: 9, modified: 5, isAsked: false), item("b", bytes: 3, modified: 9),
            item("c", bytes: 1, modified: 2), item("d", bytes: 2, modified: 5, isAsked: false),
            item("e", bytes: 3, modified: 9),
        ]
        let sorted = order.sorted(items).map(\.id)
        #expect(sorted == expected.split(separator: " ").map { ItemID.named(String($0)) })
    }

    @Test func theQueueHandsItemsOutInItsOrderAndWhatIsSmallHasLanesOfItsOwn() {
        var bounds = IngestBounds()
        (bounds.uploadingMax, bounds.uploadingSmallMax) = (1, 2)
        var queue = WorkQueue(bounds: bounds, order: .smallest)
        let sizes = [9 << 20, 10 << 20, 3, 2, 8 << 20]
        let ids = (0..<5).map { ItemID.named("i\($0)") }
        queue.refresh(zip(ids, sizes).map { WorkQueue.Item(id: $0, state: .uploading, bytes: $1) }, now: 0)
        #expect(queue.takeDue(now: 0) == [ids[3], ids[2], ids[0]])
        queue.advanced(ids[3], .finished, item: nil, now: 0)
        #expect(queue.takeDue(now: 0) == [ids[4]])
        // What is asked for later goes before what waits.
        let late = WorkQueue.Item(id: ItemID.named("late"), state: .uploading, bytes: 20 << 20, isAsked: true)
        queue.refresh(
            zip(ids, sizes).filter { $0.0 != ids[3] }.map { WorkQueue.Item(id: $0, state: .uploading, bytes: $1) }
                + [late], now: 1)
        queue.advanced(ids[0], .finished, item: nil, now: 1)
        #expect(queue.takeDue(now: 1) == [late.id])
    }

    // MARK: Parts

    typealias Turns = PartTurns<String>

    @Test(arguments: [
        (true, 8 << 20, Turns.Rank.askedSmall), (true, (8 << 20) + 1, .asked), (false, 0, .small),
        (false, 9 << 20, .other),
    ]) func aPartsRankIsThatOfItsItem(isAsked: Bool, bytes: Int, rank: Turns.Rank) {
        #expect(Turns.Rank(isAsked: isAsked, bytes: bytes) == rank)
    }

    @Test func partsGoByRankAndThenInTheOrderInWhichTheyCame() {
        var turns = Turns(inFlightMax: 2)
        turns.wait("film 1", .asked)
        turns.wait("film 2", .asked)
        #expect(turns.next() == "film 1" && turns.next() == "film 2" && turns.next() == nil)
        turns.wait("inbox", .other)
        turns.wait("film 3", .asked)
        turns.wait("photo 1", .askedSmall)
        turns.wait("photo 2", .askedSmall)
        turns.ended(.asked)
        // One film is still on its way: the photos overtake the others.
        #expect(turns.leave("inbox") && !turns.leave("inbox"))
        #expect(turns.next() == "photo 1" && turns.next() == nil)
        turns.ended(.askedSmall)
        #expect(turns.next() == "photo 2")
        turns.ended(.askedSmall)
        turns.ended(.asked)
        #expect(turns.next() == "film 3" && turns.next() == nil && turns.inFlight[.asked] == 1)
    }

    @Test func aFilmComesToItsEndWhilePhotosKeepComing() {
        var turns = Turns(inFlightMax: 3)
        for number in 1...6 { turns.wait("photo \(number)", .askedSmall) }
        turns.wait("film", .other)
        #expect(turns.next() == "photo 1" && turns.next() == "photo 2" && turns.next() == "film")
        turns.ended(.askedSmall)
        #expect(turns.next() == "photo 3" && turns.next() == nil)
    }

    @Test func aGateLetsNoMoreThroughThanItsBoundAndForgetsWhoGivesUp() async throws {
        let gate = PartGate(inFlightMax: 2)
        let entered = Line()
        let goOn = [Line(), Line()]
        let sending = goOn.map { goOn in
            Task {
                try await gate.pass(.other) { () throws(Failure) in
                    entered.put(1)
                    _ = await goOn.take()
                }
            }
        }
        for _ in 0..<2 { #expect(await entered.take() == 1) }
        let third = Task { try await gate.pass(.askedSmall) { () throws(Failure) in entered.put(3) } }
        let fourth = Task { try await gate.pass(.askedSmall) { () throws(Failure) in entered.put(4) } }
        third.cancel()
        let ended = await third.result
        #expect(throws: Failure(.cancelled, "Stopped.")) { try ended.get() }
        goOn[0].put(0)
        #expect(await entered.take() == 4)
        goOn[1].put(0)
        for task in sending { try await task.value }
        try await fourth.value
    }
}

/// Numbers from one task to another.
private struct Line: Sendable {
    private let stream: AsyncStream<Int>
    private let continuation: AsyncStream<Int>.Continuation
    init() { (stream, continuation) = AsyncStream.makeStream() }
    func put(_ number: Int) { continuation.yield(number) }
    func take() async -> Int? { await stream.first { _ in true } }
}
