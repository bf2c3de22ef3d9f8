import Vocabulary

/// What the backend says now of items: each is asked for once, and nothing more after it did not answer.
struct BackendAnswers {
    private let client: BackendClient?
    private let clock: BoxClock
    private(set) var answers: VerifyPlan.Answers = [:]
    /// Why it cannot be asked.
    private(set) var fault: Failure?
    var isReachable: Bool { client != nil && fault == nil }

    /// For one answer: a network that loses some, or a backend that is just being started again, is not one that cannot be asked.
    private static let triesMax = 20
    /// Seconds between them.
    private static let interval = 0.5

    init(client: BackendClient?, clock: BoxClock = .system) {
        self.client = client
        self.clock = clock
    }

    mutating func ask(_ items: [ItemID]) async throws(Failure) {
        for item in items where answers[item] == nil {
            var tries = 0
            while isReachable, answers[item] == nil {
                guard let client else { return }
                do throws(Failure) {
                    answers[item] = Set(try await client.item(item).uploads.compactMap(\.sha256Recomputed))
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
}
