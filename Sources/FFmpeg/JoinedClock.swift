/// Makes one clock of the several that follow each other where recordings were joined end to end: transport and program streams
/// (AVCHD, DVDs, broadcast) carry the time of their recorder, which jumps at every seam.
package struct JoinedClock {
    /// Microseconds without a packet on any track; longer is a seam, not a pause. As FFmpeg's own program has it.
    static let forwardMax: Int64 = 10_000_000
    /// Microseconds by which a packet may come before its predecessor's end.
    static let backwardMax: Int64 = 1_000_000
    /// Seams remembered; the tracks of one recording reach a seam soon after each other.
    static let offsetMax = 64

    private var offsets: [Int64] = [0]
    private var current: [Int: Int64] = [:]
    /// Where each track's last packet ended, on the made clock.
    private var ends: [Int: Int64] = [:]
    package private(set) var hasJumped = false

    package init() {}

    /// - Parameters:
    ///   - time: of decoding, in microseconds.
    /// - Returns: microseconds to add to the packet's times.
    package mutating func offset(stream: Int, time: Int64, duration: Int64) -> Int64 {
        var offset = current[stream] ?? offsets[offsets.count - 1]
        if let newest = ends.values.max() {
            let expected = ends[stream] ?? newest
            // A track that was silent for a while goes on with the others.
            let isAhead = time + offset - max(expected, newest) > Self.forwardMax
            let isBehind = ends[stream] != nil && time + offset - expected < -Self.backwardMax
            if isAhead || isBehind {
                hasJumped = true
                offset = offsets.last { abs(time + $0 - expected) <= Self.backwardMax } ?? remember(expected - time)
            }
        }
        current[stream] = offset
        ends[stream] = time + offset + duration
        return offset
    }

    private mutating func remember(_ offset: Int64) -> Int64 {
        offsets.append(offset)
        if offsets.count > Self.offsetMax { offsets.removeFirst() }
        return offset
    }
}
