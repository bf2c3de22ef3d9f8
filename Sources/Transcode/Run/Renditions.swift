import FFmpeg
import Vocabulary

/// How closely x264 follows motion in the smaller renditions: one step less than its presets do. Measured for veryfast alone, on a 4K clip: at
/// 720p this takes a third off the encoder's processor time for 3 % more bytes at the same SSIM.
enum MotionRefinement {
    /// x264's `subme` by preset, which has one more itself (x264 --fullhelp). Ultrafast and superfast stay as
    /// they are.
    static let ofSmaller = [
        "veryfast": 1, "faster": 3, "fast": 5, "medium": 6, "slow": 7, "slower": 8, "veryslow": 9,
    ]
}

/// All that is made from one sequence of pictures: the largest rendition, the smaller ones from its pictures, and the stills.
final class Renditions {
    private let encode: TranscodePlan.Encode
    private let outputs: OutputFiles
    private let writers: [RenditionWriter]
    private let stills: Stills?

    private init(
        _ encode: TranscodePlan.Encode, outputs: OutputFiles, writers: [RenditionWriter], stills: Stills?
    ) {
        self.encode = encode
        self.outputs = outputs
        self.writers = writers
        self.stills = stills
    }

    static func open(
        _ plan: TranscodePlan, encode: TranscodePlan.Encode, settings: TranscodeSettings, threads: ThreadPlan,
        limits: MediaLimits, outputs: OutputFiles, sound: SoundEncoder?
    ) throws(Failure) -> Renditions {
        var writers: [RenditionWriter] = []
        let stills = try Stills.open(plan.stills)
        var threads = threads
        for rendition in encode.renditions {
            // The smaller ones are encoded beside the largest, which keeps the cores busy.
            if !writers.isEmpty { threads.encoder = max(1, threads.encoder / 2) }
            let writer = try RenditionWriter.open(
                rendition, of: encode, settings: settings,
                motionRefinement: writers.isEmpty ? nil : MotionRefinement.ofSmaller[settings.preset], threads: threads,
                descriptor: try outputs.open(rendition.name), bytesMax: limits.outputBytesMax, sound: sound)
            // Each from the next larger one's pictures, which are the fewest that have all of its detail.
            if let larger = writers.last { larger.smaller = writer } else { writer.stills = stills }
            writers.append(writer)
        }
        return Renditions(encode, outputs: outputs, writers: writers, stills: stills)
    }

    /// - Parameter frame: decoded, its time counting from the output's beginning in the plan's time base.
    func take(_ frame: borrowing Frame) throws(Failure) { try writers.first?.take(frame) }

    func take(sound packet: borrowing Packet, timeBase: Rational) throws(Failure) {
        for writer in writers { try writer.take(sound: packet, timeBase: timeBase) }
    }

    /// - Parameter end: seconds, where the source's last picture ends.
    func finishPictures(end: Double) throws(Failure) { try writers.first?.finishPictures(end: end) }

    struct Made {
        var width: Int
        var height: Int
        var frames: Int
        /// Seconds.
        var end: Double
        var previewColor: String?
    }

    /// Checks every rendition before the first one counts.
    /// - Parameter soundEnd: seconds; nil without sound.
    /// - Throws: `output-invalid`, with nothing sealed.
    func finish(soundEnd: Double?) throws(Failure) -> Made {
        guard let first = writers.first else { preconditionFailure("a plan to encode has a rendition") }
        for writer in writers {
            try writer.finishFile()
            let rendition = writer.rendition
            try OutputCheck.verify(
                try outputs.open(rendition.name),
                OutputCheck.Expected(
                    width: rendition.width, height: rendition.height, frames: writer.frames, end: writer.end,
                    soundEnd: soundEnd, isOurs: true))
        }
        for writer in writers {
            let rendition = writer.rendition
            try outputs.seal(
                rendition.name, width: rendition.width, height: rendition.height, duration: writer.end)
        }
        let color = try stills?.finish(end: first.end, outputs: outputs)
        return Made(
            width: first.rendition.width, height: first.rendition.height, frames: first.frames, end: first.end,
            previewColor: color)
    }
}
