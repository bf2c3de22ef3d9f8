import Foundation
import Glibc
import Ingest
import Synchronization
import Vocabulary

/// What a person sees of an ingest: on a terminal a bar an item in work, drawn over itself, with finished items above; elsewhere a plain line
/// whenever an item has come further.
final class IngestDisplay: Sendable {
    private struct State {
        var active: [ItemProgress] = []
        var said: [ItemID: (state: ItemState, tenth: Int, waiting: String?)] = [:]
        var waiting: String?
        /// Lines of the block on the screen.
        var drawnCount = 0
        var lastDrawn: ContinuousClock.Instant?
        var isOver = false
    }

    private let isTerminal: Bool
    private let state = Mutex(State())
    /// Between two drawings of the block.
    private static let drawInterval = Duration.milliseconds(100)
    /// Bars at once; more items are only counted.
    private static let barCountMax = 8

    init(isTerminal: Bool) { self.isTerminal = isTerminal }

    func announce(_ report: EnrolReport) {
        for line in IngestWords.enrolled(report) { Output.say(line) }
    }

    func show(_ event: BoxEvent) {
        state.withLock { state in
            guard !state.isOver else { return }
            switch event {
            case .item(let progress): took(progress, &state)
            case .waiting(let reason):
                guard state.waiting != reason else { return }
                state.waiting = reason
                if let reason { say("waiting: \(reason)", &state) }
            case .following(let process):
                say(
                    "another rushes\(process.map { " (process \($0))" } ?? "") works on this home; your files are in its queue.",
                    &state)
            case .tookOver: say("the other one has ended; going on here.", &state)
            case .note(let text): say(text, &state)
            }
        }
    }

    func end() {
        state.withLock { state in
            erase(&state)
            state.isOver = true
        }
    }

    private func took(_ progress: ItemProgress, _ state: inout State) {
        let before = state.said[progress.id]
        let tenth = Int((progress.fraction ?? 0) * 10)
        if isTerminal { Self.update(&state.active, by: progress) }
        // That an item waits for its turn is no news: the announcement has counted it.
        let isNews =
            before?.state != progress.state && progress.state != .picked
            || progress.waiting != nil && before?.waiting != progress.waiting
        state.said[progress.id] = (progress.state, tenth, progress.waiting ?? before?.waiting)
        if isTerminal {
            if isNews, progress.state.isFinal { say(IngestWords.line(progress), &state) }
            draw(&state)
        } else if isNews || (tenth > (before?.tenth ?? 0) && progress.bytes >= IngestWords.largeBytes) {
            say(IngestWords.line(progress), &state)
        }
    }

    /// Each keeps its line until it is at its end.
    private static func update(_ active: inout [ItemProgress], by progress: ItemProgress) {
        switch (active.firstIndex { $0.id == progress.id }, progress.state.isFinal) {
        case (let index?, true): active.remove(at: index)
        case (let index?, false): active[index] = progress
        case (nil, true): break
        case (nil, false): active.append(progress)
        }
    }

    private func say(_ line: String, _ state: inout State) {
        erase(&state)
        Output.say(line)
        draw(&state, isForced: true)
    }

    private func erase(_ state: inout State) {
        guard state.drawnCount > 0 else { return }
        Output.draw("\u{1B}[\(state.drawnCount)A\r\u{1B}[J")
        state.drawnCount = 0
    }

    private func draw(_ state: inout State, isForced: Bool = false) {
        guard isTerminal else { return }
        let now = ContinuousClock.now
        if !isForced, let last = state.lastDrawn, now - last < Self.drawInterval { return }
        state.lastDrawn = now
        erase(&state)
        let width = Self.terminalWidth()
        var lines = state.active.prefix(Self.barCountMax).map { IngestWords.bar($0, width: width) }
        if state.active.count > Self.barCountMax { lines.append("… and \(state.active.count - Self.barCountMax) more") }
        Output.draw(lines.map { $0 + "\n" }.joined())
        state.drawnCount = lines.count
    }

    private static func terminalWidth() -> Int {
        var size = winsize()
        guard ioctl(STDERR_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 20 else { return 80 }
        return Int(size.ws_col)
    }
}
