/// Passes over a progressive picture, each of which costs a walk over all of its blocks. Cameras and programs write a dozen.
enum JPEGScanBounds {
    /// Of a picture that is decoded.
    static let countMax: Int32 = 500
    /// As many passes as every picture may have, however large.
    private static let countFloor = 64
    /// Above the floor: blocks that all passes together may go through.
    private static let blocksMax = 100_000_000

    /// Whether a picture of `blockCount` blocks may have so many passes: 64, or as many more as come to 100 million blocks in all.
    static func allow(_ count: Int, blockCount: Int) -> Bool {
        count <= max(countFloor, blocksMax / max(1, blockCount))
    }
}
