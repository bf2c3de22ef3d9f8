import Foundation

/// What the recorder wrote down, in order. Paths are relative to the recorded root.
struct Journal {
    enum Entry: Equatable {
        case create(inode: UInt64, path: String)
        case makeFolder(inode: UInt64, path: String)
        case rename(from: String, to: String)
        case link(from: String, to: String)
        case remove(path: String)
        /// The number of the copy that holds the file's contents.
        case syncFile(inode: UInt64, copy: Int)
        case syncFolder(inode: UInt64)
        /// `DurableSteps` says by name that something has become durable.
        case step(String)
    }
    struct Malformed: Error { var line: String }

    var entries: [Entry]
    init(entries: [Entry]) { self.entries = entries }

    init(_ path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        entries = try text.split(separator: "\n").map { line in
            guard let entry = Self.entry(String(line)) else { throw Malformed(line: String(line)) }
            return entry
        }
    }

    private static func entry(_ line: String) -> Entry? {
        let fields = line.split(separator: "\t").map(String.init)
        switch (fields[0], fields.count) {
        case ("create", 3): return UInt64(fields[1]).map { .create(inode: $0, path: fields[2]) }
        case ("mkdir", 3): return UInt64(fields[1]).map { .makeFolder(inode: $0, path: fields[2]) }
        case ("rename", 3): return .rename(from: fields[1], to: fields[2])
        case ("link", 3): return .link(from: fields[1], to: fields[2])
        case ("unlink", 2), ("rmdir", 2): return .remove(path: fields[1])
        case ("fsync", 3):
            guard let inode = UInt64(fields[1]), let copy = Int(fields[2]) else { return nil }
            return .syncFile(inode: inode, copy: copy)
        case ("fsyncdir", 2): return UInt64(fields[1]).map { .syncFolder(inode: $0) }
        // `DurableSteps` counts before it: "17 files.commit".
        case (_, 1):
            let words = line.split(separator: " ")
            return words.count == 2 && Int(words[0]) != nil ? .step(String(words[1])) : nil
        default: return nil
        }
    }
}
