import Vocabulary

/// One verb of the command line: what it takes, what its help says, what it does. A new verb is a file in `Verbs` with such a value, and its
/// line in `Verb.all`.
struct Verb: Sendable {
    struct Option: Sendable {
        /// With its dashes.
        var name: String
        /// What the help calls the value; nil for a switch.
        var value: String?
        var help: String
        init(_ name: String, _ value: String? = nil, _ help: String) {
            self.name = name
            self.value = value
            self.help = help
        }
    }

    var name: String
    /// As the usage line shows them.
    var operands: String
    var operandCount: ClosedRange<Int>
    /// One line.
    var summary: String
    /// What the help says below the usage, in lines of at most 80 characters.
    var details: String
    var options: [Option]
    var run: @Sendable (Arguments) async throws(Failure) -> ExitCode

    init(
        _ name: String, operands: String = "", operandCount: ClosedRange<Int> = 0...0, summary: String,
        details: String = "",
        options: [Option] = [], run: @escaping @Sendable (Arguments) async throws(Failure) -> ExitCode
    ) {
        self.name = name
        self.operands = operands
        self.operandCount = operandCount
        self.summary = summary
        self.details = details
        self.options = options
        self.run = run
    }

    static func named(_ name: String) -> Verb? { all.first { $0.name == name } }
}

// Options that several verbs share.
extension Verb.Option {
    static let json = Verb.Option("--json", nil, "print JSON for programs instead of text for people")
    static let server = Verb.Option(
        "--server", "URL", "another backend: unix:PATH, http://… or https://… (default: an own one)")
    static let memory = Verb.Option(
        "--memory", "BYTES", "the most that decoding may take, with K, M or G (default 4G)")
}
