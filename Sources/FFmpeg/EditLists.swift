/// Edit lists (ISO/IEC 14496-12, 8.6.6) whose one edit has no length. Of a fragmented file that means everything that comes; some programs
/// write the same into plain ones, of which libavformat then shows nothing.
enum EditLists {
    /// Of one list.
    private static let lengthMax = 64 << 10
    /// Longer than any track: an edit ends with its track.
    private static let wholeTrack: [UInt8] = [0x7F, 0xFF, 0xFF, 0xFF]

    /// - Returns: what has to be read instead of the file's own bytes.
    static func corrections(_ input: DescriptorInput) -> [DescriptorInput.Correction] {
        var isFragmented = false
        ISOBoxWalk.boxes(of: input, ["moov"]) { type, _ in if type == "mvex" { isFragmented = true } }
        guard !isFragmented else { return [] }
        var corrections: [DescriptorInput.Correction] = []
        ISOBoxWalk.boxes(of: input, ["moov", "trak", "edts"]) { type, content in
            guard type == "elst", let place = placeOfMissingLength(input, content) else { return }
            corrections.append(DescriptorInput.Correction(offset: place, bytes: wholeTrack))
        }
        return corrections
    }

    /// - Returns: where the low four bytes of the first real edit's length stand, when no real edit has one.
    private static func placeOfMissingLength(_ input: DescriptorInput, _ content: Range<Int64>) -> Int64? {
        let bytes = input.bytes(
            at: content.lowerBound, count: min(Int(content.upperBound - content.lowerBound), lengthMax))
        guard bytes.count >= 8, bytes[0] <= 1 else { return nil }
        // Version and flags, count; then of each edit its length, where it begins, and its rate.
        let width = bytes[0] == 1 ? 8 : 4, entryLength = 2 * width + 4
        var place: Int64?
        for number in 0..<min(Int(ISOBoxWalk.number(bytes, 4, 4)), (bytes.count - 8) / entryLength) {
            let entry = 8 + number * entryLength
            // -1: nothing is shown.
            guard bytes[entry + width] & 0x80 == 0 else { continue }
            guard ISOBoxWalk.number(bytes, entry, width) == 0 else { return nil }
            place = place ?? content.lowerBound + Int64(entry + width - 4)
        }
        return place
    }
}
