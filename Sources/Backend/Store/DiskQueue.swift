import Dispatch
import Vocabulary

/// Runs blocking work on files outside Swift's shared threads, a bounded number at once.
struct DiskQueue: Sendable {
    private let places: DispatchSemaphore
    private let queue = DispatchQueue(label: "rushes.disk", attributes: .concurrent)
    private let door = DispatchQueue(label: "rushes.disk.door")

    /// - Parameter width: how many at once; the rest waits in order.
    init(width: Int) { places = DispatchSemaphore(value: width) }

    func run<Value: Sendable>(_ body: @escaping @Sendable () throws(Failure) -> Value) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            door.async { @Sendable in
                places.wait()
                queue.async { @Sendable in
                    do throws(Failure) { continuation.resume(returning: .success(try body())) } catch {
                        continuation.resume(returning: .failure(error))
                    }
                    places.signal()
                }
            }
        }
        return try result.get()
    }
}
