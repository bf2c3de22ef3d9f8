import Synchronization
import Vocabulary

/// How far the running jobs are. In memory only: after a restart a job starts over.
final class ProgressBoard: Sendable {
    private let fractions = Mutex<[ItemID: Double]>([:])

    func fraction(_ item: ItemID) -> Double? { fractions.withLock { $0[item] } }
    /// - Parameter fraction: 0 to 1; one smaller than before is ignored.
    func report(_ item: ItemID, _ fraction: Double) {
        fractions.withLock { $0[item] = max($0[item] ?? 0, min(1, max(0, fraction))) }
    }
    func clear(_ item: ItemID) { fractions.withLock { $0[item] = nil } }
}
