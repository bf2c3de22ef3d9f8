import Ingest
import Vocabulary

/// An item's story in lines. Pure.
enum HistoryWords {
    /// Parts that follow one another share a line: a large file has thousands.
    static func lines(_ detail: ItemDetail) -> [String] {
        var lines: [String] = []
        var parts: [HistoryEntry] = []
        for entry in detail.history.map(\.entry) {
            if let last = parts.last, entry.what != .part || entry.upload != last.upload {
                lines.append(line(parts))
                parts = []
            }
            if entry.what == .part { parts.append(entry) } else { lines.append(line(entry)) }
        }
        if !parts.isEmpty { lines.append(line(parts)) }
        if detail.leftOut > 0 { lines.append("(\(detail.leftOut) steps in between are not kept)") }
        return lines
    }

    private static func line(_ parts: [HistoryEntry]) -> String {
        guard let first = parts.first, let last = parts.last else { return "" }
        let bytes = IngestWords.amount(parts.reduce(0) { $0 + ($1.bytes ?? 0) })
        let what = parts.count == 1 ? "part \(first.part ?? 0)" : "\(parts.count) parts (\(ranges(parts)))"
        let until = parts.count == 1 ? "" : ", the last at \(last.time)"
        return "\(first.time)  \(what) of \(Output.printable(first.file ?? "?")) stored, \(bytes)\(until)"
    }

    /// `1–3, 5`.
    private static func ranges(_ parts: [HistoryEntry]) -> String {
        var ranges: [ClosedRange<Int>] = []
        for number in parts.compactMap(\.part).sorted() {
            if let last = ranges.last, last.upperBound + 1 == number {
                ranges[ranges.count - 1] = last.lowerBound...number
            } else {
                ranges.append(number...number)
            }
        }
        return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)–\($0.upperBound)" }
            .joined(separator: ", ")
    }

    private static func line(_ entry: HistoryEntry) -> String {
        var words: [String] = []
        if let file = entry.file { words.append(Output.printable(file)) }
        if let part = entry.part { words.append("part \(part)") }
        if let bytes = entry.bytes { words.append(IngestWords.amount(bytes)) }
        if let sha256 = entry.sha256 { words.append("sha256 \(sha256)") }
        if let xxh128 = entry.xxh128 { words.append("xxh128 \(xxh128)") }
        if let generation = entry.generation { words.append("session's generation \(generation)") }
        if let state = entry.state { words.append(state.rawValue) }
        if let reason = entry.reason { words.append("\(reason.code): \(Output.printable(reason.message))") }
        if let more = entry.words { words.append(Output.printable(more)) }
        if let times = entry.times { words.append("\(times) times") }
        return "\(entry.time)  \(what(entry.what))" + (words.isEmpty ? "" : "  " + words.joined(separator: ", "))
    }

    private static func what(_ what: HistoryEntry.What) -> String {
        switch what {
        case .picked: "picked"
        case .startedAgain: "started again"
        case .staged: "in staging"
        case .sourceRemoved: "source removed"
        case .sourceStays: "source not removed"
        case .probed: "probed"
        case .made: "made"
        case .planned: "to be sent"
        case .session: "session opened"
        case .part: "part stored"
        case .completing: "all parts stored"
        case .completed: "complete at the backend"
        case .attached: "attached"
        case .event: "event from the backend"
        case .confirmed: "read back by the backend"
        case .vanished: "lost at the backend"
        case .restaged: "taken again"
        case .retry: "tried again"
        case .attempt: "attempt failed"
        case .waiting: "waiting"
        case .goesOn: "going on"
        case .steered: "a person said"
        case .released: "left staging"
        case .state: "now"
        }
    }
}
