import Vocabulary

/// How far an upload is, and what that allows. Pure.
struct TusStanding: Sendable, Hashable {
    /// Bytes; nil until the client has told.
    var size: Int?
    var partSize: Int
    /// Bytes that are durable.
    var offset = 0

    var isWhole: Bool { size == offset }
    /// Of the part in which the next byte lies.
    var partNumber: Int { offset / partSize + 1 }
    /// Bytes of it that are there.
    var tailBytes: Int { offset % partSize }
    /// Bytes that it will have, as far as that is known.
    var partBytes: Int {
        min(partSize, (size ?? Tus.bytesMax) - (partNumber - 1) * partSize)
    }
    /// No byte can follow.
    var isFull: Bool { offset >= size ?? Tus.bytesMax }
}

enum TusPolicy {
    static func check(length: Int?) throws(Failure) {
        guard length ?? 0 <= Tus.bytesMax else {
            throw Failure(.bodyTooLarge, "A file may have \(Tus.bytesMax) bytes at most.")
        }
    }

    /// Whether the request goes on where the upload stands.
    /// - Returns: the standing, with the length that the request may tell.
    static func admit(_ patch: Tus.Patch, at standing: TusStanding) throws(Failure) -> TusStanding {
        guard patch.offset == standing.offset else {
            throw Failure(
                .conflict, "This upload stands at \(standing.offset): ask for its offset and go on there.",
                remedy: .retryLater)
        }
        var standing = standing
        if let length = patch.length {
            guard standing.size ?? length == length else {
                throw Failure(.badRequest, "The length of this upload was given before, as another one.")
            }
            guard length >= standing.offset else {
                throw Failure(.badRequest, "There are more bytes already than this length allows.")
            }
            try check(length: length)
            standing.size = length
        }
        let bodyBytes = patch.bodyBytes ?? 0
        guard bodyBytes <= (standing.size ?? Tus.bytesMax) - standing.offset else { throw beyondTheEnd }
        if patch.checksum != nil, bodyBytes > Tus.checkedBytesMax { throw tooLongToCheck }
        return standing
    }

    static let tooLongToCheck = Failure(
        .bodyTooLarge, "A body with a checksum may have \(Tus.checkedBytesMax) bytes: send several.")

    static let beyondTheEnd = Failure(.bodyTooLarge, "The body goes on beyond the end of the file.")

    /// Whether the store still has all that was recorded of an upload.
    /// - Parameters:
    ///   - recorded: in order.
    ///   - held: what the store has of it as parts.
    ///   - hasTail: whether it has the last one as a tail.
    static func hasAll(_ recorded: [SignedPart], partSize: Int, held: [StoredPart], hasTail: Bool) -> Bool {
        let numbers = Set(held.map(\.number))
        return recorded.enumerated().allSatisfy { index, part in
            let isLast = index == recorded.count - 1
            return part.number == index + 1 && (part.length == partSize || isLast)
                && (numbers.contains(part.number) || isLast && hasTail)
        }
    }
}
