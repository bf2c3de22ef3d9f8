import FFmpeg
import Vocabulary

/// Encodes one sound track, or two of one channel as left and right, once for all renditions.
final class SoundEncoder {
    let encoder: Encoder
    private let tracks: [SoundTrack]
    private let join: StereoJoin
    private let packet: Packet
    private let meter: LoudnessMeter
    private let sampleRate: Int
    /// Samples given to the encoder.
    private var written: Int64 = 0
    /// Encoded.
    private(set) var packets = 0
    private(set) var loudness: TranscodeReport.Loudness?

    private init(
        encoder: consuming Encoder, tracks: [SoundTrack], join: StereoJoin, packet: consuming Packet,
        meter: LoudnessMeter, sampleRate: Int
    ) {
        self.encoder = encoder
        self.tracks = tracks
        self.join = join
        self.packet = packet
        self.meter = meter
        self.sampleRate = sampleRate
    }

    static func open(_ demuxer: borrowing Demuxer, plan: TranscodePlan.Sound, origin: Double) throws(Failure)
        -> SoundEncoder
    {
        let encoder = try Encoder.aac(sampleRate: plan.sampleRate, channels: plan.channels, bitRate: plan.bitRate)
        let frameSamples = encoder.frameSamples
        var tracks: [SoundTrack] = []
        for stream in plan.streams {
            tracks.append(
                try SoundTrack.open(demuxer, stream: stream, plan: plan, frameSamples: frameSamples, origin: origin))
        }
        return SoundEncoder(
            encoder: encoder, tracks: tracks, join: StereoJoin(sampleRate: plan.sampleRate),
            packet: try Packet.allocate(), meter: try LoudnessMeter(), sampleRate: plan.sampleRate)
    }

    /// Seconds of the output.
    var end: Double { Double(written) / Double(sampleRate) }
    var isRefused: Bool { tracks.contains(where: \.isRefused) }
    var damagedPackets: Int { tracks.reduce(0) { $0 + $1.damagedPackets } }

    /// - Parameters:
    ///   - source: of one of the planned streams.
    ///   - write: gets every finished packet, in the encoder's time base.
    func take(_ source: borrowing Packet, write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        guard let number = tracks.firstIndex(where: { $0.stream == source.stream }) else { return }
        try tracks[number].take(source) { (frame) throws(Failure) in try self.take(frame, of: number, write) }
    }

    func finish(write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        for (number, track) in tracks.enumerated() {
            try track.finish { (frame) throws(Failure) in try self.take(frame, of: number, write) }
        }
        while let joined = try join.rest() { try encode(joined, write) }
        try encoder.finish()
        try drainEncoder(write)
        loudness = try meter.finish()
    }

    private func take(
        _ frame: borrowing Frame, of track: Int, _ write: (borrowing Packet) throws(Failure) -> Void
    ) throws(Failure) {
        guard tracks.count > 1 else { return try encode(frame, write) }
        if let joined = try join.take(frame, isRight: track > 0) { try encode(joined, write) }
    }

    private func encode(
        _ frame: borrowing Frame, _ write: (borrowing Packet) throws(Failure) -> Void
    ) throws(Failure) {
        written = (frame.pts ?? written) + Int64(frame.samples)
        try meter.take(frame)
        try encoder.send(frame)
        try drainEncoder(write)
    }

    private func drainEncoder(_ write: (borrowing Packet) throws(Failure) -> Void) throws(Failure) {
        while try encoder.receive(into: packet) {
            packets += 1
            try write(packet)
            packet.unreference()
        }
    }
}
