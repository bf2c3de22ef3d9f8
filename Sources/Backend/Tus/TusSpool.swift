import Digests
import Files
import Vocabulary

/// One part on its way, on this machine's disk: from its beginning, also where an earlier request brought that.
final class TusSpool: @unchecked Sendable {
    // Unchecked: the server's thread fills it while it is offered, the request's task has it before and after; never both at once.
    let number: Int
    /// Bytes that the part will have.
    let capacity: Int
    let path: String
    /// Nil once it is sealed: a body that is kept only when its sum is right may have many parts, and few files are to be open.
    private var file: OpenFile?
    private var sealed: SignedPart?
    private let digest = Digest(.md5)
    private(set) var count = 0
    /// Of the whole upload up to the end of this; set when nothing more is added.
    var hash = ResumableSHA256()

    var isFull: Bool { count == capacity }

    init(number: Int, capacity: Int, in folder: String) throws(Failure) {
        self.number = number
        self.capacity = capacity
        path = "\(folder)/\(number)"
        file = try .creating(path)
    }

    /// - Returns: bytes taken; the rest belongs to the next part.
    func take(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int {
        let taken = UnsafeRawBufferPointer(rebasing: bytes.prefix(capacity - count))
        guard let file else { throw Failure(.internalError, "A part was added to after it was sealed.", detail: path) }
        try file.write(taken, at: count)
        digest.update(taken)
        count += taken.count
        return taken.count
    }

    /// Blocking. The first `bytes` of a file; what follows there was never acknowledged.
    func load(_ path: String, bytes: Int) throws(Failure) {
        try Files.pass(over: try OpenFile.reading(path), limit: bytes) { piece, _ throws(Failure) in
            _ = try take(piece)
        }
        guard count == bytes else {
            throw Failure(.ioError, "What was kept of a part is shorter than it was.", detail: "\(path): \(count)")
        }
    }

    /// Blocking. Nothing more is added; durable. The same again when it is asked again.
    /// - Returns: what there is.
    @discardableResult
    func seal() throws(Failure) -> SignedPart {
        if let sealed { return sealed }
        // A write that failed half-way may have left more than was taken.
        try file?.truncate(to: count)
        try file?.synchronize()
        file = nil
        let part = SignedPart(number: number, length: count, md5: digest.finalize().hexadecimal)
        sealed = part
        return part
    }
}
