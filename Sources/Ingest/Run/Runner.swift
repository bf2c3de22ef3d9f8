import Files
import Vocabulary

/// Works all unfinished items of a home, each stage with its own bound, until there is nothing left to do. The order is the
/// one of the settings; an item that fails or waits holds up no other.
struct Runner: Sendable {
    let pipeline: ItemPipeline
    let bounds: IngestBounds
    let order: QueueOrder
    let clock: BoxClock
    let feed: EventFeed

    /// Seconds that the loop sleeps at most while something may become due, and between two looks at what other processes have enrolled and
    /// what people want.
    static let tickMax = 0.25

    private enum Wake: Sendable {
        case tick
        case advanced(ItemID, ItemPipeline.Outcome)
    }

    /// - Parameter isDone: asked whenever something has changed.
    func run(until isDone: @escaping @Sendable (WorkQueue) -> Bool) async throws(Failure) {
        try await recover()
        var queue = WorkQueue(bounds: bounds, order: order)
        queue.refresh(try pipeline.catalog.open(), now: clock.seconds)
        var version = try await pipeline.catalog.version()
        // Each item's work is a task of its own, which its pause or cancellation ends.
        var works: [ItemID: Task<ItemPipeline.Outcome, Never>] = [:]
        var failure: Failure?
        await withTaskGroup(of: Wake.self) { group in
            var isTicking = false
            while true {
                if failure == nil { failure = await pipeline.weather.verdict }
                if failure == nil, Task.isCancelled { failure = Failure(.cancelled, "Stopped.") }
                if failure != nil { break }
                if isDone(queue) { break }
                let news = feed.take(isWanted: queue.awaitsBackend)
                if !news.items.isEmpty {
                    for item in queue.unfinished where news.items.contains(item.id) {
                        pipeline.catalog.notes.note(item.id, HistoryEntry(.event))
                    }
                }
                queue.heard(news, now: clock.seconds)
                for id in queue.takeDue(now: clock.seconds) {
                    let polls = queue.pollCount(id)
                    let work = Task { await pipeline.advance(id, pollCount: polls) }
                    works[id] = work
                    group.addTask {
                        let outcome = await withTaskCancellationHandler {
                            await work.value
                        } onCancel: {
                            work.cancel()
                        }
                        return .advanced(id, outcome)
                    }
                }
                if let stuck = queue.stuckFailure {
                    try? await pipeline.catalog.waiting(stuck.message)
                    failure = stuck
                    break
                }
                if !isTicking {
                    isTicking = true
                    let clock = clock
                    group.addTask {
                        await clock.sleep(Self.tickMax)
                        return .tick
                    }
                }
                do throws(Failure) {
                    switch await group.next() {
                    case .tick?:
                        isTicking = false
                        let present = try await pipeline.catalog.version()
                        if present != version {
                            version = present
                            queue.refresh(try pipeline.catalog.open(), now: clock.seconds)
                            for id in queue.unwanted { works[id]?.cancel() }
                        }
                    case .advanced(let id, let outcome)?:
                        works[id] = nil
                        let item = try pipeline.catalog.item(id)
                        queue.advanced(
                            id, outcome, item: item.flatMap { $0.isOver ? nil : WorkQueue.Item($0) }, now: clock.seconds
                        )
                    case nil: break
                    }
                } catch { failure = error }
            }
            group.cancelAll()
        }
        if let failure { throw failure }
    }

    // MARK: Recovery

    /// Makes good of what a killed process left: half-written files go, whole ones stay, moves and releases are finished.
    private func recover() async throws(Failure) {
        let catalog = pipeline.catalog
        let staging = pipeline.staging
        try await catalog.waiting(nil)
        let names = try await FileWork.run { _ throws(Failure) in try Files.names(in: staging.root) }
        for name in names {
            // A folder whose item the catalog does not know is left alone: `check` tells of it.
            guard let id = ItemID(rawValue: name), let item = try catalog.item(id) else { continue }
            do throws(Failure) { try await makeGood(item) } catch {
                // Only where nothing at all can be written down. What else there is of this item shows when its turn comes, or waits for the next
                // start: the others go on.
                switch error.code {
                case .cancelled, .databaseError: throw error
                default: continue
                }
            }
        }
        try await pipeline.finishMoves()
    }

    private func makeGood(_ item: ItemRow) async throws(Failure) {
        let (catalog, staging) = (pipeline.catalog, pipeline.staging)
        let hasUploads = try !catalog.uploads(of: item.id).isEmpty
        try await FileWork.run { _ throws(Failure) in
            try staging.removeUnfinished(of: item.id, keepsDerived: hasUploads)
        }
        if item.isOver { try await pipeline.release(item.id) }
    }
}
