import Vocabulary

/// What the backend says now of items: of a few each for itself, of many by the list of their shoot. Nothing more is asked after it did not
/// answer.
struct BackendAnswers {
    private let client: BackendClient?
    private let clock: BoxClock
    private(set) var answers: VerifyPlan.Answers = [:]
    /// From the lists. Only that it has something counts: what it has not may have come since, or may not be listed.
    private var listed: VerifyPlan.Answers = [:]
    /// Items that were asked for each for itself, by shoot.
    private var singles: [String: Int] = [:]
    /// Why it cannot be asked.
    private(set) var fault: Failure?
    var isReachable: Bool { client != nil && fault == nil }

    /// For one answer: a network that loses some, or a backend that is just being started again, is not one that cannot be asked.
    private static let triesMax = 20
    /// Seconds between them.
    private static let interval = 0.5

    /// Of one shoot, before all of it is listed: one file more costs one question, whatever the shoot holds.
    private static let singlesMax = 8
    /// Of the list of one shoot.
    private static let pagesMax = 500

    init(client: BackendClient?, clock: BoxClock = .system) {
        self.client = client
        self.clock = clock
    }

    /// - Parameters:
    ///   - shoot: the item's.
    ///   - sha256: what it is to have.
    mutating func ask(_ item: ItemID, of shoot: String, for sha256: SHA256Digest) async throws(Failure) {
        guard isReachable else { return }
        if let known = answers[item], known.contains(sha256) || listed[item] == nil { return }
        singles[shoot, default: 0] += 1
        if singles[shoot] == Self.singlesMax { try await list(shoot) }
        if let known = listed[item], known.contains(sha256) {
            answers[item] = known
        } else {
            (listed[item], answers[item]) = (nil, nil)
            try await ask(item)
        }
    }

    private mutating func list(_ shoot: String) async throws(Failure) {
        var cursor: String?
        for _ in 0..<Self.pagesMax {
            do throws(Failure) {
                guard let page = try await client?.items(of: shoot, after: cursor) else { return }
                for document in page.items { listed[document.itemID] = Self.hashes(of: document) }
                cursor = page.cursor
            } catch {
                if error.code == .cancelled { throw error }
                // Each for itself, then.
                return
            }
            if cursor == nil { return }
        }
    }

    private static func hashes(of document: ItemDocument) -> Set<SHA256Digest> {
        Set(document.uploads.compactMap(\.sha256Recomputed))
    }

    private mutating func ask(_ item: ItemID) async throws(Failure) {
        var tries = 0
        while isReachable, answers[item] == nil {
            guard let client else { return }
            do throws(Failure) {
                answers[item] = Self.hashes(of: try await client.item(item))
            } catch {
                tries += 1
                switch error.code {
                case .cancelled: throw error
                case .notFound, .gone: answers[item] = []
                case _ where error.remedy == .retryLater && tries < Self.triesMax: await clock.sleep(Self.interval)
                default: fault = error
                }
            }
        }
    }
}
