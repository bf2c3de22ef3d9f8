import Ingest
import MediaJobs
import Vocabulary

extension Verb {
    static let status = Verb(
        "status", summary: "say where every item stands, and why something waits",
        details: "With --json one line an item.", options: [.json]
    ) { arguments async throws(Failure) in
        guard let box = try await BoxView.open(home: try Configuration.current().home) else {
            Output.say("nothing has been taken yet: rushes ingest PATH starts.")
            return .done
        }
        let items = try await box.items()
        if arguments.has(.json) {
            for item in items { try Output.json(item) }
            return .done
        }
        for line in StatusTable.lines(items) { try Output.line(line) }
        return .done
    }

    static let show = Verb(
        "show", operands: "ITEM", operandCount: 1...1, summary: "tell an item's story",
        details: """
            ITEM is an id, as status shows them, or its beginning. Hashes, parts, retries, waits
            and events stand there with their times.
            """, options: [.json]
    ) { arguments async throws(Failure) in
        guard let box = try await BoxView.open(home: try Configuration.current().home) else {
            throw Failure(.notFound, "Nothing has been taken yet.")
        }
        let detail = try await box.show(
            try ItemNames.item(arguments.operands[0], among: try await box.items().map(\.item)))
        if arguments.has(.json) {
            try Output.json(detail)
        } else {
            for line in StatusTable.lines(detail) { try Output.line(line) }
        }
        return .done
    }
}

/// Items as text in columns. Pure.
enum StatusTable {
    static func lines(_ items: [ItemStatus]) -> [String] {
        var lines: [String] = []
        for shoot in items.map(\.shoot).uniqued() {
            let members = items.filter { $0.shoot == shoot }
            let nameWidth = min(members.map { Columns.count(Output.printable($0.name)) }.max() ?? 0, 48)
            lines.append("\(Output.printable(shoot)): \(IngestWords.summary(members, EnrolReport()))")
            for item in members {
                var line = "  " + Output.printable(item.name).padded(nameWidth)
                line += "  " + item.state.rawValue.padded(10) + "  " + IngestWords.amount(item.bytes).leftPadded(9)
                line += "  " + item.item.rawValue
                if item.intent != .run { line += "  \(item.intent.rawValue)" }
                if let reason = item.reason { line += "  \(reason.code): \(Output.printable(reason.message))" }
                if let waiting = item.waiting { line += "  \(Output.printable(waiting))" }
                if !item.staged.isEmpty, item.state.isFinal {
                    line += "  in staging: \(item.staged.map(Output.printable).joined(separator: ", "))"
                }
                if !item.remaining.isEmpty, item.state != .picked {
                    line += "  not removed yet: \(item.remaining.map(Output.printable).joined(separator: ", "))"
                }
                lines.append(line)
            }
        }
        return lines
    }

    static func lines(_ detail: ItemDetail) -> [String] {
        let item = detail.status
        var lines = [
            "\(Output.printable(item.name))  \(item.item)",
            "  shoot       \(Output.printable(item.shoot))",
            "  source      \(Output.printable(detail.source))",
            "  state       \(item.state.rawValue), generation \(item.generation), \(detail.attempts) failed attempts",
        ]
        if let reason = item.reason {
            lines.append("  reason      \(reason.code): \(Output.printable(reason.message))")
        }
        if let waiting = item.waiting { lines.append("  waiting     \(Output.printable(waiting))") }
        if let facts = detail.probe?.facts { lines.append("  media       \(Output.printable(facts.words))") }
        for warning in detail.probe?.warnings ?? [] {
            lines.append("  warning     \(Output.printable(warning.message))")
        }
        for file in detail.files {
            let hash = file.sha256.map { "sha256 \($0.rawValue)" } ?? "not hashed yet"
            lines.append(
                "  \(file.role.rawValue.padded(10))  \(Output.printable(file.name)), \(file.bytes.map(IngestWords.amount) ?? "?"), \(hash)"
            )
            if let path = file.stagedPath { lines.append("              in staging: \(Output.printable(path))") }
            if let source = file.remainingSource {
                lines.append(
                    "              taken, but could not be removed yet from \(Output.printable(source)): the next run tries again"
                )
            }
            if let state = file.uploadState {
                let confirmed = file.confirmedSHA256 == nil ? "" : ", the backend read back the same hash"
                lines.append(
                    "              upload \(state.rawValue)\(file.confirmedSHA256 == file.sha256 ? confirmed : "")")
            }
        }
        for output in item.outputs {
            let size = output.width.flatMap { width in output.height.map { " \(width)×\($0)" } } ?? ""
            lines.append(
                "  output      \(output.role.rawValue) \(Output.printable(output.name))\(size), \(IngestWords.amount(output.sizeBytes)), sha256 \(output.sha256)"
            )
        }
        return lines + ["  history"] + HistoryWords.lines(detail).map { "    " + $0 }
    }
}

extension String {
    func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - Columns.count(self))) }
    func leftPadded(_ width: Int) -> String {
        count >= width ? self : String(repeating: " ", count: width - count) + self
    }
}
extension Sequence where Element: Hashable {
    /// Each once, in the order of their first places.
    func uniqued() -> [Element] {
        var seen: Set<Element> = []
        return filter { seen.insert($0).inserted }
    }
}
