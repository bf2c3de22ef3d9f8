import FFmpeg
import Vocabulary

/// All pictures of a GIF, an animated PNG, or the film track of a HEIF or AVIF sequence, by FFmpeg.
final class SequenceReader: AnimationSource {
    /// Packets of other tracks, or without a picture, in a row.
    private static let packetCountMax = 4096
    private let demuxer: Demuxer
    private let decoder: Decoder
    private let stream: StreamDescription
    private let packet: Packet
    private let frame: Frame
    private let delays: [Double]
    /// How transparent each picture is, in a track of its own.
    private let alpha: SequenceReader?
    private var shown = 0
    private var hasFinished = false
    /// The picture before the one that was read last: its end is the other's beginning.
    private var held: (image: RGBAImage, time: Int64?, duration: Int64)?

    /// - Parameters:
    ///   - delays: seconds that each picture stands, where the library's word for it is not the file's.
    ///   - isAuxiliary: of the track that goes with the pictures' own.
    init(_ input: Int32, limits: MediaLimits, delays: [Double] = [], isAuxiliary: Bool = false) throws(Failure) {
        self.delays = delays
        // What repeats a sequence stands in its edit list; one turn is shown.
        demuxer = try Demuxer.open(input, usesEdits: false)
        let tracks = demuxer.streams.filter { $0.kind == .video }
        guard let found = tracks.first(where: { $0.isAuxiliary == isAuxiliary }) else {
            throw .corrupt("no picture track")
        }
        stream = found
        demuxer.keepOnly([found.index])
        let hasAlpha = !isAuxiliary && tracks.contains { $0.isAuxiliary }
        alpha = hasAlpha ? try SequenceReader(input, limits: limits, isAuxiliary: true) : nil
        decoder = try Decoder.open(demuxer, stream: found.index, threads: 1, pixelCountMax: limits.pixelCountMax)
        packet = try Packet.allocate()
        frame = try Frame.allocate()
    }

    /// - Returns: nil at the end.
    func next() throws(Failure) -> AnimationPicture? {
        while true {
            let read = try readFrame()
            let before = held
            held = read
            if let before { return picture(before, until: read?.time) }
            if read == nil { return nil }
        }
    }

    private func picture(_ read: (image: RGBAImage, time: Int64?, duration: Int64), until end: Int64?)
        -> AnimationPicture
    {
        defer { shown += 1 }
        let image = read.image
        if delays.indices.contains(shown) { return AnimationPicture(image: image, duration: delays[shown]) }
        var ticks = read.duration
        if let end, let time = read.time, end > time { ticks = end - time }
        let seconds = ticks > 0 ? stream.timeBase.seconds(ticks) : AnimationDelay.missing
        return AnimationPicture(image: image, duration: seconds)
    }

    private func readFrame() throws(Failure) -> (image: RGBAImage, time: Int64?, duration: Int64)? {
        for _ in 0..<Self.packetCountMax {
            switch try decoder.receive(into: frame) {
            case .frame:
                var image = try PictureDecoder.image(of: frame, matrix: stream.color.matrix)
                if let mask = try alpha?.readFrame()?.image { image.setAlpha(from: mask) }
                return (image, frame.bestTimestamp, frame.duration)
            case .end: return nil
            case .damaged: continue
            case .needsInput:
                if !hasFinished, try demuxer.readWhatCanBeRead(into: packet) {
                    if packet.stream == stream.index { _ = try decoder.send(packet) }
                    packet.unreference()
                } else {
                    hasFinished = true
                    try decoder.finish()
                }
            }
        }
        throw .corrupt("no picture in \(Self.packetCountMax) packets")
    }
}

extension RGBAImage {
    /// - Parameter mask: grey, white where nothing shines through.
    fileprivate mutating func setAlpha(from mask: RGBAImage) {
        guard mask.pixels.count == pixels.count else { return }
        for place in stride(from: 0, to: pixels.count, by: 4) { pixels[place + 3] = mask.pixels[place] }
        hasAlpha = true
    }
}
