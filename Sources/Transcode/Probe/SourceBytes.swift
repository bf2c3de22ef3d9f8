import Foundation
import Vocabulary

/// Reads stretches of the source at explicit offsets, for the few structures that the demuxers do not report.
struct SourceBytes {
    let descriptor: Int32
    let size: Int64

    init(_ descriptor: Int32) throws(Failure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.unreadable(at: 0) }
        self.descriptor = descriptor
        size = Int64(status.st_size)
    }

    /// - Returns: fewer bytes than asked for at the end of the file.
    func read(at offset: Int64, count: Int) throws(Failure) -> [UInt8] {
        guard offset >= 0, offset < size, count > 0 else { return [] }
        let count = Int(min(Int64(count), size - offset))
        var done = 0
        var result = [UInt8](repeating: 0, count: count)
        while done < count {
            let got = result.withUnsafeMutableBytes { buffer in
                pread(descriptor, buffer.baseAddress.map { $0 + done }, count - done, off_t(offset) + done)
            }
            if got < 0 {
                if errno == EINTR { continue }
                throw Self.unreadable(at: offset)
            }
            if got == 0 { break }
            done += got
        }
        return Array(result.prefix(done))
    }

    private static func unreadable(at offset: Int64) -> Failure {
        Failure(
            .sourceUnreadable, "The file could not be read; check the disk or card.",
            detail: "offset \(offset): \(String(cString: strerror(errno)))")
    }
}

extension Collection where Element == UInt8, Index == Int {
    /// Big-endian, most significant first. The caller has checked the bounds.
    func bigEndian(_ offset: Int, bytes: Int) -> UInt64 {
        (0..<bytes).reduce(0) { $0 << 8 | UInt64(self[startIndex + offset + $1]) }
    }
    func littleEndian(_ offset: Int, bytes: Int) -> UInt64 {
        (0..<bytes).reversed().reduce(0) { $0 << 8 | UInt64(self[startIndex + offset + $1]) }
    }
    func firstIndex(of pattern: [UInt8]) -> Int? {
        guard count >= pattern.count, let first = pattern.first else { return nil }
        var index = startIndex
        let last = endIndex - pattern.count
        while index <= last {
            if self[index] == first, self[index..<(index + pattern.count)].elementsEqual(pattern) {
                return index - startIndex
            }
            index += 1
        }
        return nil
    }
}
