import FFmpeg
import Vocabulary

/// Tells samples that were really written from holes: a copy that broke off often leaves a file of full length whose tail is zeros, and
/// its index, at the front, looks whole.
enum SampleCheck {
    /// Samples looked at over a whole track.
    static let placeMax = 16
    /// A longer sample is judged by its beginning alone.
    static let lengthMax = 16 << 20

    /// - Parameter nalLengthSize: bytes of the lengths inside H.264 and HEVC samples (ISO/IEC 14496-15); nil for other codecs.
    static func isPlausible(_ sample: UnsafeRawBufferPointer, nalLengthSize: Int?, isUncompressed: Bool) -> Bool {
        guard let nalLengthSize else {
            let headLength = 64
            // Black is zeros only where nothing is compressed.
            return isUncompressed || sample.isEmpty || sample.prefix(headLength).contains { $0 != 0 }
        }
        var offset = 0
        while offset + nalLengthSize <= sample.count {
            let length = (0..<nalLengthSize).reduce(0) { $0 << 8 | Int(sample[offset + $1]) }
            offset += nalLengthSize
            guard length > 0, length <= sample.count - offset, sample[offset] & 0x80 == 0 else { return false }
            offset += length
        }
        return offset == sample.count
    }

    static func isUncompressed(_ codec: String?) -> Bool {
        guard let codec else { return true }
        return ["rawvideo", "v210", "v308", "v408", "v410", "r210", "r10k", "yuv4", "ayuv", "012v", "avui"].contains(
            codec)
    }

    struct Findings: Equatable {
        /// The last sample is a hole.
        var endIsMissing = false
        var hasHoles = false
    }

    /// Looks at a few samples spread over an indexed track.
    static func spread(_ demuxer: borrowing Demuxer, _ video: StreamDescription, _ source: SourceBytes) throws(Failure)
        -> Findings
    {
        let count = demuxer.indexCount(stream: video.index)
        var findings = Findings()
        guard count > 0 else { return findings }
        let places = min(placeMax, count)
        for place in 1...places {
            let number = count * place / places - 1
            guard let entry = demuxer.indexEntry(stream: video.index, number), entry.bytes <= lengthMax else {
                continue
            }
            let sample = try source.read(at: entry.position, count: entry.bytes)
            // A missing sample is found by its place, before.
            guard sample.count == entry.bytes else { continue }
            let isPlausible = sample.withUnsafeBytes {
                Self.isPlausible($0, nalLengthSize: video.nalLengthSize, isUncompressed: isUncompressed(video.codec))
            }
            if !isPlausible {
                findings.hasHoles = true
                findings.endIsMissing = place == places
            }
        }
        return findings
    }
}
