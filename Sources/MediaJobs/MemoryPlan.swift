import Vocabulary

/// How `--memory` is divided among the processes that read photos: so much for each while several run, and for one that needs more all that
/// there is, while it runs alone. Pure.
struct MemoryPlan: Equatable {
    /// Bytes of a process that decodes nothing: libraries, tables, what malloc keeps (measured: 53 MiB after a photo).
    static let processBytes = 64 << 20

    /// Processes at once, idle ones included.
    let processCount: Int
    /// What one decode may take while others run.
    let sharedBytes: Int
    /// What one decode may take alone.
    let aloneBytes: Int

    init(memoryBytes: Int, processCountMax: Int) {
        // Each needs as much again for pictures as for itself, or it is of no use.
        processCount = max(1, min(processCountMax, memoryBytes / (2 * Self.processBytes)))
        sharedBytes = max(0, memoryBytes / processCount - Self.processBytes)
        aloneBytes = max(sharedBytes, memoryBytes - Self.processBytes)
    }

    /// What an idle process may keep.
    var idleBytesMax: Int { Self.processBytes + sharedBytes / 2 }
}
