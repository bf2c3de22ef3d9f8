import Backend
import Foundation
import Vocabulary

extension Verb {
    private static let owner = Option(
        "--owner", "O", "whose items it is for (default: yours, as over the Unix socket)")
    private static let shoot = Option("--shoot", "S", "the only shoot that it may write and read (default: all)")
    private static let expires = Option(
        "--expires", "T", "when it ends: 45m, 12h, 30d, or 2026-12-31T18:00:00Z (default: never)")

    static let token = Verb(
        "token", operands: "create|list|revoke NAME…", operandCount: 1...Int.max,
        summary: "make, list and take back the tokens that clients of this backend need",
        details: """
            create prints the token once, on standard output; the backend keeps only its hash.
            list names all of them, and revoke takes back the named ones, at once. It works on
            the backend's folder, beside a server that runs or without one. Clients have theirs
            in RUSHES_TOKEN, or better in the file that RUSHES_TOKEN_FILE names, which they read
            again.
            """,
        options: [owner, shoot, expires, .data, .json]
    ) { arguments async throws(Failure) in
        guard let action = TokenAction(rawValue: arguments.operands[0]) else {
            throw Failure(.usage, "rushes token takes create, list or revoke; rushes help token shows more.")
        }
        let names = Array(arguments.operands.dropFirst())
        guard names.isEmpty != (action == .revoke) else {
            throw Failure(
                .usage,
                action == .revoke
                    ? "rushes token revoke takes the names that rushes token list shows."
                    : "rushes token \(action.rawValue) takes no names.")
        }
        if action != .create, let option = [owner, shoot, expires].first(where: { arguments[$0] != nil }) {
            throw Failure(.usage, "\(option.name) goes with rushes token create only.")
        }
        let expiry = try arguments[expires].map { text throws(Failure) in try Expiry.parse(text, now: Date()) }
        let configuration = try Configuration.current()
        let register = try await TokenRegister.open(
            dataFolder: arguments[.data] ?? configuration.backendFolder, makes: action == .create)
        switch action {
        case .create:
            let made = try await register?.create(
                owner: arguments[owner], shoot: arguments[shoot],
                expiresAt: expiry.map { Timestamp(milliseconds: Int64($0.timeIntervalSince1970 * 1000)) })
            guard let made, let secret = made.token else { return .failed }
            if arguments.has(.json) { try Output.json(made) } else { try Output.line(secret) }
            Output.say("token \(TokenWords.line(made)). It is not shown again.")
        case .list:
            for entry in try await register?.list() ?? [] {
                if arguments.has(.json) { try Output.json(entry) } else { try Output.line(TokenWords.line(entry)) }
            }
        case .revoke:
            for name in names {
                guard let entry = try await register?.revoke(name) else { throw TokenRegister.unknown(name) }
                if arguments.has(.json) { try Output.json(entry) } else { try Output.line(TokenWords.line(entry)) }
            }
        }
        return .done
    }

    private enum TokenAction: String { case create, list, revoke }
}

/// When something ends, as a person says it: after so long, or at a moment. Pure.
enum Expiry {
    private static let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400]
    /// Seconds: a hundred years.
    private static let secondsMax = 100 * 365.25 * 86400

    /// - Throws: `usage`, also for what is over already.
    static func parse(_ text: String, now: Date) throws(Failure) -> Date {
        let moment: Date? =
            if let unit = text.last.flatMap({ units[$0] }), let count = UInt32(text.dropLast()) {
                now.addingTimeInterval(Double(count) * unit)
            } else {
                try? Date(text, strategy: .iso8601)
            }
        guard let moment else {
            throw Failure(
                .usage, "--expires takes 45m, 12h, 30d or 4w, or a moment such as 2026-12-31T18:00:00Z.")
        }
        guard moment > now, moment.timeIntervalSince(now) <= secondsMax else {
            throw Failure(.usage, "--expires takes a moment from now on, and within a hundred years.")
        }
        return moment
    }
}

/// Tokens in words. Pure.
enum TokenWords {
    static func line(_ entry: TokenRegister.Entry) -> String {
        let shoot = entry.shoot.map { "shoot “\($0)”" } ?? "all shoots"
        var end = entry.expiresAt.map { "\(entry.state == "expired" ? "expired" : "until") \($0)" } ?? "without end"
        if let revoked = entry.revokedAt { end = "revoked \(revoked)" }
        return Output.printable("\(entry.name)  of \(entry.owner), \(shoot), \(end)")
    }
}
