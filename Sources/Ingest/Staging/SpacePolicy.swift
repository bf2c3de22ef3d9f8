import Vocabulary

/// Whether there is room for another item.
struct SpacePolicy: Sendable, Equatable {
    /// Bytes that stay free for the catalog, the prepared output's estimate being wrong, and everybody else.
    var marginBytes: Int

    enum Decision: Equatable { case go, wait }

    /// - Parameters:
    ///   - given: bytes of the item's files.
    ///   - made: bytes that preparing may take beside them.
    func decide(free: Int, given: Int, made: Int) -> Decision {
        free - given - made >= marginBytes ? .go : .wait
    }

    /// Bytes that the outputs of an item may take: a rendition is rarely larger than its original, and is never let grow past its bound.
    static func madeBytes(original: Int, mode: PrepareMode) -> Int {
        mode == .both || mode == .rendition ? original + (8 << 20) : 0
    }

    static func failure(name: String, free: Int, needed: Int) -> Failure {
        Failure(
            .diskFull, "There is no room for “\(name)” in staging: free some space and start again; nothing was lost.",
            detail: "\(free) bytes free, \(needed) needed with the margin")
    }
}
