import Vocabulary

/// The upload of one file, as events and actions. Knows the order of things, no network and no clock.
///
/// The store is the authority on which parts it holds, the backend on whether a session lives. What belongs to an older generation comes late
/// and is ignored.
struct UploadStateMachine: Sendable, Equatable {
    /// What the catalog knows when the upload is taken up.
    enum Known: Sendable, Equatable {
        /// No session was ever opened.
        case nothing
        /// A session is open as far as the box knows, and these parts were acknowledged in it.
        case session(generation: Int, acknowledged: Set<Int>)
        /// What was sent in this generation is of no use any more.
        case useless(generation: Int)
    }

    enum Event: Sendable, Equatable {
        case begun(Known)
        /// The answer to an open or a reopen.
        case session(UploadSession)
        case listed(StoredParts)
        case signed(generation: Int, [Int: String])
        case stored(Int, generation: Int)
        /// The part's URL is not valid any more.
        case urlRefused(Int, generation: Int)
        /// The part arrived damaged.
        case partRefused(Int, generation: Int)
        /// The store or the backend does not know the session any more.
        case sessionLost(generation: Int)
        /// Somebody else has reopened the upload.
        case generationStale
        case completed
        /// The backend does not have all of the parts.
        case incomplete(generation: Int)
        /// What arrived as a whole is not what was declared.
        case wholeRefused(generation: Int)
        /// - Parameter generation: nil where the failure is not of one session's.
        case failed(Failure, generation: Int?)
    }

    enum Action: Sendable, Equatable {
        /// With the first parts to be signed.
        case open([Int])
        case reopen(generation: Int)
        case list
        case sign([Int], generation: Int)
        case send(Int, url: String, generation: Int)
        case complete(generation: Int)
        /// The backend has the file.
        case finish(generation: Int)
        case giveUp(Failure)
    }

    private enum State: Sendable, Equatable {
        case idle
        case opening
        case reopening
        /// `isSuspicious`: the backend misses parts that were acknowledged to us.
        case listing(generation: Int, acknowledged: Set<Int>, isSuspicious: Bool)
        case sending(Sending)
        case completing(generation: Int, done: Set<Int>)
        case ended
    }

    /// A session with its parts: every part is in exactly one of the five places.
    private struct Sending: Sendable, Equatable {
        let generation: Int
        var waiting: [Int]
        var asked: Set<Int> = []
        var urls: [Int: String] = [:]
        var inFlight: Set<Int> = []
        var done: Set<Int>
    }

    /// Parts of one file on their way at once.
    static let inFlightMax = 3
    /// URLs asked for at a time, and kept ahead of what is sent.
    static let signedAheadMax = 4
    /// How often one run starts over because a session is gone.
    static let reopenMax = 4
    /// How often one part may be refused before something else is wrong than the network.
    static let refusalMax = 6

    private(set) var grid: PartGrid
    private var state = State.idle
    private var reopened = 0
    private var refusals: [Int: Int] = [:]

    init(grid: PartGrid) { self.grid = grid }

    var isEnded: Bool { state == .ended }

    mutating func handle(_ event: Event) -> [Action] {
        switch event {
        case .begun(let known): return begin(known)
        case .session(let session): return opened(session)
        case .listed(let listing): return listed(listing)
        case .signed(let generation, let urls): return signed(urls, generation)
        case .stored(let part, let generation): return stored(part, generation)
        case .urlRefused(let part, let generation): return refused(part, generation, "its address was refused")
        case .partRefused(let part, let generation): return refused(part, generation, "it arrived damaged")
        case .sessionLost(let generation): return lost(generation)
        case .generationStale: return askForTheGeneration()
        case .completed: return completed()
        case .incomplete(let generation): return incomplete(generation)
        case .wholeRefused(let generation):
            guard generation == self.generation else { return [] }
            return reopen(generation)
        case .failed(let failure, let generation):
            guard generation == nil || generation == self.generation else { return [] }
            return giveUp(failure)
        }
    }

    // MARK: Beginning

    private mutating func begin(_ known: Known) -> [Action] {
        guard state == .idle else { preconditionFailure("an upload begins once") }
        switch known {
        case .nothing:
            state = .opening
            return [.open(Array(grid.parts.prefix(PartLimits.firstURLsMax).map(\.number)))]
        case .session(let generation, let acknowledged):
            state = .listing(generation: generation, acknowledged: acknowledged, isSuspicious: false)
            return [.list]
        case .useless(let generation): return reopen(generation)
        }
    }

    private mutating func opened(_ session: UploadSession) -> [Action] {
        guard state == .opening || state == .reopening else { return [] }
        if session.alreadyStored || session.state == .complete { return finish(session.generation) }
        guard session.state == .open else { return reopen(session.generation) }
        var urls = Dictionary(
            uniqueKeysWithValues: session.urls.compactMap { key, url in Int(key).map { ($0, url) } })
        if session.partSize != grid.partSize {
            // The backend has clamped the size: the URLs were signed for other lengths.
            guard let other = try? PartGrid(size: grid.size, partSize: session.partSize) else {
                return giveUp(Failure(.tooLarge, "The backend does not take a file of this size."))
            }
            grid = other
            urls = [:]
        }
        return start(session.generation, done: [], urls: urls)
    }

    private mutating func start(_ generation: Int, done: Set<Int>, urls: [Int: String] = [:]) -> [Action] {
        let missing = grid.parts.map(\.number).filter { !done.contains($0) }
        let usable = urls.filter { missing.contains($0.key) }
        state = .sending(
            Sending(
                generation: generation, waiting: missing.filter { usable[$0] == nil }, urls: usable, done: done))
        return proceed()
    }

    // MARK: What the store says

    private mutating func listed(_ listing: StoredParts) -> [Action] {
        guard case .listing(let generation, let acknowledged, let isSuspicious) = state else { return [] }
        switch listing.state {
        case .complete: return finish(listing.generation)
        case .expired, .aborted: return reopen(listing.generation)
        case .open: break
        }
        let whole = listing.parts.filter {
            (1...grid.count).contains($0.partNumber) && $0.size == grid.part($0.partNumber).length
        }
        var held = Set(whole.map(\.partNumber))
        if listing.generation == generation {
            // An acknowledged part is never sent again in its generation. A store that has lost one has lost the session.
            if isSuspicious, !acknowledged.isSubset(of: held) { return reopen(generation) }
            held.formUnion(acknowledged)
        }
        return start(listing.generation, done: held)
    }

    private mutating func signed(_ urls: [Int: String], _ generation: Int) -> [Action] {
        guard case .sending(var sending) = state, sending.generation == generation else { return [] }
        for (part, url) in urls where sending.asked.remove(part) != nil { sending.urls[part] = url }
        // A part that was asked for and not answered is asked for again.
        sending.waiting = (sending.waiting + sending.asked).sorted()
        sending.asked = []
        state = .sending(sending)
        return proceed()
    }

    private mutating func stored(_ part: Int, _ generation: Int) -> [Action] {
        guard case .sending(var sending) = state, sending.generation == generation,
            sending.inFlight.remove(part) != nil
        else { return [] }
        sending.done.insert(part)
        state = .sending(sending)
        return proceed()
    }

    private mutating func refused(_ part: Int, _ generation: Int, _ words: String) -> [Action] {
        guard case .sending(var sending) = state, sending.generation == generation,
            sending.inFlight.remove(part) != nil
        else { return [] }
        refusals[part, default: 0] += 1
        guard refusals[part, default: 0] <= Self.refusalMax else {
            return giveUp(
                Failure(
                    .backendError, "The backend refuses a part of this file again and again.",
                    detail: "part \(part): \(words)"))
        }
        sending.waiting = ([part] + sending.waiting).sorted()
        state = .sending(sending)
        return proceed()
    }

    // MARK: Going on

    /// Sends and signs as far as the bounds allow; seals when nothing is left.
    private mutating func proceed() -> [Action] {
        guard case .sending(var sending) = state else { return [] }
        if sending.done.count == grid.count {
            state = .completing(generation: sending.generation, done: sending.done)
            return [.complete(generation: sending.generation)]
        }
        var actions: [Action] = []
        for part in sending.urls.keys.sorted() where sending.inFlight.count < Self.inFlightMax {
            guard let url = sending.urls.removeValue(forKey: part) else { continue }
            sending.inFlight.insert(part)
            actions.append(.send(part, url: url, generation: sending.generation))
        }
        if sending.asked.isEmpty, sending.urls.count < Self.signedAheadMax / 2, !sending.waiting.isEmpty {
            let next = Array(sending.waiting.prefix(Self.signedAheadMax))
            sending.waiting.removeFirst(next.count)
            sending.asked.formUnion(next)
            actions.append(.sign(next, generation: sending.generation))
        }
        state = .sending(sending)
        return actions
    }

    private mutating func completed() -> [Action] {
        guard case .completing(let generation, _) = state else { return [] }
        return finish(generation)
    }

    private mutating func incomplete(_ generation: Int) -> [Action] {
        guard case .completing(generation, let done) = state else { return [] }
        state = .listing(generation: generation, acknowledged: done, isSuspicious: true)
        return [.list]
    }

    // MARK: Starting over, and the end

    private mutating func lost(_ generation: Int) -> [Action] {
        guard generation == self.generation else { return [] }
        return reopen(generation)
    }

    private mutating func reopen(_ generation: Int) -> [Action] {
        reopened += 1
        guard reopened <= Self.reopenMax else {
            return giveUp(
                Failure(
                    .backendError, "The backend loses this upload again and again.", detail: "generation \(generation)")
            )
        }
        state = .reopening
        return [.reopen(generation: generation)]
    }

    private mutating func askForTheGeneration() -> [Action] {
        switch state {
        case .idle, .ended, .listing, .opening: return []
        case .sending, .completing, .reopening:
            reopened += 1
            guard reopened <= Self.reopenMax else {
                return giveUp(Failure(.conflict, "Another program uploads the same file."))
            }
            // Parts acknowledged in the old generation say nothing about the new one.
            state = .listing(generation: generation ?? 0, acknowledged: acknowledged, isSuspicious: false)
            return [.list]
        }
    }

    private mutating func finish(_ generation: Int) -> [Action] {
        state = .ended
        return [.finish(generation: generation)]
    }

    private mutating func giveUp(_ failure: Failure) -> [Action] {
        guard state != .ended else { return [] }
        state = .ended
        return [.giveUp(failure)]
    }

    private var generation: Int? {
        switch state {
        case .sending(let sending): sending.generation
        case .completing(let generation, _), .listing(let generation, _, _): generation
        case .idle, .opening, .reopening, .ended: nil
        }
    }
    private var acknowledged: Set<Int> {
        switch state {
        case .sending(let sending): sending.done
        case .completing(_, let done): done
        case .listing(_, let acknowledged, _): acknowledged
        case .idle, .opening, .reopening, .ended: []
        }
    }
}
