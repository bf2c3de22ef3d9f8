import Curl
import Foundation
import Synchronization
import Vocabulary

/// Listens to the backend's events, and keeps listening. What it hears are hints to look at an item; without them the box looks by itself, more
/// often, so nothing that goes wrong here is anybody's failure.
///
/// The place in the stream lives as long as the run. It would be of no use to the next one, which looks at every item that the backend is at
/// work on once in any case.
final class EventFeed: Sendable {
    /// What was heard since the last time that somebody asked.
    struct News: Sendable, Equatable {
        var items: Set<ItemID> = []
        /// Something was missed: look at everything.
        var everything = false
        /// Events come at once, as far as one can know.
        var isLive = false
    }

    private struct State {
        var news = News()
        var isWanted = false
    }
    private let state = Mutex(State())
    private let client: BackendClient
    private let clock: BoxClock
    private let random: BoxRandom

    /// Items that are remembered between two looks; more mean everything.
    private static let itemsMax = 10_000
    /// Seconds between two looks whether anybody waits for the backend.
    private static let idle = 0.25

    init(client: BackendClient, clock: BoxClock, random: BoxRandom) {
        self.client = client
        self.clock = clock
        self.random = random
    }

    /// - Parameter isWanted: whether the backend is, or soon will be, at work on something. No stream is opened before.
    func take(isWanted: Bool) -> News {
        state.withLock { state in
            state.isWanted = isWanted
            defer { state.news = News(isLive: state.news.isLive) }
            return state.news
        }
    }

    /// Until the surrounding Swift task is cancelled.
    func run() async {
        var policy = EventStreamPolicy()
        var random = random
        var lastID: String?
        while !Task.isCancelled {
            guard state.withLock({ $0.isWanted }) else {
                await clock.sleep(Self.idle)
                continue
            }
            let reading = EventReading(lastID: lastID, policy: policy) { [self] in heard($0) }
            let start = clock.seconds
            var ending: EventStreamPolicy.Ending
            do throws(Failure) {
                let response = try await client.events(after: lastID) { reading.take($0, $1) }
                ending =
                    response.status == 200
                    ? .closed(wasUseful: false)
                    : .refused(status: response.status, retryAfter: AnswerPolicy.retryAfter(response))
            } catch { ending = .closed(wasUseful: false) }
            state.withLock { $0.news.isLive = false }
            let end = reading.end
            lastID = end.lastID
            if let retry = end.retry { policy.asked(milliseconds: retry) }
            if end.isNonsense {
                ending = .nonsense
            } else if ending == .closed(wasUseful: false) {
                let lasted = clock.seconds - start >= policy.lastedMin
                ending = .closed(wasUseful: end.wasUseful || end.wasProper && lasted)
            }
            await clock.sleep(policy.delay(after: ending, using: &random))
        }
    }

    private func heard(_ word: EventReading.Word) {
        state.withLock { state in
            switch word {
            case .began: state.news.isLive = true
            case .item(let id):
                if state.news.items.count < Self.itemsMax {
                    state.news.items.insert(id)
                } else {
                    state.news.everything = true
                }
            case .reset: state.news.everything = true
            }
        }
    }
}

/// What comes in over one stream. Called from the connection's thread.
final class EventReading: Sendable {
    enum Word: Sendable, Equatable {
        /// An event stream it is.
        case began
        /// Something about it may have changed.
        case item(ItemID)
        case reset
    }
    struct End: Sendable, Equatable {
        var lastID: String?
        var wasProper = false
        var wasUseful = false
        var isNonsense = false
        /// Milliseconds that the server wants to be left alone before the next stream.
        var retry: Int?
    }
    private struct State {
        var parser: EventStreamParser
        var end = End()
        var bytes = 0
        var nonsense = 0
    }
    private let state: Mutex<State>
    private let policy: EventStreamPolicy
    private let tell: @Sendable (Word) -> Void

    init(lastID: String?, policy: EventStreamPolicy, tell: @escaping @Sendable (Word) -> Void) {
        state = Mutex(State(parser: EventStreamParser(lastID: lastID)))
        self.policy = policy
        self.tell = tell
    }

    var end: End {
        state.withLock { state in
            var end = state.end
            end.lastID = state.parser.lastID
            end.retry = state.parser.retry
            return end
        }
    }

    /// - Returns: false when the stream is to be closed.
    func take(_ head: HTTPResponse, _ bytes: [UInt8]) -> Bool {
        let (words, goesOn) = state.withLock { state -> ([Word], Bool) in
            guard Self.isEventStream(head) else {
                state.end.isNonsense = true
                return ([], false)
            }
            var words: [Word] = state.end.wasProper ? [] : [.began]
            state.end.wasProper = true
            state.bytes += bytes.count
            do throws(Failure) {
                for event in try state.parser.take(bytes) {
                    switch event.name {
                    case ItemEvent.name:
                        guard let item = try? JSON.decode(ItemEvent.self, from: Data(event.data.utf8)) else {
                            state.nonsense += 1
                            continue
                        }
                        state.end.wasUseful = true
                        // That processing goes on is no news to who waits for its end.
                        if item.state != .processing { words.append(.item(item.itemID)) }
                    case ItemEvent.resetName:
                        state.end.wasUseful = true
                        words.append(.reset)
                    // Of a newer backend.
                    default: break
                    }
                }
            } catch { state.end.isNonsense = true }
            if state.nonsense > policy.nonsenseMax { state.end.isNonsense = true }
            return (words, !state.end.isNonsense && state.bytes <= policy.bytesMax)
        }
        for word in words { tell(word) }
        return goesOn
    }

    private static func isEventStream(_ head: HTTPResponse) -> Bool {
        head.headers["Content-Type"]?.lowercased().hasPrefix("text/event-stream") ?? false
    }
}
