import Synchronization
import Vocabulary

/// The jobs that this process works on, so that a deleted item's is stopped at once: its media process ends with it. Other machines find out
/// at their next heartbeat.
final class RunningJobs: Sendable {
    private struct Job {
        var epoch: Int
        var cancel: @Sendable () -> Void
    }
    private let jobs = Mutex<[ItemID: Job]>([:])

    func begin(_ item: ItemID, epoch: Int, _ cancel: @escaping @Sendable () -> Void) {
        jobs.withLock { $0[item] = Job(epoch: epoch, cancel: cancel) }
    }
    func end(_ item: ItemID, epoch: Int) {
        jobs.withLock { if $0[item]?.epoch == epoch { $0[item] = nil } }
    }
    func stop(_ item: ItemID) { jobs.withLock { $0[item] }?.cancel() }
}
