import Synchronization
import Vocabulary

/// Progress of one piece of work: a bar that is drawn over itself on a terminal, a plain line for every tenth elsewhere.
final class ProgressLine: Sendable {
    private struct State {
        var lastTenth = 0
        var isDone = false
    }
    private static let isDrawn = Mutex(false)
    private static let barWidth = 24
    /// An estimate from less time than this jumps about.
    private static let estimateAfter = Duration.seconds(2)

    private let label: String
    private let started = ContinuousClock.now
    private let state = Mutex(State())

    init(_ label: String) { self.label = Output.printable(label) }

    func show(_ progress: MediaProgress) {
        state.withLock { state in
            guard !state.isDone else { return }
            if Output.isTerminal {
                Self.isDrawn.withLock { $0 = true }
                Output.draw("\r\u{1B}[K" + Self.bar(label, progress, elapsed: .now - started))
            } else {
                let tenth = Int(progress.fraction * 10)
                guard tenth > state.lastTenth else { return }
                state.lastTenth = tenth
                let frames = progress.frames > 0 ? ", \(progress.frames) frames" : ""
                Output.draw("\(label): \(tenth * 10) %\(frames)\n")
            }
        }
    }

    /// Removes the bar.
    func end() {
        state.withLock { $0.isDone = true }
        Output.draw(Self.cleared())
    }

    /// What takes a bar off the line before something else is said there.
    static func cleared() -> String {
        isDrawn.withLock { isDrawn in
            defer { isDrawn = false }
            return isDrawn ? "\r\u{1B}[K" : ""
        }
    }

    static func bar(_ label: String, _ progress: MediaProgress, elapsed: Duration) -> String {
        let filled = Int((progress.fraction * Double(barWidth)).rounded(.down))
        let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: barWidth - filled)
        var text = "\(label) \(bar) \(Int(progress.fraction * 100)) %"
        if progress.frames > 0 { text += ", \(progress.frames) frames" }
        if elapsed > estimateAfter, progress.fraction > 0.02, progress.fraction < 1 {
            let left = (elapsed / .seconds(1)) * (1 - progress.fraction) / progress.fraction
            text += ", \(Duration.seconds(left).clock) left"
        }
        return text
    }
}

extension Duration {
    /// `1:02:03` or `2:03`.
    var clock: String {
        let seconds = Int(components.seconds)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let (hours, minutes) = (seconds / 3600, seconds / 60 % 60)
        return hours > 0 ? "\(hours):\(two(minutes)):\(two(seconds % 60))" : "\(minutes):\(two(seconds % 60))"
    }
}
