import Digests
import Files
import Foundation
import Glibc
import Testing
import Vocabulary

/// One undisturbed `rushes ingest` with everything it did to its disk, and the means to put the disk back to any moment of it.
struct Recording: Sendable {
    /// How the files leave the card.
    enum Way: String, CaseIterable, Sendable {
        case copied
        /// By a rename, on one disk.
        case moved
        /// By copy, comparison and removal: the card is another disk. Here the box prepares nothing, so that the backend makes everything.
        case movedAcross
    }
    struct Failed: Error { var reason: String }

    static let picks = ["portrait-rotated-90.mov", "portrait-rotated-90.xmp", "exif-orientation-6.jpg"]
    static let itemNames = ["exif-orientation-6.jpg", "portrait-rotated-90.mov"]

    let way: Way
    /// Holds `card` and `home`, and is played back in place, since the catalog knows the card by its path.
    let root: String
    private let given: String
    private let copies: String
    let journal: Journal
    /// The disk before the first step.
    let start: StrictDisk

    var home: String { root + "/home" }
    var card: String { root + "/card" }
    var environment: [String: String] { ["RUSHES_HOME": home] }
    var command: [String] {
        ["ingest", card, "--shoot", "power", "--prepare", way == .movedAcross ? "original" : "both", "--json"]
            + (way == .copied ? [] : ["--move"])
    }

    /// - Parameter folder: scratch, for this recording alone.
    static func make(_ way: Way, recorder: String, in folder: String) throws -> Recording {
        let recording = Recording(way, folder)
        let journal = folder + "/journal"
        var environment = recording.environment
        environment["LD_PRELOAD"] = recorder
        environment["RUSHES_RECORD_ROOT"] = recording.root
        environment["RUSHES_RECORD_JOURNAL"] = journal
        environment["RUSHES_RECORD_CONTENTS"] = recording.copies
        // Durable steps stand by name between the operations that they consist of.
        environment["RUSHES_STEP_TRACE"] = journal
        if way == .movedAcross { environment["RUSHES_RECORD_OTHER_DISK"] = recording.card }

        for path in [recording.card, recording.given + "/card", recording.copies] {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        for name in picks {
            try FileManager.default.copyItem(
                atPath: Programs.fixtures + "/" + name, toPath: recording.given + "/card/" + name)
            try recording.lay("card/" + name, at: recording.card + "/" + name)
        }
        let start = try StrictDisk(asFound: recording.root)
        let ended = try Programs.run(recording.command, environment)
        guard ended.status == 0 else { throw Failed(reason: ended.errors) }
        var recorded = try Journal(journal)
        // The whole of it first: a mutant changes what was asked of the disk, not what was done.
        recorded.forget(try Journal.Mutant.ofEnvironment())
        return Recording(way, folder, journal: recorded, start: start)
    }

    private init(_ way: Way, _ folder: String, journal: Journal? = nil, start: StrictDisk? = nil) {
        self.way = way
        root = folder + "/r"
        given = folder + "/given"
        copies = folder + "/copies"
        self.journal = journal ?? Journal(entries: [])
        self.start = start ?? StrictDisk()
    }

    // MARK: Playing back

    /// Makes the root, or another folder, what the disk was found to be after the cut.
    func restore(_ found: [String: StrictDisk.Contents], at folder: String? = nil) throws {
        let root = folder ?? root
        try? FileManager.default.removeItem(atPath: root)
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
        for path in found.keys.sorted() {
            let target = root + "/" + path
            switch found[path] ?? .folder {
            case .folder: try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
            case .given(let name): try lay(name, at: target)
            case let contents: try bytes(contents).write(to: URL(fileURLWithPath: target))
            }
        }
    }

    /// A pick is known by its size and time.
    private func lay(_ name: String, at target: String) throws {
        try FileManager.default.copyItem(atPath: given + "/" + name, toPath: target)
        var status = stat()
        guard stat(given + "/" + name, &status) == 0,
            utimensat(AT_FDCWD, target, [status.st_atim, status.st_mtim], 0) == 0
        else { throw Failed(reason: "\(target): no time") }
    }

    func bytes(_ contents: StrictDisk.Contents) throws -> Data {
        switch contents {
        case .empty, .folder: return Data()
        case .given(let path): return try Data(contentsOf: URL(fileURLWithPath: given + "/" + path))
        case .copy(let number): return try Data(contentsOf: URL(fileURLWithPath: "\(copies)/\(number)"))
        case .torn(let old, let new, let seed):
            return Self.torn(try bytes(old), try bytes(.copy(new)), seed: seed)
        }
    }

    static let blockBytes = 4096

    /// Each block is the old or the new one, and the size may lag behind: a block that was never written reads as zeros.
    private static func torn(_ old: Data, _ new: Data, seed: UInt64) -> Data {
        var random = SeededGenerator(seed: seed)
        let between = (old.count + new.count) / 2 / blockBytes * blockBytes
        let sizes =
            old.count == new.count ? [new.count] : [old.count, new.count, max(between, min(old.count, new.count))]
        let size = sizes.randomElement(using: &random) ?? new.count
        var result = Data(count: size)
        for start in stride(from: 0, to: size, by: blockBytes) {
            let from = Bool.random(using: &random) ? new : old
            let end = min(start + blockBytes, size, from.count)
            if start < end { result.replaceSubrange(start..<end, with: from[start..<end]) }
        }
        return result
    }

    // MARK: What must hold

    /// The hashes of what was on the card.
    func originals() throws -> [String: SHA256Digest] {
        var hashes: [String: SHA256Digest] = [:]
        for name in Self.picks {
            hashes[name] = Digest.sha256([UInt8](try bytes(.given(path: "card/" + name))))
        }
        return hashes
    }

    func originalsOnCard() throws -> Bool {
        try Self.picks.allSatisfy { name in
            let path = card + "/" + name
            guard FileManager.default.fileExists(atPath: path) else { return false }
            return try Data(contentsOf: URL(fileURLWithPath: path)) == bytes(.given(path: "card/" + name))
        }
    }
}
