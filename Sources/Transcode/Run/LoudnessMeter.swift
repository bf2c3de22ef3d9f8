import FFmpeg
import Vocabulary

/// Measures loudness by EBU R 128 while sound passes by.
final class LoudnessMeter {
    /// The absolute gate of ITU-R BS.1770: what stays below is silence.
    private static let gate = -70.0

    private let measured: Frame
    private var graph: FilterGraph?
    private var last: (integrated: Double, range: Double)?

    init() throws(Failure) { measured = try Frame.allocate() }

    /// - Parameter sound: all of one format; it stays the caller's.
    func take(_ sound: borrowing Frame) throws(Failure) {
        if graph == nil {
            graph = try FilterGraph.audio(
                like: sound, timeBase: Rational(1, Int32(sound.sampleRate)), chain: "ebur128=metadata=1",
                frameSamples: 0)
        }
        try graph?.push(sound)
        try drain()
    }

    func finish() throws(Failure) -> TranscodeReport.Loudness? {
        try graph?.finish()
        try drain()
        graph = nil
        guard let last, last.integrated > Self.gate else { return nil }
        return TranscodeReport.Loudness(
            integrated: (last.integrated * 10).rounded() / 10, range: (last.range * 10).rounded() / 10)
    }

    private func drain() throws(Failure) {
        while try graph?.pull(into: measured) ?? false {
            defer { measured.unreference() }
            guard let integrated = measured.metadata("lavfi.r128.I").flatMap(Double.init),
                let range = measured.metadata("lavfi.r128.LRA").flatMap(Double.init)
            else { continue }
            last = (integrated, range)
        }
    }
}
