/// The blocks that Photoshop keeps in its own files and, behind its name, in those of others (Adobe, "Photoshop File Formats", image resource
/// blocks). Pure; every length is checked.
enum PhotoshopResources {
    static let countMax = 10_000
    /// Of IPTC's records.
    static let iptc = 1028

    static func read(_ bytes: ByteView) -> [(id: Int, body: ByteView)] {
        var result: [(id: Int, body: ByteView)] = []
        var offset = 0
        while result.count < countMax, bytes.starts(with: "8BIM", at: offset), let id = bytes.u16(at: offset + 4),
            let name = bytes.byte(at: offset + 6)
        {
            let start = offset + 6 + (Int(name) + 2) / 2 * 2
            guard let length = bytes.u32(at: start).map(Int.init) else { break }
            result.append((Int(id), bytes.clamped(at: start + 4, count: length)))
            offset = start + 4 + (length + 1) / 2 * 2
        }
        return result
    }
}
