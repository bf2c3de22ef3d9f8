import Files
import Vocabulary

/// A verb's arguments, parsed and checked against its table.
struct Arguments: Sendable, Equatable {
    /// As the system gave them: names are not always UTF-8.
    private(set) var paths: [RawPath] = []
    var operands: [String] { paths.map(\.description) }
    private var switches: Set<String> = []
    private var values: [String: String] = [:]

    /// - Throws: `usage`, in one sentence.
    init(_ words: some Sequence<RawPath>, for verb: Verb) throws(Failure) {
        var words = Array(words)[...]
        var takesOptions = true
        while let raw = words.popFirst() {
            let word = raw.description
            guard takesOptions, word.hasPrefix("-"), word != "-" else {
                paths.append(raw)
                continue
            }
            if word == "--" {
                takesOptions = false
                continue
            }
            let halves = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(halves[0])
            guard let option = verb.options.first(where: { $0.name == name }) else {
                throw Self.usage("rushes \(verb.name) has no option \(name)", verb)
            }
            guard !switches.contains(name), values[name] == nil else {
                throw Self.usage("\(name) is given twice", verb)
            }
            guard option.value != nil else {
                guard halves.count == 1 else { throw Self.usage("\(name) takes no value", verb) }
                switches.insert(name)
                continue
            }
            guard let holder = halves.count == 2 ? raw : words.popFirst() else {
                throw Self.usage("\(name) needs a value", verb)
            }
            // Repaired, it would be another value, or name another file.
            guard RawPath(holder.description) == holder else { throw Self.usage("\(name) takes UTF-8", verb) }
            values[name] = halves.count == 2 ? String(halves[1]) : holder.description
        }
        guard paths.count >= verb.operandCount.lowerBound else {
            throw Self.usage("rushes \(verb.name) needs \(verb.operands)", verb)
        }
        guard paths.count <= verb.operandCount.upperBound else {
            throw Self.usage(
                "rushes \(verb.name) takes only \(verb.operands.isEmpty ? "options" : verb.operands)", verb)
        }
    }

    private static func usage(_ fault: String, _ verb: Verb) -> Failure {
        Failure(.usage, "\(fault); rushes help \(verb.name) shows what it takes.")
    }

    func has(_ option: Verb.Option) -> Bool { switches.contains(option.name) }

    subscript(option: Verb.Option) -> String? { values[option.name] }

    /// The value as a whole number.
    func integer(_ option: Verb.Option, in range: ClosedRange<Int>) throws(Failure) -> Int? {
        guard let text = self[option] else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw Failure(
                .usage, "\(option.name) takes a whole number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    /// The value as a number.
    func number(_ option: Verb.Option, in range: ClosedRange<Double>) throws(Failure) -> Double? {
        guard let text = self[option] else { return nil }
        guard let number = Double(text), range.contains(number) else {
            throw Failure(.usage, "\(option.name) takes a number from \(range.lowerBound) to \(range.upperBound).")
        }
        return number
    }

    /// The value as bytes: a whole number, with K, M or G for powers of 1024.
    func bytes(_ option: Verb.Option, in range: ClosedRange<Int>) throws(Failure) -> Int? {
        guard let text = self[option] else { return nil }
        guard let product = ByteCount.parse(text), range.contains(product) else {
            throw Failure(
                .usage,
                "\(option.name) takes bytes with K, M or G, from \(range.lowerBound >> 20)M to \(range.upperBound >> 30)G."
            )
        }
        return product
    }
}
