import Files
import Vocabulary

/// Which files of a shoot a hash list names, and by which paths. Pure.
struct ProofPlan: Sendable, Equatable {
    /// What the catalog knows of a given file.
    struct Known: Sendable, Equatable {
        var item: ItemID
        var role: FileRole
        var state: ItemState
        var server: String?
        var card: RawPath?
        var below: RawPath?
        var bytes: Int?
        /// Nanoseconds since 1970.
        var modified: Int64
        var sha256: SHA256Digest?
        var xxh128: XXH128Digest?
        /// Milliseconds since 1970.
        var hashedAt: Int64?
        var upload: UploadID?
        /// What the backend came to when it read the bytes back.
        var confirmed: SHA256Digest?
        var verifiedAt: String?
    }
    struct File: Sendable, Equatable {
        /// Below the folder that the list lies in.
        var path: String
        var known: Known
        var xxh128: XXH128Digest
    }
    /// Why a file is not in the list.
    enum Gap: String, Sendable {
        /// Its bytes were never read, or it was cancelled.
        case notHashed
        /// Taken by a version that did not note what a list needs.
        case takenBefore
        /// A name that is not UTF-8, or has characters that XML cannot hold.
        case unnameable
    }

    private(set) var files: [File] = []
    private(set) var gaps: [Gap: Int] = [:]

    /// - Parameter known: in the order in which they were taken: of two under one path the later one counts.
    init(_ known: [Known]) {
        let cards = Self.outermost(Set(known.compactMap(\.card)))
        let names = Self.names(of: cards)
        // By their bytes: Swift takes names for the same that a disk keeps apart, “é” in one scalar and in two.
        var byPath: [[UInt8]: File] = [:]
        for file in known {
            guard file.sha256 != nil else {
                gaps[.notHashed, default: 0] += 1
                continue
            }
            guard let xxh128 = file.xxh128, let card = file.card, let below = file.below,
                let root = cards.first(where: { $0.holds(card) })
            else {
                gaps[.takenBefore, default: 0] += 1
                continue
            }
            let inner = (card.below(root).map { $0.bytes + [UInt8(ascii: "/")] } ?? []) + below.bytes
            // One card: its copy is the folder itself. Several: their copies lie in it by their names.
            let bytes = cards.count == 1 ? inner : names[root, default: []] + [UInt8(ascii: "/")] + inner
            guard let path = Self.text(bytes) else {
                gaps[.unnameable, default: 0] += 1
                continue
            }
            byPath[bytes] = File(path: path, known: file, xxh128: xxh128)
        }
        files = byPath.values.sorted { $0.path.utf8.lexicographicallyPrecedes($1.path.utf8) }
    }

    /// Folders that lie in none of the others, in the order of their paths.
    private static func outermost(_ cards: Set<RawPath>) -> [RawPath] {
        cards.filter { card in !cards.contains { $0 != card && $0.holds(card) } }
            .sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// Their own names; those that have the same get a number.
    private static func names(of cards: [RawPath]) -> [RawPath: [UInt8]] {
        var names: [RawPath: [UInt8]] = [:]
        var taken: Set<[UInt8]> = []
        for card in cards {
            var name = card.name
            var number = 2
            while !taken.insert(name).inserted {
                name = card.name + Array("-\(number)".utf8)
                number += 1
            }
            names[card] = name
        }
        return names
    }

    /// Nil where XML 1.0 (section 2.2) cannot hold it.
    private static func text(_ bytes: [UInt8]) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        let isWhole = text.utf8.elementsEqual(bytes)
        let isHeld = text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x9, 0xA, 0xD, 0x20...0xD7FF, 0xE000...0xFFFD, 0x10000...0x10FFFF: true
            default: false
            }
        }
        return isWhole && isHeld ? text : nil
    }
}
