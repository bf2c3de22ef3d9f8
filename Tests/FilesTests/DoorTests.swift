import Foundation
import Testing

/// Every durable change to files goes through `Files`: read from the source text of everything else.
@Suite struct DoorTests {
    /// What a file outside the door may do, and why.
    static let exceptions: [String: Set<String>] = [
        // A socket's file: after a power cut nobody listens.
        "HTTPServer/ListeningSocket.swift": ["unlink", "fchmod"],
        // Where a child's output goes to: /dev/null.
        "Processes/ChildProcess.swift": ["O_WRONLY"],
        // The worker's draft, through a descriptor that the parent syncs.
        "Transcode/Run/OutputFiles.swift": ["ftruncate"],
        // Permissions of what a person asked for by name.
        "rushes/Frame/MediaOptions.swift": ["chmod"],
    ]

    /// Names by which files are changed, in the C library and in Foundation.
    static let calls = [
        "creat", "mkstemp", "mkostemp", "mkdtemp", "tmpfile", "fopen", "freopen", "rename", "renameat", "renameat2",
        "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir", "mkdir", "mkdirat", "mknod",
        "truncate", "ftruncate", "fallocate", "posix_fallocate", "chmod", "fchmod", "chown", "utimensat", "futimens",
        "copy_file_range", "sendfile", "rushes_rename_noreplace", "rushes_reflink",
        "rushes_fallocate", "fsync", "fdatasync", "syncfs",
    ]
    static let words = ["O_CREAT", "O_WRONLY", "O_RDWR", "O_TRUNC", "O_APPEND", "O_TMPFILE", "FileManager"]

    /// - Returns: what a text does that only the door may do.
    static func changes(in source: String) throws -> Set<String> {
        // A name before the bracket that is no method of something: `unlink(`, `Glibc.unlink(`, but not `store.remove(`.
        let call = try Regex(
            "(?:^|[^.\\w]|Glibc\\.|Foundation\\.)(\(calls.joined(separator: "|")))\\(", as: (Substring, Substring).self)
        let word = try Regex("\\b(\(words.joined(separator: "|")))\\b", as: (Substring, Substring).self)
            .wordBoundaryKind(.simple)
        let file = try Regex("(\\.write\\(to|forWriting|contentsOfFile)", as: (Substring, Substring).self)
        var found: Set<String> = []
        for line in source.split(separator: "\n") {
            let text = line.trimmingPrefix { $0 == " " }
            // Comments, and functions of these names that somebody declares.
            if text.hasPrefix("//") || text.contains("func ") { continue }
            for match in text.matches(of: call) { found.insert(String(match.output.1)) }
            for match in text.matches(of: word) { found.insert(String(match.output.1)) }
            for match in text.matches(of: file) { found.insert(String(match.output.1)) }
        }
        return found
    }

    @Test func nothingButTheDoorChangesFiles() throws {
        let sources = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("Sources").path
        var count = 0
        for path in try FileManager.default.subpathsOfDirectory(atPath: sources).sorted()
        where path.hasSuffix(".swift") && !path.hasPrefix("Files/") {
            let text = try String(contentsOfFile: sources + "/" + path, encoding: .utf8)
            #expect(try Self.changes(in: text) == Self.exceptions[path] ?? [], "\(path)")
            count += 1
        }
        #expect(count > 100)
    }

    @Test(arguments: [
        "if unlink(path) != 0 {", "let fd = open(path, O_RDWR | O_CREAT)",
        "try FileManager.default.removeItem(atPath: p)",
        "guard Glibc.rename(a, b) == 0", "    mkdir(path, 0o700)", "try data.write(to: url)",
    ]) func aChangeIsSeen(line: String) throws { #expect(try !Self.changes(in: line).isEmpty) }

    @Test(arguments: [
        "try Files.remove(path)", "store.link(a, b)", "// rename(a, b)", "private func link(_ from: String)",
    ])
    func whatIsNoneIsNot(line: String) throws { #expect(try Self.changes(in: line).isEmpty) }
}
