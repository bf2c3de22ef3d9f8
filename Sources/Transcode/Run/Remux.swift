import FFmpeg
import Vocabulary

/// Copies a conforming source's picture and sound into a new MP4 with its index in front. Nothing is decoded.
enum Remux {
    /// - Returns: false when a sample turned out to be a hole; what was written so far is worthless then.
    static func run(
        _ demuxer: borrowing Demuxer, _ survey: Survey, _ video: VideoFacts, plan: TranscodePlan,
        into descriptor: Int32,
        limits: MediaLimits, outputs: OutputFiles
    ) throws(Failure) -> Bool {
        let muxer = try Muxer.mp4(descriptor, bytesMax: limits.outputBytesMax)
        let kept = [video.stream] + (survey.tracks.audio.map { [$0.index] } ?? [])
        demuxer.keepOnly(Set(kept))
        var targets: [Int: Int] = [:]
        for index in kept { targets[index] = try muxer.addStream(copying: index, of: demuxer) }
        let timeBases = demuxer.streams.map(\.timeBase)
        let nalLengthSize = demuxer.stream(video.stream).nalLengthSize
        try muxer.writeHeader()
        let packet = try Packet.allocate()
        let frameCount = demuxer.indexCount(stream: video.stream)
        var frames = 0
        var firstTime: Int64?
        var soundEnd: Double?
        while try demuxer.read(into: packet) {
            guard let target = targets[packet.stream] else {
                packet.unreference()
                continue
            }
            let timeBase = timeBases[packet.stream]
            if packet.stream == video.stream {
                let isPlausible = packet.withBytes {
                    SampleCheck.isPlausible($0, nalLengthSize: nalLengthSize, isUncompressed: false)
                }
                guard isPlausible else { return false }
                frames += 1
                let time = packet.dts ?? 0
                firstTime = firstTime ?? time
                // The demuxer gives the last picture the length of the one before.
                if frames == frameCount, let length = demuxer.stream(video.stream).duration, let firstTime {
                    packet.duration = max(packet.duration, firstTime + length - time)
                }
                let place = plan.duration > 0 ? timeBase.seconds(packet.dts ?? 0) / plan.duration : 0
                try outputs.progress(MediaProgress(fraction: min(max(place, 0), 1), frames: frames))
            }
            if packet.stream != video.stream, let time = packet.pts {
                soundEnd = max(soundEnd ?? 0, timeBase.seconds(time + packet.duration))
            }
            try muxer.write(packet, stream: target, timeBase: timeBase)
        }
        try muxer.finish()
        try OutputCheck.verify(
            descriptor,
            OutputCheck.Expected(
                width: video.width, height: video.height, frames: frames, end: video.end - min(video.start, 0),
                soundEnd: soundEnd, isOurs: false))
        return true
    }
}
