internal import CXXHash
public import Vocabulary

/// A running XXH128 over bytes as they pass by.
public final class XXH128 {
    private let state: OpaquePointer

    public init() {
        // Nothing but an allocation of some hundred bytes can fail.
        guard let state = XXH3_createState(), XXH3_128bits_reset(state) == XXH_OK else {
            preconditionFailure("xxHash has no state")
        }
        self.state = state
    }

    deinit { XXH3_freeState(state) }

    public func update(_ bytes: UnsafeRawBufferPointer) {
        guard let base = bytes.baseAddress, !bytes.isEmpty else { return }
        XXH3_128bits_update(state, base, bytes.count)
    }

    /// The hash of everything so far.
    public func finalize() -> XXH128Digest {
        let bytes = [UInt8](unsafeUninitializedCapacity: 16) { buffer, count in
            rushes_xxh128_bytes(state, buffer.baseAddress)
            count = 16
        }
        guard let digest = XXH128Digest(rawValue: bytes.hexadecimal) else {
            preconditionFailure("16 bytes are 32 digits")
        }
        return digest
    }
}
