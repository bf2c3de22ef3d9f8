/// Collects when the frames of a stream are shown, in decoding order, without keeping them all.
struct TimingSurvey {
    /// Frames that may stand between decoding and showing order; H.264 and HEVC allow 16.
    static let reorderMax = 64

    private var window: [Int64] = []
    private var previous: Int64?
    private(set) var frames = 0
    /// Of those, the ones whose time the container says.
    private(set) var timed = 0
    private(set) var first: Int64?
    private(set) var last: Int64?
    private(set) var intervalMin: Int64?
    private(set) var intervalMax: Int64?
    /// Where the last frame ends by its own duration.
    private(set) var end: Int64?

    mutating func add(_ time: Int64, duration: Int64) {
        frames += 1
        timed += 1
        first = first.map { min($0, time) } ?? time
        last = last.map { max($0, time) } ?? time
        end = end.map { max($0, time + duration) } ?? time + duration
        let position = window.lastIndex { $0 <= time }.map { $0 + 1 } ?? 0
        window.insert(time, at: position)
        if window.count > Self.reorderMax { take(window.removeFirst()) }
    }

    /// The last frame stands longer than it says itself.
    mutating func lengthen(to time: Int64) { end = end.map { max($0, time) } }

    /// A frame whose time the container does not say.
    mutating func addWithoutTime() { frames += 1 }

    mutating func finish() {
        window.forEach { take($0) }
        window = []
    }

    mutating func shift(by ticks: Int64) {
        first = first.map { $0 + ticks }
        last = last.map { $0 + ticks }
        end = end.map { $0 + ticks }
    }

    private mutating func take(_ time: Int64) {
        if let previous, time > previous {
            let interval = time - previous
            intervalMin = min(intervalMin ?? interval, interval)
            intervalMax = max(intervalMax ?? interval, interval)
        }
        previous = time
    }

    /// Intervals that differ by more than rounding to the time base explains.
    var isVariable: Bool {
        guard let intervalMin, let intervalMax else { return false }
        return Double(intervalMax - 1) / Double(intervalMin + 1) > variableRatio
    }
    private let variableRatio = 1.25
}
