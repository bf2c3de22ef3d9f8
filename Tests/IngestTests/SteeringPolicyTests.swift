import Testing
import Vocabulary

@testable import Ingest

@Suite struct SteeringPolicyTests {
    private enum Answer { case go, already, refuse }

    private func answer(
        _ verb: SteeringVerb, _ state: ItemState, _ intent: Intent = .run, staged: Bool = true
    ) -> Answer {
        switch SteeringPolicy.decide(verb, state: state, intent: intent, hasStaged: staged) {
        case .go: .go
        case .already: .already
        case .refuse: .refuse
        }
    }

    /// Answers to pause, resume, cancel, retry, discard.
    private static let table: [(ItemState, Intent, [Character])] = [
        (.picked, .run, ["g", "a", "g", "a", "r"]),
        (.staged, .run, ["g", "a", "g", "a", "r"]),
        (.preparing, .run, ["g", "a", "g", "a", "r"]),
        (.uploading, .run, ["g", "a", "g", "a", "r"]),
        (.processing, .run, ["g", "a", "g", "a", "r"]),
        (.uploading, .paused, ["a", "g", "g", "r", "r"]),
        (.processing, .paused, ["a", "g", "g", "r", "r"]),
        (.uploading, .cancelled, ["r", "r", "g", "r", "r"]),
        (.failed, .cancelled, ["r", "r", "g", "r", "r"]),
        (.ready, .run, ["r", "a", "r", "a", "a"]),
        (.rejected, .run, ["r", "r", "r", "r", "g"]),
        (.failed, .run, ["r", "r", "g", "g", "r"]),
        (.missing, .run, ["r", "r", "g", "g", "r"]),
        (.cancelled, .cancelled, ["r", "r", "a", "g", "g"]),
    ]

    @Test func everyVerbHasItsAnswerInEveryState() {
        for (state, intent, answers) in Self.table {
            for (verb, letter) in zip(SteeringVerb.allCases, answers) {
                let expected: Answer = letter == "g" ? .go : letter == "a" ? .already : .refuse
                #expect(answer(verb, state, intent) == expected, "\(verb) of \(state), \(intent)")
            }
        }
        #expect(Set(Self.table.map(\.0)) == Set(ItemState.allCases))
    }

    @Test func discardingWhatHasNothingInStagingChangesNothing() {
        #expect(answer(.discard, .cancelled, .cancelled, staged: false) == .already)
        #expect(answer(.discard, .rejected, staged: false) == .already)
    }
}
