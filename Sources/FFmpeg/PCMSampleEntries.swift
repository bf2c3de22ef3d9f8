/// Uncompressed sound in MP4 (ISO/IEC 23003-5) says its width in a `pcmC` box, and the older field for it is to say 16 always.
/// libavformat 5.1 believes the older field, so that 24 and 32 bits come out as noise.
enum PCMSampleEntries {
    /// Of a sample description; the entries of sound take a hundred.
    private static let descriptionLengthMax = 64 << 10
    private static let path = ["moov", "trak", "mdia", "minf", "stbl"]

    /// - Returns: what has to be read instead of the file's own bytes.
    static func corrections(_ input: DescriptorInput) -> [DescriptorInput.Correction] {
        var corrections: [DescriptorInput.Correction] = []
        ISOBoxWalk.boxes(of: input, path[...]) { type, content in
            if type == "stsd" { corrections += entries(input, content) }
        }
        return corrections
    }

    private static func entries(_ input: DescriptorInput, _ range: Range<Int64>) -> [DescriptorInput.Correction] {
        let bytes = input.bytes(
            at: range.lowerBound, count: min(Int(range.upperBound - range.lowerBound), descriptionLengthMax))
        // Version, flags and count before the entries; in an entry of sound (ISO/IEC 14496-12, 12.2.3) the width stands at 26, boxes from 36.
        let widthAt = 26, boxesAt = 36
        var corrections: [DescriptorInput.Correction] = []
        var offset = 8
        while offset + boxesAt <= bytes.count {
            let size = Int(ISOBoxWalk.number(bytes, offset, 4))
            guard size >= boxesAt, size <= bytes.count - offset else { break }
            if ["ipcm", "fpcm"].contains(String(decoding: bytes[(offset + 4)..<(offset + 8)], as: UTF8.self)),
                let width = width(bytes[(offset + boxesAt)..<(offset + size)]),
                width != ISOBoxWalk.number(bytes, offset + widthAt, 2)
            {
                corrections.append(
                    DescriptorInput.Correction(
                        offset: range.lowerBound + Int64(offset + widthAt), bytes: [0, UInt8(width)]))
            }
            offset += size
        }
        return corrections
    }

    /// Bits of a sample, by the `pcmC` box among these.
    private static func width(_ boxes: ArraySlice<UInt8>) -> UInt64? {
        var offset = boxes.startIndex
        while offset + 8 <= boxes.endIndex {
            let size = Int(ISOBoxWalk.number(boxes, offset, 4))
            guard size >= 8, size <= boxes.endIndex - offset else { return nil }
            if size >= 14, boxes[(offset + 4)..<(offset + 8)].elementsEqual(Array("pcmC".utf8)) {
                return [16, 24, 32, 64].first { $0 == ISOBoxWalk.number(boxes, offset + 13, 1) }
            }
            offset += size
        }
        return nil
    }
}
