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
        /// The backend had never heard of it when it was asked last.
        case unheardOf
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
        /// - Parameter part: that was on its way.
        case sessionLost(generation: Int, part: Int? = nil)
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
        case listing(isSuspicious: Bool)
        case sending(Sending)
        case completing
        case ended
    }

    /// Parts that are neither in flight nor done: each is in exactly one of the three places.
    private struct Sending: Sendable, Equatable {
        var waiting: [Int]
        var asked: Set<Int> = []
        var urls: [Int: String] = [:]
    }

    /// Parts of one file on their way at once.
    static let inFlightMax = 3
    /// URLs asked for at a time, and kept ahead of what is sent.
    static let signedAheadMax = 4
    /// How often one run finds its session gone, or the backend of another opinion about it.
    static let setbackMax = 4
    /// How often one part may be refused before something else is wrong than the network.
    static let refusalMax = 6

    private(set) var grid: PartGrid
    private var state = State.idle
    /// The session's.
    private var generation = 0
    /// Parts of this generation that the store is believed to hold.
    private var done: Set<Int> = []
    /// Parts of this generation on their way. What becomes of them counts, whatever is asked meanwhile: one that arrives is not sent again.
    private var inFlight: Set<Int> = []
    /// The session may be an old one all the same: what it holds is asked for before anything is sent.
    private var isUnheardOf = false
    private var setbacks = 0
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
        case .sessionLost(let generation, let part): return lost(generation, part)
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
        case .unheardOf:
            (state, isUnheardOf) = (.opening, true)
            return [.open([])]
        case .session(let generation, let acknowledged):
            enter(generation)
            done = acknowledged
            return list()
        case .useless(let generation):
            enter(generation)
            return reopen(generation)
        }
    }

    /// What is known of parts belongs to one generation.
    private mutating func enter(_ generation: Int) {
        guard generation != self.generation else { return }
        self.generation = generation
        (done, inFlight) = ([], [])
    }

    private mutating func opened(_ session: UploadSession) -> [Action] {
        guard state == .opening || state == .reopening else { return [] }
        if session.alreadyStored || session.state == .complete { return finish(session.generation) }
        guard session.state == .open else { return reopen(session.generation) }
        // The backend has looked: the session that we thought gone is alive, with the parts that it has.
        if state == .reopening, session.generation == generation { return list() }
        var urls = Self.numbered(session.urls)
        if session.partSize != grid.partSize {
            // The backend has clamped the size: the URLs were signed for other lengths.
            guard let other = try? PartGrid(size: grid.size, partSize: session.partSize) else {
                return giveUp(Failure(.tooLarge, "The backend does not take a file of this size."))
            }
            grid = other
            urls = [:]
        }
        enter(session.generation)
        guard isUnheardOf else { return start(urls: urls) }
        isUnheardOf = false
        return list()
    }

    /// By part. Who names one twice has signed either.
    static func numbered(_ urls: [String: String]) -> [Int: String] {
        Dictionary(
            urls.compactMap { key, url in Int(key).map { ($0, url) } }, uniquingKeysWith: { first, _ in first })
    }

    private mutating func start(urls: [Int: String] = [:]) -> [Action] {
        let missing = grid.parts.map(\.number).filter { !done.contains($0) && !inFlight.contains($0) }
        let usable = urls.filter { missing.contains($0.key) }
        state = .sending(Sending(waiting: missing.filter { usable[$0] == nil }, urls: usable))
        return proceed()
    }

    // MARK: What the store says

    private mutating func list(isSuspicious: Bool = false) -> [Action] {
        state = .listing(isSuspicious: isSuspicious)
        return [.list]
    }

    private mutating func listed(_ listing: StoredParts) -> [Action] {
        guard case .listing(let isSuspicious) = state else { return [] }
        switch listing.state {
        case .complete: return finish(listing.generation)
        case .expired, .aborted: return reopen(listing.generation)
        case .open: break
        }
        let whole = listing.parts.filter { grid.contains(number: $0.partNumber, length: $0.size) }
        let held = Set(whole.map(\.partNumber))
        // An acknowledged part is not sent again in its generation. Where the store has lost one, the backend has to say whether the session is
        // lost with it; if it is not, only the listing counts.
        if isSuspicious, listing.generation == generation, !done.isSubset(of: held) {
            done = []
            return reopen(generation)
        }
        enter(listing.generation)
        done.formUnion(held)
        return start()
    }

    private mutating func signed(_ urls: [Int: String], _ generation: Int) -> [Action] {
        guard case .sending(var sending) = state, generation == self.generation else { return [] }
        for (part, url) in urls where sending.asked.remove(part) != nil { sending.urls[part] = url }
        // A part that was asked for and not answered is asked for again, but not for ever.
        let unanswered = sending.asked
        sending.waiting = (sending.waiting + unanswered).sorted()
        sending.asked = []
        state = .sending(sending)
        for part in unanswered {
            if let end = count(part, "it was given no address") { return end }
        }
        return proceed()
    }

    private mutating func stored(_ part: Int, _ generation: Int) -> [Action] {
        guard generation == self.generation, inFlight.remove(part) != nil else { return [] }
        done.insert(part)
        return proceed()
    }

    private mutating func refused(_ part: Int, _ generation: Int, _ words: String) -> [Action] {
        guard generation == self.generation, inFlight.remove(part) != nil else { return [] }
        if let end = count(part, words) { return end }
        wait(for: part)
        return proceed()
    }

    /// One more refusal. Nil while there may be another one.
    private mutating func count(_ part: Int, _ words: String) -> [Action]? {
        refusals[part, default: 0] += 1
        guard refusals[part, default: 0] > Self.refusalMax else { return nil }
        return giveUp(
            Failure(
                .backendError, "The backend refuses a part of this file again and again.",
                detail: "part \(part): \(words)"))
    }

    /// A part that has come to nothing is signed anew; only this one.
    private mutating func wait(for part: Int) {
        guard case .sending(var sending) = state, !done.contains(part) else { return }
        sending.waiting = ([part] + sending.waiting).sorted()
        state = .sending(sending)
    }

    // MARK: Going on

    /// Sends and signs as far as the bounds allow; seals when nothing is left. Nothing may be on its way then: some stores would put a late part
    /// into the finished object.
    private mutating func proceed() -> [Action] {
        guard case .sending(var sending) = state else { return [] }
        if done.count == grid.count {
            guard inFlight.isEmpty else { return [] }
            state = .completing
            return [.complete(generation: generation)]
        }
        var actions: [Action] = []
        for part in sending.urls.keys.sorted() where inFlight.count < Self.inFlightMax {
            guard let url = sending.urls.removeValue(forKey: part) else { continue }
            inFlight.insert(part)
            actions.append(.send(part, url: url, generation: generation))
        }
        if sending.asked.isEmpty, sending.urls.count < Self.signedAheadMax / 2, !sending.waiting.isEmpty {
            let next = Array(sending.waiting.prefix(Self.signedAheadMax))
            sending.waiting.removeFirst(next.count)
            sending.asked.formUnion(next)
            actions.append(.sign(next, generation: generation))
        }
        state = .sending(sending)
        return actions
    }

    private mutating func completed() -> [Action] {
        guard state == .completing else { return [] }
        return finish(generation)
    }

    private mutating func incomplete(_ generation: Int) -> [Action] {
        guard state == .completing, generation == self.generation else { return [] }
        return setback() ?? list(isSuspicious: true)
    }

    // MARK: Starting over, and the end

    private mutating func lost(_ generation: Int, _ part: Int?) -> [Action] {
        guard generation == self.generation else { return [] }
        if let part { inFlight.remove(part) }
        switch state {
        // Asked already; what comes of it says more.
        case .idle, .opening, .reopening, .listing, .ended: return []
        case .sending, .completing: return reopen(generation)
        }
    }

    private mutating func reopen(_ generation: Int) -> [Action] {
        if let end = setback() { return end }
        state = .reopening
        return [.reopen(generation: generation)]
    }

    private mutating func askForTheGeneration() -> [Action] {
        switch state {
        case .idle, .ended, .listing, .opening: []
        case .sending, .completing, .reopening: setback() ?? list()
        }
    }

    /// Nil while there may be another one.
    private mutating func setback() -> [Action]? {
        setbacks += 1
        guard setbacks > Self.setbackMax else { return nil }
        return giveUp(
            Failure(
                .backendError, "The backend loses this upload again and again.", detail: "generation \(generation)"))
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
}
