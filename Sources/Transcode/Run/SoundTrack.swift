import FFmpeg
import Vocabulary

/// Decodes one sound track and brings it onto the output's clock, rate and layout.
final class SoundTrack {
    /// Seconds of silence that a gap may stand for; a longer one is a damaged time.
    static let gapMax = 600.0

    let stream: Int
    private let decoder: Decoder
    private let plan: TranscodePlan.Sound
    private let frameSamples: Int
    private let codec: String?
    private let timeBase: Rational
    private let origin: Double
    private let frame: Frame
    private let filtered: Frame
    private var graph: FilterGraph?
    private var graphShape: SoundShape?
    private var mix = SoundMix.byName
    /// Where the next frame should begin, in samples of the source; for frames without a time.
    private var expected: Int64 = 0
    /// Samples of the output given away.
    private var written: Int64 = 0
    private(set) var damagedPackets = 0
    /// The libraries refused to convert it from somewhere on.
    private(set) var isRefused = false

    private init(
        stream: Int, decoder: consuming Decoder, plan: TranscodePlan.Sound, frameSamples: Int, codec: String?,
        timeBase: Rational, origin: Double, frame: consuming Frame, filtered: consuming Frame
    ) {
        self.stream = stream
        self.decoder = decoder
        self.plan = plan
        self.frameSamples = frameSamples
        self.codec = codec
        self.timeBase = timeBase
        self.origin = origin
        self.frame = frame
        self.filtered = filtered
    }

    /// - Parameter frameSamples: of every frame that comes out, but the last.
    static func open(
        _ demuxer: borrowing Demuxer, stream index: Int, plan: TranscodePlan.Sound, frameSamples: Int, origin: Double
    ) throws(Failure) -> SoundTrack {
        let stream = demuxer.stream(index)
        return SoundTrack(
            stream: index, decoder: try Decoder.open(demuxer, stream: index, threads: 1, pixelCountMax: 1), plan: plan,
            frameSamples: frameSamples, codec: stream.codec, timeBase: stream.timeBase, origin: origin,
            frame: try Frame.allocate(), filtered: try Frame.allocate())
    }

    /// - Parameter give: gets every frame in the output's time base of one sample; it stays this track's.
    func take(
        _ source: borrowing Packet, give: (borrowing Frame) throws(Failure) -> Void
    ) throws(Failure) {
        guard let sizes = source.withBytes({ AMRFrames.sizes(Array($0), codec: codec) }) else {
            return try decode(source, give)
        }
        let piece = try Packet.allocate()
        var offset = 0
        for (number, size) in sizes.enumerated() {
            try piece.takeReference(to: source)
            piece.narrow(to: offset, count: size)
            piece.pts = source.pts.map { $0 + timeBase.ticks(AMRFrames.duration * Double(number)) }
            piece.dts = piece.pts
            offset += size
            try decode(piece, give)
        }
    }

    func finish(give: (borrowing Frame) throws(Failure) -> Void) throws(Failure) {
        try decoder.finish()
        try drainDecoder(give)
        try finishGraph(give, padsLast: false)
    }

    private func decode(_ source: borrowing Packet, _ give: (borrowing Frame) throws(Failure) -> Void) throws(Failure) {
        if try decoder.send(source) == .damaged { damagedPackets += 1 }
        try drainDecoder(give)
    }

    private func drainDecoder(_ give: (borrowing Frame) throws(Failure) -> Void) throws(Failure) {
        while true {
            switch try decoder.receive(into: frame) {
            case .needsInput, .end: return
            case .damaged: damagedPackets += 1
            case .frame:
                defer { frame.unreference() }
                guard frame.sampleRate > 0, frame.samples > 0, frame.channels > 0 else { continue }
                try filter(give)
            }
        }
    }

    private func filter(_ give: (borrowing Frame) throws(Failure) -> Void) throws(Failure) {
        guard !isRefused else { return }
        let shape = SoundShape(frame)
        if shape.places != graphShape?.places {
            mix = SoundMix(shape.places, codec: codec, hasStereoMix: frame.hasStereoMix)
        }
        mix.prepare(frame)
        let samples = Rational(1, Int32(frame.sampleRate))
        if graphShape != shape {
            try finishGraph(give, padsLast: true)
            do {
                graph = try FilterGraph.audio(
                    like: frame, timeBase: samples, chain: plan.chain(from: written, mix, channels: shape.places.count),
                    frameSamples: frameSamples)
            } catch {
                // The pictures come out whatever the sound is like.
                guard error.code == .internalError || error.code == .corrupt else { throw error }
                isRefused = true
                return
            }
            if let graphShape { expected = Rational(1, Int32(graphShape.sampleRate)).convert(expected, to: samples) }
            graphShape = shape
        }
        let claimed = frame.bestTimestamp.map { timeBase.convert($0, to: samples) - samples.ticks(origin) } ?? expected
        let isPlausible = abs(samples.seconds(claimed - expected)) <= Self.gapMax
        let time = isPlausible ? claimed : expected
        frame.pts = time
        expected = time + Int64(frame.samples)
        try graph?.push(frame)
        try drainGraph(give)
    }

    /// - Parameter padsLast: more sound follows, and the encoder takes a short frame only as its very last.
    private func finishGraph(
        _ give: (borrowing Frame) throws(Failure) -> Void, padsLast: Bool
    ) throws(Failure) {
        guard graph != nil else { return }
        try graph?.finish()
        try drainGraph(give, pads: padsLast)
        graph = nil
    }

    private func drainGraph(
        _ give: (borrowing Frame) throws(Failure) -> Void, pads: Bool = false
    ) throws(Failure) {
        while try graph?.pull(into: filtered) ?? false {
            defer { filtered.unreference() }
            if pads, filtered.samples < frameSamples { try filtered.padWithSilence(to: frameSamples) }
            // What follows a change of format may overlap by the filters' own delay.
            filtered.pts = max(filtered.pts ?? written, written)
            written = (filtered.pts ?? written) + Int64(filtered.samples)
            try give(filtered)
        }
    }
}

/// What a graph of sound was made for.
struct SoundShape: Equatable {
    var sampleRate: Int
    var places: ChannelPlaces
    var format: Int32
    init(_ frame: borrowing Frame) {
        sampleRate = frame.sampleRate
        places = frame.places
        format = frame.sampleFormat
    }
}
