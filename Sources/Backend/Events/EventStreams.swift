import HTTPServer
import Synchronization
import Vocabulary

/// The streams that are open. Each reads the log for itself, from its own place, and is told when there may be something new.
final class EventStreams: Sendable {
    struct Settings: Sendable {
        /// Streams of all owners; more are asked to come back later.
        var streamsMax = 256
        var streamsPerOwnerMax = 128
        /// Seconds.
        var heartbeat = ItemEvent.heartbeatInterval
        /// Seconds between two reads of the log for one stream, however often it is told.
        var readInterval = 0.05
        /// Events that are read and sent at once; with the longest reasons some 64 KiB.
        var pageMax = 100
        /// Heartbeats after which a stream ends, so that nothing that was forgotten goes on for ever: an hour.
        var heartbeatsMax = 240
        /// Milliseconds.
        var retry = 2000
    }

    private struct Listener {
        var owner: Owner
        var ring: AsyncStream<Void>.Continuation
    }
    private struct State {
        var listeners: [Int: Listener] = [:]
        var nextID = 0
        var beats = 0
        var isStopped = false
    }
    private let state = Mutex(State())
    private let ledger: any Ledger
    private let settings: Settings
    private let log: @Sendable (String) -> Void

    init(ledger: any Ledger, settings: Settings = Settings(), log: @escaping @Sendable (String) -> Void) {
        self.ledger = ledger
        self.settings = settings
        self.log = log
    }

    var count: Int { state.withLock { $0.listeners.count } }

    /// Something may have happened to an item of this owner; nil where it is not known whose. Costs nothing where nobody listens.
    func ring(_ owner: Owner?) {
        state.withLock { state in
            for listener in state.listeners.values where owner == nil || listener.owner == owner {
                listener.ring.yield()
            }
        }
    }

    /// Beats until the surrounding Swift task is cancelled.
    func keepBeating() async {
        while true {
            do { try await Task.sleep(for: .seconds(settings.heartbeat)) } catch { return }
            state.withLock { $0.beats += 1 }
            ring(nil)
        }
    }

    func stop() {
        let listeners = state.withLock { state in
            state.isStopped = true
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.ring.finish() }
    }

    // MARK: One stream

    /// - Parameters:
    ///   - last: what the client saw last, in its own words.
    ///   - isAdmitted: asked before each look at the log.
    /// - Throws: `busy` when too many are open.
    func open(
        owner: Owner, shoot: String?, last: String?,
        isAdmitted: @escaping @Sendable () async throws(Failure) -> Bool
    ) async throws(Failure) -> HTTPResponse {
        let cursor = EventCursor(last: last, log: try await ledger.eventSpan(owner: owner))
        let (rings, ring) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        guard let id = add(Listener(owner: owner, ring: ring)) else {
            throw Failure(.busy, "Too many event streams are open: ask for the items, and try again later.")
        }
        let body = BodyStream()
        // The writer waits for one of the two, the client or the next ring, and both end with the stream.
        body.whenEnded { ring.finish() }
        Task {
            await send(cursor, owner: owner, shoot: shoot, over: body, rings, isAdmitted)
            self.remove(id)
            body.end()
        }
        return HTTPResponse(
            status: 200,
            headers: [
                ("Content-Type", "text/event-stream"), ("Cache-Control", "no-store"),
                // A proxy that collects answers would keep the events to itself.
                ("X-Accel-Buffering", "no"),
            ], body: .stream(body))
    }

    private func add(_ listener: Listener) -> Int? {
        state.withLock { state in
            let mine = state.listeners.values.count { $0.owner == listener.owner }
            guard !state.isStopped, state.listeners.count < settings.streamsMax, mine < settings.streamsPerOwnerMax
            else { return nil }
            state.nextID += 1
            state.listeners[state.nextID] = listener
            return state.nextID
        }
    }
    private func remove(_ id: Int) { state.withLock { $0.listeners[id] = nil } }

    private func send(
        _ start: EventCursor, owner: Owner, shoot: String?, over body: BodyStream, _ rings: AsyncStream<Void>,
        _ isAdmitted: @Sendable () async throws(Failure) -> Bool
    ) async {
        var cursor = start
        var rings = rings.makeAsyncIterator()
        let firstBeat = state.withLock { $0.beats }
        var beat = firstBeat
        var text = EventText.beginning(retryMilliseconds: settings.retry, position: cursor.position)
        do throws(Failure) {
            repeat {
                var isBehind = true
                while isBehind {
                    if cursor.needsReset {
                        text += EventText.reset(position: cursor.position)
                        cursor.resetWasSent()
                    }
                    let events = try await ledger.events(
                        owner: owner, after: cursor.position, limit: settings.pageMax)
                    for event in cursor.take(events, shoot: shoot) { text += try EventText.item(event) }
                    guard await body.write(Array(text.utf8)) else { return }
                    text = ""
                    isBehind = events.count == settings.pageMax || cursor.needsReset
                }
                try? await Task.sleep(for: .seconds(settings.readInterval))
                guard await rings.next() != nil, try await isAdmitted() else { return }
                let now = state.withLock { $0.beats }
                if now != beat { text = EventText.heartbeat(position: cursor.position) }
                beat = now
            } while beat - firstBeat < settings.heartbeatsMax
        } catch { log("events: \(error)") }
    }
}
