import Files
import Foundation
import Glibc
import Vocabulary

/// From the words of the command line to the exit code.
enum Frame {
    static func run() async -> Never {
        let words = arguments()
        let code: ExitCode
        do throws(Failure) { code = try await run(words) } catch {
            // A person reads the sentence, a program the same as JSON.
            if words.contains(RawPath(Verb.Option.json.name)) { try? Output.json(error) }
            Output.say(error.message)
            code = ExitCode(error)
        }
        // Not exit(3): libraries would be taken down under the threads that still run. Nothing is left in a buffer.
        _exit(code.rawValue)
    }

    /// As bytes: a `String` would repair what is not UTF-8, and name another file.
    private static func arguments() -> [RawPath] {
        (1..<max(1, Int(CommandLine.argc))).compactMap { index in
            CommandLine.unsafeArgv[index].map { RawPath(Array(UnsafeRawBufferPointer(start: $0, count: strlen($0)))) }
        }
    }

    static func run(_ words: [RawPath]) async throws(Failure) -> ExitCode {
        switch words.first?.description {
        case nil, "--help", "-h":
            try Output.line(Help.all)
        case "--version":
            try Output.line(Help.version)
        case "help":
            guard let name = words.dropFirst().first?.description, name != "help" else {
                try Output.line(Help.all)
                break
            }
            try Output.line(Help.of(try verb(name)))
        case let name?:
            let verb = try verb(name)
            let rest = words.dropFirst()
            // After "--" everything is a name.
            if rest.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
                try Output.line(Help.of(verb))
                break
            }
            return try await carryOut(verb, try Arguments(rest, for: verb))
        }
        return .done
    }

    private static func verb(_ name: String) throws(Failure) -> Verb {
        if let verb = Verb.named(name) { return verb }
        throw Failure(.usage, "rushes has no verb “\(name)”; rushes help shows what there is.")
    }

    private static func carryOut(_ verb: Verb, _ arguments: Arguments) async throws(Failure) -> ExitCode {
        let task = Task { () -> Result<ExitCode, Failure> in
            do throws(Failure) { return .success(try await verb.run(arguments)) } catch { return .failure(error) }
        }
        let interrupts = Interrupts { task.cancel() }
        defer { withExtendedLifetime(interrupts) {} }
        return try await task.value.get()
    }
}
