import FFmpeg
import Vocabulary

/// Makes the stills of a video that is not decoded for anything else: from the key frames nearest to the wanted moments.
final class KeyframePass {
    /// Packets read after a jump until a key frame comes.
    static let packetMax = 2000
    /// Videos up to this many seconds are decoded whole where their key frames are too far apart to show what happens.
    static let wholeMax = 30.0
    /// Key frames so many tiles apart are too far.
    static let sparseTiles = 1.5

    /// How the pictures are reached, from the cheapest to the surest.
    private enum Way { case jumps, keyframesInPassing, everything }

    private let input: Int32
    private let video: VideoFacts
    private let plan: TranscodePlan
    private let limits: MediaLimits
    private let outputs: OutputFiles
    /// Of the pictures that the stills are made from.
    private let size: (width: Int, height: Int)
    private let frame: Frame
    private let held: Frame
    private var heldTime: Double?

    private init(
        _ input: Int32, _ video: VideoFacts, _ plan: TranscodePlan, _ limits: MediaLimits, _ outputs: OutputFiles
    ) throws(Failure) {
        self.input = input
        self.video = video
        self.plan = plan
        self.limits = limits
        self.outputs = outputs
        let side = plan.stills.posterSize ?? StoryboardPlan.tileSide
        size = PictureBounds(long: side, short: side).fit(video.displaySize.width, video.displaySize.height)
        frame = try Frame.allocate()
        held = try Frame.allocate()
    }

    /// - Returns: the preview colour; nil where no still is wanted or nothing decodes.
    static func make(
        _ input: Int32, _ video: VideoFacts, plan: TranscodePlan, limits: MediaLimits, outputs: OutputFiles
    ) throws(Failure) -> String? {
        guard !plan.stills.isEmpty else { return nil }
        let pass = try KeyframePass(input, video, plan, limits, outputs)
        guard let board = plan.stills.storyboard else { return try pass.posterAlone() }
        for way in pass.ways(board) {
            guard let stills = try Stills.open(plan.stills) else { return nil }
            if try pass.fill(stills, board, way) {
                return try stills.finish(end: plan.stills.duration, outputs: outputs)
            }
        }
        return nil
    }

    private func ways(_ board: StoryboardPlan) -> [Way] {
        let gap = video.keyframeIntervalMax ?? 0
        let isSparse = gap > board.interval * Self.sparseTiles && video.end - video.start <= Self.wholeMax
        if isSparse { return [.everything] }
        return video.hasClockJumps ? [.keyframesInPassing, .everything] : [.jumps, .keyframesInPassing, .everything]
    }

    private func posterAlone() throws(Failure) -> String? {
        let demuxer = try Demuxer.open(input)
        guard let stills = try Stills.open(plan.stills),
            try StillSearch.best(input, demuxer, video: video, limits: limits, into: frame)
        else { return nil }
        try deliver(frame, to: stills, from: 0, until: plan.stills.duration)
        return try stills.finish(end: plan.stills.duration, outputs: outputs)
    }

    /// - Returns: false when nothing decoded this way.
    private func fill(_ stills: Stills, _ board: StoryboardPlan, _ way: Way) throws(Failure) -> Bool {
        heldTime = nil
        let demuxer = try Demuxer.open(input)
        demuxer.keepOnly([video.stream])
        let decoder = try Decoder.open(demuxer, stream: video.stream, threads: 1, pixelCountMax: limits.pixelCountMax)
        let packet = try Packet.allocate()
        switch way {
        case .jumps: try jump(demuxer, decoder, packet, stills, board)
        case .keyframesInPassing:
            decoder.skipAllButKeyframes()
            try readThrough(demuxer, decoder, packet, stills)
        case .everything: try readThrough(demuxer, decoder, packet, stills)
        }
        guard let heldTime else { return false }
        try deliver(held, to: stills, from: heldTime, until: .infinity)
        return true
    }

    private func jump(
        _ demuxer: borrowing Demuxer, _ decoder: borrowing Decoder, _ packet: borrowing Packet, _ stills: Stills,
        _ board: StoryboardPlan
    ) throws(Failure) {
        var last: Int64?
        for tile in 0..<board.tileCount {
            let target = video.timeBase.ticks(plan.origin + board.time(of: tile))
            do { try demuxer.seek(stream: video.stream, to: target) } catch {
                if error.code == .sourceUnreadable { throw error }
                return
            }
            guard try readKeyframe(demuxer, packet) else { continue }
            defer { packet.unreference() }
            let time = packet.pts ?? packet.dts
            // The same key frame stands for several moments.
            if let time, time == last { continue }
            last = time
            decoder.flush()
            _ = try decoder.send(packet)
            // Ending at once makes the decoder give out the one picture, which it would hold back for reordering.
            try decoder.finish()
            while true {
                let received = try decoder.receive(into: frame)
                if case .end = received { break }
                guard case .frame = received else { continue }
                try offer(at: seconds(of: frame) ?? board.time(of: tile), to: stills)
                break
            }
            try outputs.progress(
                MediaProgress(fraction: Double(tile + 1) / Double(board.tileCount), frames: tile + 1))
        }
    }

    private func readKeyframe(_ demuxer: borrowing Demuxer, _ packet: borrowing Packet) throws(Failure) -> Bool {
        for _ in 0..<Self.packetMax {
            guard try demuxer.readWhatCanBeRead(into: packet) else { return false }
            if packet.stream == video.stream, packet.isKey { return true }
            packet.unreference()
        }
        return false
    }

    private func readThrough(
        _ demuxer: borrowing Demuxer, _ decoder: borrowing Decoder, _ packet: borrowing Packet, _ stills: Stills
    ) throws(Failure) {
        var frames = 0
        var isFinishing = false
        while true {
            switch try decoder.receive(into: frame) {
            case .end: return
            case .damaged: continue
            case .frame:
                frames += 1
                try offer(at: seconds(of: frame) ?? heldTime ?? 0, to: stills)
                let place = plan.stills.duration > 0 ? (heldTime ?? 0) / plan.stills.duration : 0
                try outputs.progress(MediaProgress(fraction: min(max(place, 0), 1), frames: frames))
            case .needsInput:
                if !isFinishing, try demuxer.readWhatCanBeRead(into: packet) {
                    if packet.stream == video.stream { _ = try decoder.send(packet) }
                    packet.unreference()
                } else {
                    isFinishing = true
                    try decoder.finish()
                }
            }
        }
    }

    private func seconds(of frame: borrowing Frame) -> Double? {
        frame.bestTimestamp.map { video.timeBase.seconds($0) - plan.origin }
    }

    /// The picture before it is shown until now, and is worked on only where a tile needs it.
    private func offer(at seconds: Double, to stills: Stills) throws(Failure) {
        if let heldTime {
            guard seconds > heldTime else { return }
            if stills.wantsTile(before: seconds) { try deliver(held, to: stills, from: heldTime, until: seconds) }
        }
        try held.takeReference(to: frame)
        heldTime = seconds
    }

    private func deliver(
        _ picture: borrowing Frame, to stills: Stills, from: Double, until: Double
    ) throws(Failure) {
        let delivered = try Frame.allocate()
        let chain = PictureChain(
            video, shape: FrameShape(picture), size: size, target: .video, fieldsBecomeFrames: false)
        try StillRenderer.filter(picture, chain: chain.description, into: delivered)
        try stills.take(delivered, from: max(from, 0), to: until)
    }
}
