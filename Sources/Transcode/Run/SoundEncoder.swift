import FFmpeg
import Vocabulary

/// Decodes one sound track, brings it onto the output's clock and layout, and encodes it once for all renditions.
final class SoundEncoder {
    /// Seconds of silence that a gap may stand for; a longer one is a damaged time.
    static let gapMax = 600.0

    let encoder: Encoder
    private let decoder: Decoder
    private let plan: TranscodePlan.Sound
    private let codec: String?
    private let timeBase: Rational
    private let origin: Double
    private let frame: Frame
    private let filtered: Frame
    private let packet: Packet
    private let meter: LoudnessMeter
    private var graph: FilterGraph?
    private var graphShape: SoundShape?
    /// Where the next frame should begin, in samples of the source; for frames without a time.
    private var expected: Int64 = 0
    /// Samples of the output given to the encoder.
    private var written: Int64 = 0
    private(set) var damagedPackets = 0
    /// Encoded.
    private(set) var packets = 0

    private init(
        encoder: consuming Encoder, decoder: consuming Decoder, plan: TranscodePlan.Sound, codec: String?,
        timeBase: Rational, origin: Double,
        frame: consuming Frame, filtered: consuming Frame, packet: consuming Packet, meter: LoudnessMeter
    ) {
        self.encoder = encoder
        self.decoder = decoder
        self.plan = plan
        self.codec = codec
        self.timeBase = timeBase
        self.origin = origin
        self.frame = frame
        self.filtered = filtered
        self.packet = packet
        self.meter = meter
    }

    static func open(_ demuxer: borrowing Demuxer, plan: TranscodePlan.Sound, origin: Double) throws(Failure)
        -> SoundEncoder
    {
        let stream = demuxer.stream(plan.stream)
        return SoundEncoder(
            encoder: try Encoder.aac(sampleRate: plan.sampleRate, channels: plan.channels, bitRate: plan.bitRate),
            decoder: try Decoder.open(demuxer, stream: plan.stream, threads: 1, pixelCountMax: 1), plan: plan,
            codec: stream.codec, timeBase: stream.timeBase, origin: origin, frame: try Frame.allocate(),
            filtered: try Frame.allocate(),
            packet: try Packet.allocate(), meter: try LoudnessMeter())
    }

    /// Seconds of the output.
    var end: Double { Double(written) / Double(plan.sampleRate) }
    private(set) var loudness: TranscodeReport.Loudness?

    /// - Parameter write: gets every finished packet, in the encoder's time base.
    func take(_ source: borrowing Packet, write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        guard let sizes = source.withBytes({ AMRFrames.sizes(Array($0), codec: codec) }) else {
            return try decode(source, write)
        }
        let piece = try Packet.allocate()
        var offset = 0
        for (number, size) in sizes.enumerated() {
            try piece.takeReference(to: source)
            piece.narrow(to: offset, count: size)
            piece.pts = source.pts.map { $0 + timeBase.ticks(AMRFrames.duration * Double(number)) }
            piece.dts = piece.pts
            offset += size
            try decode(piece, write)
        }
    }

    private func decode(_ source: borrowing Packet, _ write: (borrowing Packet) throws(Failure) -> Void) throws(Failure)
    {
        if try decoder.send(source) == .damaged { damagedPackets += 1 }
        try drainDecoder(write)
    }

    func finish(write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        try decoder.finish()
        try drainDecoder(write)
        try finishGraph(write, padsLast: false)
        try encoder.finish()
        try drainEncoder(write)
        loudness = try meter.finish()
    }

    private func drainDecoder(_ write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        while true {
            switch try decoder.receive(into: frame) {
            case .needsInput, .end: return
            case .damaged: damagedPackets += 1
            case .frame:
                defer { frame.unreference() }
                guard frame.sampleRate > 0, frame.samples > 0, frame.channels > 0 else { continue }
                try filter(write)
            }
        }
    }

    private func filter(_ write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        let shape = SoundShape(frame)
        let samples = Rational(1, Int32(frame.sampleRate))
        if graphShape != shape {
            try finishGraph(write, padsLast: true)
            graph = try FilterGraph.audio(
                like: frame, timeBase: samples, chain: plan.chain(from: written), frameSamples: encoder.frameSamples)
            if let graphShape { expected = Rational(1, Int32(graphShape.sampleRate)).convert(expected, to: samples) }
            graphShape = shape
        }
        let claimed = frame.bestTimestamp.map { timeBase.convert($0, to: samples) - samples.ticks(origin) } ?? expected
        let isPlausible = abs(samples.seconds(claimed - expected)) <= Self.gapMax
        let time = isPlausible ? claimed : expected
        frame.pts = time
        expected = time + Int64(frame.samples)
        try graph?.push(frame)
        try drainGraph(write)
    }

    /// - Parameter padsLast: more sound follows, and the encoder takes a short frame only as its very last.
    private func finishGraph(
        _ write: (borrowing Packet) throws(Failure) -> Void, padsLast: Bool
    ) throws(Failure) {
        guard graph != nil else { return }
        try graph?.finish()
        try drainGraph(write, pads: padsLast)
        graph = nil
    }

    private func drainGraph(
        _ write: (borrowing Packet) throws(Failure) -> Void, pads: Bool = false
    ) throws(Failure) {
        while try graph?.pull(into: filtered) ?? false {
            defer { filtered.unreference() }
            if pads, filtered.samples < encoder.frameSamples {
                try filtered.padWithSilence(to: encoder.frameSamples)
            }
            // What follows a change of format may overlap by the filters' own delay.
            filtered.pts = max(filtered.pts ?? written, written)
            written = (filtered.pts ?? written) + Int64(filtered.samples)
            try meter.take(filtered)
            try encoder.send(filtered)
            try drainEncoder(write)
        }
    }

    private func drainEncoder(_ write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        while try encoder.receive(into: packet) {
            packets += 1
            try write(packet)
            packet.unreference()
        }
    }
}

/// What a graph of sound was made for.
struct SoundShape: Equatable {
    var sampleRate: Int
    var channels: Int
    var format: Int32
    init(_ frame: borrowing Frame) {
        sampleRate = frame.sampleRate
        channels = frame.channels
        format = frame.sampleFormat
    }
}
