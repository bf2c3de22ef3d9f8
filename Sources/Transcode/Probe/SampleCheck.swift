import FFmpeg
import Vocabulary

/// Tells samples that were really written from holes: a copy that broke off often leaves a file of full length whose tail is zeros, and
/// its index, at the front, looks whole.
enum SampleCheck {
    /// Samples looked at over a whole track.
    static let placeMax = 16
    /// A longer sample is judged by its beginning alone.
    static let lengthMax = 16 << 20

    /// Nothing was ever written there.
    static func isHole(_ sample: UnsafeRawBufferPointer) -> Bool {
        let headLength = 64
        return !sample.isEmpty && sample.prefix(headLength).allSatisfy { $0 == 0 }
    }

    /// What is left of a sample when it is shorter than this, FFmpeg's decoders pass over: some recorders fill samples up.
    private static let unitMin = 4

    /// As strict as the decoders, which drop a sample that does not fall into whole units.
    /// - Parameter nalLengthSize: bytes of the lengths inside H.264 and HEVC samples (ISO/IEC 14496-15); nil for other codecs.
    static func isPlausible(_ sample: UnsafeRawBufferPointer, nalLengthSize: Int?, isUncompressed: Bool) -> Bool {
        // Black is zeros only where nothing is compressed.
        guard let nalLengthSize else { return isUncompressed || !isHole(sample) }
        var offset = 0
        while sample.count - offset >= max(unitMin, nalLengthSize) || offset == 0 && !sample.isEmpty {
            guard sample.count - offset > nalLengthSize else { return false }
            let length = (0..<nalLengthSize).reduce(0) { $0 << 8 | Int(sample[offset + $1]) }
            offset += nalLengthSize
            guard length > 0, length <= sample.count - offset, sample[offset] & 0x80 == 0 else { return false }
            offset += length
        }
        return true
    }

    static func isUncompressed(_ codec: String?) -> Bool {
        guard let codec else { return true }
        return ["rawvideo", "v210", "v308", "v408", "v410", "r210", "r10k", "yuv4", "ayuv", "012v", "avui"].contains(
            codec)
    }

    struct Findings: Equatable {
        /// The last sample is a hole.
        var endIsMissing = false
        /// Some will not decode.
        var hasDamage = false
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
            sample.withUnsafeBytes { sample in
                let isUncompressed = isUncompressed(video.codec)
                guard !isPlausible(sample, nalLengthSize: video.nalLengthSize, isUncompressed: isUncompressed) else {
                    return
                }
                findings.hasDamage = true
                findings.endIsMissing = place == places && isHole(sample)
            }
        }
        return findings
    }
}
