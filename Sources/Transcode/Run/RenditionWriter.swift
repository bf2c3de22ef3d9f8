import FFmpeg
import Vocabulary

/// Makes one rendition: filters decoded frames, encodes them, and writes them with the sound into an MP4.
final class RenditionWriter {
    let rendition: TranscodePlan.Rendition
    private let timeBase: Rational
    private let encoderTimeBase: Rational
    private let rate: Rational
    private let threads: Int
    private let encoder: Encoder
    private let muxer: Muxer
    private let videoStream: Int
    private let soundStream: Int?
    private let packet: Packet
    private let filtered: Frame
    /// One frame waits for the next one's time, which ends it.
    private let held: Frame
    private var heldTime: Int64?

    /// Made from this one's pictures.
    var smaller: RenditionWriter?
    var stills: Stills?

    private var graph: FilterGraph?
    private var graphShape: FrameShape?
    private var graphTimeBase = Rational(0, 1)
    /// Durations of the frames inside the encoder, by time.
    private var durations: [Int64: Int64] = [:]
    private var keyframeAt: Int64 = 0
    private var lastInterval: Int64 = 0

    private(set) var frames = 0
    /// Seconds, where the last picture ends.
    private(set) var end = 0.0

    private init(
        _ rendition: TranscodePlan.Rendition, _ plan: TranscodePlan.Encode, encoderTimeBase: Rational, threads: Int,
        encoder: consuming Encoder, muxer: consuming Muxer, videoStream: Int, soundStream: Int?,
        packet: consuming Packet,
        filtered: consuming Frame, held: consuming Frame
    ) {
        self.rendition = rendition
        timeBase = plan.timeBase
        self.encoderTimeBase = encoderTimeBase
        rate = plan.rate
        self.threads = threads
        self.encoder = encoder
        self.muxer = muxer
        self.videoStream = videoStream
        self.soundStream = soundStream
        self.packet = packet
        self.filtered = filtered
        self.held = held
    }

    /// - Parameter descriptor: open for reading and writing, empty.
    static func open(
        _ rendition: TranscodePlan.Rendition, of plan: TranscodePlan.Encode, settings: TranscodeSettings,
        motionRefinement: Int?, threads: ThreadPlan, descriptor: Int32, bytesMax: Int, sound: SoundEncoder?
    ) throws(Failure) -> RenditionWriter {
        // Half a tick of the source: deinterlacing puts a second field between two frames.
        let encoderTimeBase = plan.timeBase.scaled(by: 1, over: 2)
        let encoder = try Encoder.h264(
            Encoder.H264(
                width: rendition.width, height: rendition.height, timeBase: encoderTimeBase, rate: plan.rate,
                preset: settings.preset, crf: settings.crf, keyframeIntervalMax: keyframeIntervalMax(plan.rate),
                threads: threads.encoder, motionRefinement: motionRefinement))
        let muxer = try Muxer.mp4(descriptor, bytesMax: bytesMax)
        let videoStream = try muxer.addStream(from: encoder)
        let soundStream: Int?
        if let sound { soundStream = try muxer.addStream(from: sound.encoder) } else { soundStream = nil }
        try muxer.writeHeader()
        return RenditionWriter(
            rendition, plan, encoderTimeBase: encoderTimeBase, threads: threads.filter, encoder: encoder,
            muxer: muxer,
            videoStream: videoStream, soundStream: soundStream, packet: try Packet.allocate(),
            filtered: try Frame.allocate(),
            held: try Frame.allocate())
    }

    /// Key frames are asked for by time; this only bounds the stretch where times are strange.
    private static func keyframeIntervalMax(_ rate: Rational) -> Int {
        let slack = 4.0
        return max(250, Int(rate.double * TranscodePlan.keyframeInterval * slack))
    }

    /// - Parameter frame: decoded, its time counting from the output's beginning in the plan's time base.
    func take(_ frame: borrowing Frame) throws(Failure) {
        try take(frame, timeBase: timeBase)
    }

    private func take(_ frame: borrowing Frame, timeBase: Rational) throws(Failure) {
        let shape = FrameShape(frame)
        if graphShape != shape {
            try finishGraph()
            graph = try FilterGraph.video(
                like: frame, timeBase: timeBase, rate: Rational(0, 1), chain: rendition.chain(of: shape).description,
                threads: threads)
            graphShape = shape
        }
        try graph?.push(frame)
        graphTimeBase = graph?.timeBase ?? timeBase
        try drainGraph()
    }

    /// - Parameters:
    ///   - packet: of encoded sound; it stays the caller's.
    ///   - timeBase: of its times.
    func take(sound: borrowing Packet, timeBase: Rational) throws(Failure) {
        guard let soundStream else { return }
        let copy = try Packet.allocate()
        try copy.takeReference(to: sound)
        try muxer.write(copy, stream: soundStream, timeBase: timeBase)
    }

    /// Writes what is still inside the filters and the encoder.
    /// - Parameter end: seconds, where the source's last picture ends.
    func finishPictures(end: Double) throws(Failure) {
        try finishGraph()
        if let time = heldTime {
            let shown = encoderTimeBase.ticks(end) - time
            let usual = max(lastInterval, 1)
            try encodeHeld(duration: shown > 0 ? shown : usual)
        }
        try encoder.finish()
        try drainEncoder()
        try smaller?.finishPictures(end: end)
    }

    func finishFile() throws(Failure) { try muxer.finish() }

    private func finishGraph() throws(Failure) {
        guard graph != nil else { return }
        try graph?.finish()
        try drainGraph()
        graph = nil
        graphShape = nil
    }

    private func drainGraph() throws(Failure) {
        while try graph?.pull(into: filtered) ?? false {
            defer { filtered.unreference() }
            guard let ticks = filtered.pts.map({ graphTimeBase.convert($0, to: encoderTimeBase) }) else { continue }
            if let time = heldTime {
                // Two pictures at one instant: the first was never seen.
                guard ticks > time else { continue }
                lastInterval = ticks - time
                try encodeHeld(duration: lastInterval)
            }
            try held.takeReference(to: filtered)
            heldTime = ticks
        }
    }

    private func encodeHeld(duration: Int64) throws(Failure) {
        guard let time = heldTime else { return }
        held.pts = time
        let isKey = time >= keyframeAt
        held.set(forcesKeyframe: isKey)
        if isKey {
            let interval = encoderTimeBase.ticks(TranscodePlan.keyframeInterval)
            keyframeAt = (time / interval + 1) * interval
        }
        durations[time] = duration
        frames += 1
        let shownUntil = encoderTimeBase.seconds(time + duration)
        end = max(end, shownUntil)
        try encoder.send(held)
        try smaller?.take(held, timeBase: encoderTimeBase)
        try stills?.take(held, from: encoderTimeBase.seconds(time), to: shownUntil)
        heldTime = nil
        try drainEncoder()
    }

    private func drainEncoder() throws(Failure) {
        while try encoder.receive(into: packet) {
            if let time = packet.pts, let duration = durations.removeValue(forKey: time) { packet.duration = duration }
            try muxer.write(packet, stream: videoStream, timeBase: encoderTimeBase)
        }
    }
}
