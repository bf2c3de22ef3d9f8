import Files
import Foundation
import Vocabulary

/// A folder that is gone when the test is.
final class ScratchFolder: Sendable {
    let path: String
    init() throws {
        path = NSTemporaryDirectory() + "rushes-ingest-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }

    /// Writes a file below the folder, with the folders above it.
    @discardableResult
    func write(_ bytes: [UInt8], _ name: String) throws -> String {
        let path = path + "/" + name
        try Files.makeFolder(Files.folder(of: path))
        try Files.write(bytes, to: path)
        return path
    }
}

/// Bytes that differ from place to place and seed to seed.
func pattern(_ count: Int, seed: Int = 1) -> [UInt8] {
    var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state >> 32)
    }
}

extension Identifier {
    /// An id that the test spells out.
    static func named(_ text: String) -> Identifier {
        guard let id = Identifier(rawValue: text) else { preconditionFailure("“\(text)” is no identifier") }
        return id
    }
}
