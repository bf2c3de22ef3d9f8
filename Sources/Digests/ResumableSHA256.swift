internal import CCrypto
public import Vocabulary

/// A running SHA-256 whose state can be kept, so that it goes on in another process.
public struct ResumableSHA256: Sendable, Hashable {
    /// OpenSSL's `SHA256_CTX` as it lies in memory: for machines of one kind.
    public private(set) var state: [UInt8]

    public init() {
        state = [UInt8](repeating: 0, count: MemoryLayout<SHA256_CTX>.size)
        with { SHA256_Init($0) }
    }

    /// Nil for what is no state.
    public init?(state: [UInt8]) {
        guard state.count == MemoryLayout<SHA256_CTX>.size else { return nil }
        self.state = state
    }

    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        with { SHA256_Update($0, base, bytes.count) }
    }

    /// The hash of everything so far; the run may go on.
    public var digest: SHA256Digest {
        var ended = self
        var bytes = [UInt8](repeating: 0, count: 32)
        ended.with { SHA256_Final(&bytes, $0) }
        guard let digest = SHA256Digest(rawValue: bytes.hexadecimal) else {
            preconditionFailure("32 bytes are 64 digits")
        }
        return digest
    }

    private mutating func with(_ body: (UnsafeMutablePointer<SHA256_CTX>) -> Int32) {
        state.withUnsafeMutableBytes { bytes in
            var context = bytes.loadUnaligned(as: SHA256_CTX.self)
            _ = body(&context)
            bytes.storeBytes(of: context, as: SHA256_CTX.self)
        }
    }
}
