import Ingest
import Vocabulary

/// Items in words and bars. Pure.
enum IngestWords {
    /// From here on an upload's tenths are worth a line each.
    static let largeBytes = 64 << 20
    private static let barWidth = 20

    /// One line for a state that an item has come to.
    static func line(_ item: ItemProgress) -> String {
        var text = "\(item.name): \(item.state.rawValue)"
        if let reason = item.reason { text += " (\(reason.code)): \(reason.message)" }
        if item.state == .uploading, item.bytes > 0 {
            text += ", \(amount(item.confirmedBytes)) of \(amount(item.bytes))"
        }
        if let waiting = item.waiting { text += " — \(waiting)" }
        return text
    }

    /// A bar of at most `width` columns: what is done of the present state, bytes, rate and time left.
    static func bar(_ item: ItemProgress, width: Int) -> String {
        let filled = Int(((item.fraction ?? 0) * Double(barWidth)).rounded(.down))
        let bar =
            item.fraction == nil
            ? String(repeating: "·", count: barWidth)
            : String(repeating: "█", count: filled) + String(repeating: "░", count: barWidth - filled)
        var right = "\(bar) \(item.state.rawValue)"
        if item.state == .uploading {
            right += " \(amount(item.confirmedBytes))/\(amount(item.bytes))"
            if let rate = item.rate { right += " \(amount(Int(rate)))/s" }
            if let left = item.secondsLeft { right += " \(Duration.seconds(left).clock) left" }
        } else if let fraction = item.fraction {
            right += " \(Int(fraction * 100)) %"
        }
        if let waiting = item.waiting { right += " — \(waiting)" }
        right = Output.printable(right)
        let room = max(8, width - Columns.count(right) - 2)
        let name = Output.printable(item.name)
        let shown = Columns.count(name) > room ? "…" + Columns.suffix(name, room - 1) : name
        return Columns.prefix(shown + " " + right, max(width - 1, 1))
    }

    /// What came of looking at the paths.
    static func enrolled(_ report: EnrolReport) -> [String] {
        var lines: [String] = []
        var new = 0, there = 0, joined = 0, again = 0, lost = 0
        for pick in report.picks {
            switch pick.outcome {
            case .new: new += 1
            case .joined: joined += 1
            case .again: again += 1
            case .alreadyThere: there += 1
            case .lost: lost += 1
            case .refusedBefore(let reason):
                lines.append("\(pick.path): refused before (\(reason.code)): \(reason.message)")
            }
            if pick.staysBehind { lines.append("\(pick.path): stays where it is, \(why(pick.outcome))") }
        }
        for ignored in report.ignored {
            if case .systemFile = ignored.reason { continue }
            lines.append("\(ignored.path): not taken, \(ignored.reason.words)")
        }
        let system = report.ignored.count { if case .systemFile = $0.reason { true } else { false } }
        var counts: [String] = []
        if new > 0 { counts.append("\(new) to take") }
        if joined > 0 { counts.append("\(joined) on the way already") }
        if again > 0 { counts.append("\(again) to try again") }
        if lost > 0 { counts.append("\(lost) to take once more, since the backend does not have them any more") }
        if there > 0 { counts.append("\(there) already there") }
        if system > 0 { counts.append("\(system) system files left") }
        if let fault = report.backendFault {
            lines.append("what is already there, the backend said earlier; it cannot be asked now: \(fault.message)")
        }
        lines.append(counts.isEmpty ? "nothing to take" : counts.joined(separator: ", "))
        return lines
    }

    /// Why `--move` does not move.
    private static func why(_ outcome: EnrolReport.Outcome) -> String {
        switch outcome {
        case .alreadyThere: "the backend has the same bytes already; rushes verify says when it may go"
        case .refusedBefore: "the same bytes were not taken before either"
        case .new, .lost, .joined, .again: "since it was picked to be copied; rushes verify says when it may go"
        }
    }

    static func summary(_ items: [ItemStatus], _ report: EnrolReport) -> String {
        let counts = ItemState.allCases.compactMap { state in
            let count = items.count { $0.state == state }
            return count > 0 ? "\(count) \(state.rawValue)" : nil
        }
        let staying = report.picks.count { $0.staysBehind }
        let rest = staying > 0 ? "; \(staying) not moved, as said above" : ""
        return (counts.isEmpty ? "no items" : counts.joined(separator: ", ")) + rest
    }

    /// What only keeps a run from going on: all that it took is in staging and the catalog. A full disk says so itself; faults of the disk, the
    /// catalog or Rushes itself promise nothing.
    private static let interruptions: Set<FailureCode> = [
        .backendUnreachable, .backendError, .busy, .unauthorized, .forbidden, .quotaExceeded, .clockSkewed, .redirected,
        .foreignAnswer, .workerMissing, .sandboxUnavailable, .alreadyRunning, .cancelled,
    ]

    /// A run's failure, with what becomes of its items.
    static func ended(_ failure: Failure) -> Failure {
        guard interruptions.contains(failure.code) else { return failure }
        var failure = failure
        failure.message += " Nothing was lost: the same command goes on where it was."
        return failure
    }

    /// What does not go on by itself after the end, and what lets it.
    static func left(_ items: [ItemStatus], hasOwnBackend: Bool) -> [String] {
        let paused = items.filter { $0.intent == .paused && !$0.state.isFinal }
        let processing = items.count { $0.intent == .run && $0.state == .processing }
        var lines: [String] = []
        if let first = paused.first {
            lines.append(
                "\(paused.count) of them paused: rushes resume --all, or rushes resume \(first.item) for one, lets them go on."
            )
        }
        if processing > 0, hasOwnBackend {
            lines.append(
                "\(processing) of them are not processed yet, and the backend ends with this command: rushes run, or the same command without --no-wait, finishes them."
            )
        }
        let remaining = items.flatMap(\.remaining)
        if let first = remaining.first {
            lines.append(
                "\(remaining.count) files were taken and could not be removed from where they were (\(first)): rushes status names them, and the next run tries again."
            )
        }
        return lines
    }

    /// Bytes for people, in powers of 1000: `1.2 GB`.
    static func amount(_ bytes: Int) -> String {
        var value = Double(bytes)
        for unit in ["B", "kB", "MB", "GB"] {
            if value < 1000 { return unit == "B" ? "\(bytes) B" : "\((value * 10).rounded() / 10) \(unit)" }
            value /= 1000
        }
        return "\((value * 10).rounded() / 10) TB"
    }
}
