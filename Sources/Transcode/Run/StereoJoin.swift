import FFmpeg
import Vocabulary

/// Puts two tracks of one channel beside each other as left and right. Both begin at the output's 0 and come in frames of one length, so that
/// frames of the same number belong together.
final class StereoJoin {
    /// Frames by which one track may be ahead of the other in the file; after that the other counts as silent there. A minute and a half in
    /// frames of AAC, 16 MiB.
    static let aheadMax = 4096

    private let sampleRate: Int
    /// Of the track that is ahead, oldest first.
    private var waiting: [[Float]] = []
    private var waitingIsRight = false
    /// Frames of the other track that were taken for silent, and are too late when they come.
    private var late = 0
    private var position: Int64 = 0

    init(sampleRate: Int) { self.sampleRate = sampleRate }

    /// - Parameter frame: one channel of planar floats.
    /// - Returns: the next stretch of both, where it is complete.
    func take(_ frame: borrowing Frame, isRight: Bool) throws(Failure) -> Frame? {
        let count = frame.samples
        let samples =
            frame.withPlane(0) { first, _ in
                first.withMemoryRebound(to: Float.self, capacity: count) {
                    Array(UnsafeBufferPointer(start: $0, count: count))
                }
            } ?? []
        if waiting.isEmpty, late == 0 { waitingIsRight = isRight }
        guard isRight == waitingIsRight else {
            guard late == 0 else {
                late -= 1
                return nil
            }
            return try joined(waiting.removeFirst(), samples)
        }
        waiting.append(samples)
        guard waiting.count > Self.aheadMax else { return nil }
        late += 1
        return try joined(waiting.removeFirst(), [])
    }

    /// - Returns: what is left of the longer track, frame by frame.
    func rest() throws(Failure) -> Frame? {
        waiting.isEmpty ? nil : try joined(waiting.removeFirst(), [])
    }

    /// The shorter one ends in silence.
    private func joined(_ ahead: [Float], _ other: [Float]) throws(Failure) -> Frame {
        let channels = waitingIsRight ? [other, ahead] : [ahead, other]
        let count = max(ahead.count, other.count)
        let frame = try Frame.allocate(samples: count, channels: 2, sampleRate: sampleRate)
        for (number, channel) in channels.enumerated() {
            frame.withPlane(number) { first, _ in
                first.withMemoryRebound(to: Float.self, capacity: count) { target in
                    target.update(from: channel, count: channel.count)
                    (target + channel.count).update(repeating: 0, count: count - channel.count)
                }
            }
        }
        frame.pts = position
        position += Int64(count)
        return frame
    }
}
