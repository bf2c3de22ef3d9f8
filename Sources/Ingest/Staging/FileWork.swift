import Dispatch
import Synchronization
import Vocabulary

/// Where calls that block on files run: on threads of their own, since Swift's shared ones are as few as the cores. Callers bound how many
/// they start.
enum FileWork {
    private static let queue = DispatchQueue(label: "rushes.files", attributes: .concurrent)

    /// Runs `body` to its end; cancelling the surrounding Swift task raises the flag that is given to it.
    static func run<Value: Sendable>(
        _ body: @escaping @Sendable (StopFlag) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let flag = StopFlag()
        let result: Result<Value, Failure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                queue.async { @Sendable in
                    do throws(Failure) {
                        continuation.resume(returning: .success(try body(flag)))
                    } catch { continuation.resume(returning: .failure(error)) }
                }
            }
        } onCancel: {
            flag.raise()
        }
        return try result.get()
    }
}

/// Asked for between two reads.
final class StopFlag: Sendable {
    private let isRaised = Atomic<Bool>(false)
    func raise() { isRaised.store(true, ordering: .relaxed) }
    func check() throws(Failure) {
        if isRaised.load(ordering: .relaxed) { throw Failure(.cancelled, "Stopped.") }
    }
}
