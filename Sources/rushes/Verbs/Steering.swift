import Foundation
import Glibc
import Ingest
import MediaJobs
import Vocabulary

extension Verb {
    static let pause = steering(
        .pause, "stop work on items for the time being, at once",
        """
        What is under way for them ends and nothing is thrown away. It holds over restarts,
        until rushes resume. The backend goes on with what it has already.
        """)
    static let resume = steering(
        .resume, "let paused items go on", "They go on at once where a rushes works the queue, else with the next one.")
    static let cancel = steering(
        .cancel, "give items up: nothing of them stays at the backend",
        """
        What was made of them goes too, and the copy in staging where its source is still there,
        unchanged. Files that were moved here stay in staging, until retry or discard. A backend
        that is away gets to know as soon as it is back. Give the --server that the items went to.
        """, options: [.server])
    static let retry = steering(
        .retry, "start failed, missing or cancelled items again",
        "They begin with the next rushes run or ingest, or at once where one is at work.")
    static let discard = steering(
        .discard, "throw away what cancelled and rejected items still have in staging",
        """
        These may be the only bytes: without --yes a person is asked, and where there is no
        terminal nothing is thrown away.
        """, options: [yes])

    private static let everything = Option("--all", nil, "every item for which it does something")
    private static let yes = Option("--yes", nil, "do not ask")

    private static func steering(
        _ verb: SteeringVerb, _ summary: String, _ details: String, options: [Option] = []
    ) -> Verb {
        Verb(
            verb.rawValue, operands: "ITEM…|--all", operandCount: 0...Int.max, summary: summary,
            details: "ITEM is an id, as status shows them, or its beginning.\n" + details,
            options: [everything] + options
        ) { arguments async throws(Failure) in
            guard arguments.operands.isEmpty == arguments.has(everything) else {
                throw Failure(.usage, "rushes \(verb.rawValue) takes items or --all; rushes status lists them.")
            }
            let configuration = try Configuration.current()
            guard let view = try await BoxView.open(home: configuration.home),
                let steering = try await BoxSteering.open(home: configuration.home)
            else {
                guard arguments.has(everything) else {
                    throw Failure(.notFound, "Nothing has been taken yet: there are no items.")
                }
                Output.say("there is nothing to \(verb.rawValue).")
                return .done
            }
            var ids: [ItemID]?
            if !arguments.has(everything) {
                let all = try await view.items().map(\.item)
                ids = try arguments.operands.map { name throws(Failure) in
                    try ItemNames.item(name, among: all)
                }.uniqued()
            }
            if verb == .discard, !arguments.has(yes) {
                guard try confirms(try await steering.discardable(ids)) else { return .partly }
            }
            var outcomes = try await steering.steer(verb, ids)
            if verb == .cancel {
                try await seeThrough(&outcomes, steering, configuration, arguments)
            }
            for outcome in outcomes {
                try Output.line(
                    "\(outcome.item)  \(Output.printable(outcome.name)): \(Output.printable(outcome.words))")
            }
            if outcomes.isEmpty { Output.say("there is nothing to \(verb.rawValue).") }
            return outcomes.allSatisfy(\.isDone) ? .done : .partly
        }
    }

    // MARK: Discarding

    private static func confirms(_ what: (files: Int, bytes: Int)) throws(Failure) -> Bool {
        guard what.files > 0 else { return true }
        guard isatty(STDIN_FILENO) == 1, Output.isTerminal else {
            throw Failure(
                .usage, "\(what.files) files would be lost for good: say --yes where nobody can be asked.")
        }
        Output.draw(
            "rushes: throw \(what.files) files (\(IngestWords.amount(what.bytes))) away for good? [y/N] ")
        let answer = readLine()?.lowercased() ?? ""
        return answer == "y" || answer == "yes"
    }

    // MARK: Cancelling

    /// Seconds for which a cancellation is waited for; it goes on without us.
    private static let patience = 10.0

    /// The process that works the home cancels; where there is none, this one does.
    private static func seeThrough(
        _ outcomes: inout [BoxSteering.Outcome], _ steering: BoxSteering, _ configuration: Configuration,
        _ arguments: Arguments
    ) async throws(Failure) {
        let under = outcomes.filter { $0.standing == .underway }.map(\.item)
        let left = try await steering.watchCancelling(under, seconds: patience)
        if !left.isEmpty {
            let media = MediaJobs(try arguments.mediaSettings())
            let house = try await House.open(
                configuration, server: arguments[.server], media: media, patience: patience,
                startsBackend: try await steering.concernsBackend(left))
            do throws(Failure) {
                try await house.box.carryOutCancelling(left)
            } catch {
                // The intent is written down: whoever runs next completes it.
                Output.say(error.message)
            }
            _ = try? await steering.watchCancelling(left, seconds: patience)
            await house.close()
        }
        let settled = try await steering.cancelOutcomes(under)
        outcomes = outcomes.map { outcome in settled.first { $0.item == outcome.item } ?? outcome }
    }
}
