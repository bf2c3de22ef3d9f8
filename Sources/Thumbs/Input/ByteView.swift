import Foundation
import Vocabulary

/// A stretch of a file's bytes that cannot be read outside its bounds. Holds its store, so a view is never left without bytes.
struct ByteView: @unchecked Sendable {
    // Unchecked: the store is never written after it is made.
    let store: ByteStore
    let bytes: UnsafeRawBufferPointer

    init(_ store: ByteStore) {
        self.store = store
        bytes = store.bytes
    }

    private init(_ store: ByteStore, _ bytes: UnsafeRawBufferPointer) {
        self.store = store
        self.bytes = bytes
    }

    /// A copy of the bytes.
    init(_ array: [UInt8]) { self.init(ByteStore(copying: array)) }

    var count: Int { bytes.count }
    var isEmpty: Bool { bytes.isEmpty }
    var array: [UInt8] { Array(bytes) }

    func byte(at offset: Int) -> UInt8? { offset >= 0 && offset < bytes.count ? bytes[offset] : nil }

    /// - Returns: nil unless all of the stretch lies inside.
    func slice(at offset: Int, count: Int) -> ByteView? {
        guard offset >= 0, count >= 0, offset <= bytes.count, count <= bytes.count - offset else { return nil }
        return ByteView(store, UnsafeRawBufferPointer(rebasing: bytes[offset..<(offset + count)]))
    }

    /// - Returns: what there is of the stretch, perhaps nothing.
    func clamped(at offset: Int, count: Int) -> ByteView {
        let start = min(max(offset, 0), bytes.count)
        let length = min(max(count, 0), bytes.count - start)
        return ByteView(store, UnsafeRawBufferPointer(rebasing: bytes[start..<(start + length)]))
    }

    func suffix(from offset: Int) -> ByteView { clamped(at: offset, count: bytes.count) }

    func u16(at offset: Int, bigEndian: Bool = true) -> UInt16? {
        guard let value: UInt16 = load(at: offset) else { return nil }
        return bigEndian ? UInt16(bigEndian: value) : UInt16(littleEndian: value)
    }

    func u24(at offset: Int, bigEndian: Bool = true) -> UInt32? {
        guard let a = byte(at: offset), let c = byte(at: offset + 2) else { return nil }
        let b = bytes[offset + 1]
        let (high, low) = bigEndian ? (a, c) : (c, a)
        return UInt32(high) << 16 | UInt32(b) << 8 | UInt32(low)
    }

    func u32(at offset: Int, bigEndian: Bool = true) -> UInt32? {
        guard let value: UInt32 = load(at: offset) else { return nil }
        return bigEndian ? UInt32(bigEndian: value) : UInt32(littleEndian: value)
    }

    func u64(at offset: Int, bigEndian: Bool = true) -> UInt64? {
        guard let value: UInt64 = load(at: offset) else { return nil }
        return bigEndian ? UInt64(bigEndian: value) : UInt64(littleEndian: value)
    }

    /// - Parameter width: 1, 2 or 4 bytes, the first the highest.
    func number(at offset: Int, width: Int) -> Int? {
        switch width {
        case 1: byte(at: offset).map(Int.init)
        case 2: u16(at: offset).map(Int.init)
        default: u32(at: offset).map(Int.init)
        }
    }

    /// - Returns: the four bytes of a chunk or box type as text.
    func fourCC(at offset: Int) -> String? {
        slice(at: offset, count: 4).map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    func starts(with ascii: String, at offset: Int = 0) -> Bool {
        guard let part = slice(at: offset, count: ascii.utf8.count) else { return false }
        return part.bytes.elementsEqual(ascii.utf8)
    }

    private func load<Integer: FixedWidthInteger>(at offset: Int) -> Integer? {
        let size = MemoryLayout<Integer>.size
        guard offset >= 0, bytes.count >= size, offset <= bytes.count - size else { return nil }
        return bytes.loadUnaligned(fromByteOffset: offset, as: Integer.self)
    }
}

/// Where a view's bytes are: a mapped file, or a copy.
final class ByteStore {
    let bytes: UnsafeRawBufferPointer
    private let isMapped: Bool

    init(copying array: [UInt8]) {
        let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: array.count, alignment: 16)
        copy.copyBytes(from: array)
        bytes = UnsafeRawBufferPointer(copy)
        isMapped = false
    }

    /// Maps the whole file. A file that shrinks while it is mapped kills the process with SIGBUS; that is why media is read in a process of its own.
    /// - Throws: `empty` for a file without bytes, `source-unreadable`, `over-budget`.
    init(mapping descriptor: Int32) throws(Failure) {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.unreadable("fstat") }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw Failure(.sourceUnreadable, "This is not a regular file.", detail: "mode \(status.st_mode)")
        }
        guard status.st_size > 0 else { throw Failure(.empty, "The file has no bytes.") }
        guard let address = mmap(nil, Int(status.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0),
            address != MAP_FAILED
        else { throw Self.unreadable("mmap of \(status.st_size) bytes") }
        bytes = UnsafeRawBufferPointer(start: address, count: Int(status.st_size))
        isMapped = true
    }

    deinit {
        if isMapped {
            munmap(UnsafeMutableRawPointer(mutating: bytes.baseAddress), bytes.count)
        } else {
            bytes.deallocate()
        }
    }

    private static func unreadable(_ call: String) -> Failure {
        Failure(
            .sourceUnreadable, "The file could not be read. Check the card or disk and try again.",
            detail: "\(call): \(String(cString: strerror(errno)))")
    }
}
