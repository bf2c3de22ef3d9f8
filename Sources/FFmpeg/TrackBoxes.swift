/// What libavformat does not say of the tracks of an ISO base media file.
struct TrackBoxes {
    /// Tracks whose handler is `auxv` (ISO/IEC 14496-12, 12.1.1): depth maps and transparency, which libavformat shows as videos like any other.
    private(set) var auxiliary: Set<Int> = []
    /// Tracks whose samples are described in more than one way: an encoder was set up anew on the way.
    private(set) var manifold: Set<Int> = []

    /// Tracks go by their number among all, which is FFmpeg's number of the stream.
    init(_ input: DescriptorInput) {
        var number = 0
        var found = self
        ISOBoxWalk.boxes(of: input, ["moov"]) { type, track in
            guard type == "trak" else { return }
            // A version, flags and a field of zeros come before the handler's type; a version and flags before the number of descriptions.
            ISOBoxWalk.boxes(of: input, in: track, ["mdia"]) { type, content in
                let handler = type == "hdlr" ? input.bytes(at: content.lowerBound + 8, count: 4) : []
                if handler == Array("auxv".utf8) { found.auxiliary.insert(number) }
            }
            ISOBoxWalk.boxes(of: input, in: track, ["mdia", "minf", "stbl"]) { type, content in
                let count = type == "stsd" ? input.bytes(at: content.lowerBound + 4, count: 4) : []
                if count.count == 4, ISOBoxWalk.number(count, 0, 4) > 1 { found.manifold.insert(number) }
            }
            number += 1
        }
        self = found
    }
}
