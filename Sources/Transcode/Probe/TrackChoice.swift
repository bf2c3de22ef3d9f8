import FFmpeg

/// Which of a file's tracks are the picture and the sound that people mean.
struct TrackChoice: Equatable {
    var video: StreamDescription?
    var audio: StreamDescription?
    /// Every sound track, for the facts.
    var allAudio: [StreamDescription]
    /// Sound tracks that nothing here decodes.
    var skippedAudio: [StreamDescription]

    /// The default track first, then the first in the file: phones put the moving picture before a large still, Dolby Vision its base
    /// layer before the enhancement. Covers and thumbnail tracks are no video.
    init(_ streams: [StreamDescription]) {
        let videos = streams.filter {
            $0.kind == .video && !$0.isAttachedPicture && !$0.isTimedThumbnails && !$0.isDependent
        }
        let playable = videos.filter { $0.hasDecoder && !$0.isEncrypted }
        video = playable.first(where: \.isDefault) ?? playable.first ?? videos.first
        allAudio = streams.filter { $0.kind == .audio }
        let audible = allAudio.filter { $0.hasDecoder && !$0.isEncrypted && $0.channels > 0 && $0.sampleRate > 0 }
        audio = audible.first(where: \.isDefault) ?? audible.first
        skippedAudio = allAudio.filter { !audible.contains($0) }
    }
}
