import Backend
import Files
import Ingest
import Vocabulary

extension Verb {
    static let check = Verb(
        "check", summary: "verify that nothing is lost, on both sides",
        details: """
            Reads every staged and stored byte again and compares with what is written down. It
            changes nothing. Each finding is one line; exit code 1 when there is any. What is only
            worth knowing goes to standard error. Run it while nothing else works on the folders.
            """,
        options: [.data, .json]
    ) { arguments async throws(Failure) in
        let configuration = try Configuration.current()
        let backend = arguments[.data] ?? configuration.backendFolder
        var findings: [Finding] = []
        var observations: [Finding] = []
        var sides: [String] = []
        if try Home.isInUse(configuration.home) {
            let isHeld = try await BackendCheck.holdings(dataFolder: configuration.backendFolder)
            findings += try await BoxCheck.run(home: configuration.home, isHeld: isHeld)
            sides.append("the box in \(configuration.home)")
        }
        if let facts = try Files.facts(backend) {
            guard facts.kind == .folder else { throw Failure(.readOnly, "“\(backend)” is not a folder.") }
            findings += try await BackendCheck.run(dataFolder: backend, store: configuration.store)
            observations += try await BackendCheck.observations(dataFolder: backend, store: configuration.store)
            sides.append("the backend in \(backend)")
        } else if arguments[.data] != nil {
            throw Failure(.sourceMissing, "The folder “\(backend)” does not exist.")
        }
        for finding in findings {
            if arguments.has(.json) {
                try Output.json(finding)
            } else {
                try Output.line(Output.printable(finding.description))
            }
        }
        // Nothing is wrong with these; a person may want to know.
        for observation in observations { Output.say(Output.printable(observation.description)) }
        if sides.isEmpty {
            Output.say("there is nothing to check in \(configuration.home).")
        } else {
            Output.say(
                "checked \(sides.joined(separator: " and ")): \(findings.isEmpty ? "clean" : "\(findings.count) findings")."
            )
        }
        return findings.isEmpty ? .done : .failed
    }
}
