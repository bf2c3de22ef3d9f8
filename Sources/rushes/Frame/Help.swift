/// The help texts, made from the verbs' tables.
enum Help {
    static let number = "0.1.0"
    static let version = "rushes \(number)"

    static var all: String {
        let width = Verb.all.map(\.name.count).max() ?? 0
        let verbs = Verb.all.map { "  \(padded($0.name, to: width))  \($0.summary)" }.joined(separator: "\n")
        return """
            usage: rushes VERB …

            \(verbs)
              \(padded("help", to: width))  show what a verb takes: rushes help VERB

            Exit codes: 0 done · 1 failed · 2 wrong command line · 3 done, but some were
            rejected, failed or are missing · 4 this media was rejected.
            """
    }

    static func of(_ verb: Verb) -> String {
        let usage = ["usage: rushes", verb.name, verb.operands, verb.options.isEmpty ? "" : "[OPTIONS]"]
        var text = usage.filter { !$0.isEmpty }.joined(separator: " ") + "\n\n" + verb.summary + "."
        if !verb.details.isEmpty { text += "\n\n" + verb.details }
        let names = verb.options.map { [$0.name, $0.value].compactMap { $0 }.joined(separator: " ") } + ["--help"]
        let width = names.map(\.count).max() ?? 0
        let lines = zip(names, verb.options.map(\.help) + ["show this"]).map { "  \(padded($0, to: width))  \($1)" }
        return text + "\n\nOptions:\n" + lines.joined(separator: "\n")
    }

    private static func padded(_ text: String, to width: Int) -> String {
        text + String(repeating: " ", count: max(0, width - text.count))
    }
}
