import Digests
import HTTPServer
import Synchronization
import Vocabulary

/// A body on its way into an upload. The server's thread fills one part after the other, and waits, with the client, while a task of its own makes
/// each durable; so memory and disk taken do not depend on what comes.
final class TusReception: BodySink {
    enum Ending: Sendable {
        case whole
        /// The connection is lost. What has come is kept, unless it was to have a checksum.
        case broken
    }

    private struct State: @unchecked Sendable {
        // Unchecked: the hashes are used within the lock alone.
        /// Takes bytes.
        var spool: TusSpool?
        /// Of the whole upload.
        var hash = ResumableSHA256()
        /// Of this body.
        var digest: Digest?
        var refusal: Failure?
        var takenBytes = 0
        var ending: Ending?
        /// When the client was last waited for, or heard of.
        var heardAt = ContinuousClock.now
        /// The connection waits.
        var resume: (@Sendable () -> Void)?
        /// The task waits.
        var waiter: CheckedContinuation<Void, Never>?
        var task: Task<Result<TusUpload, Failure>, Never>?
    }
    private let state = Mutex(State())
    let patch: Tus.Patch
    /// Of the body.
    private let bytesMax: Int

    private init(_ patch: Tus.Patch, bytesMax: Int) {
        self.patch = patch
        self.bytesMax = bytesMax
    }

    /// - Parameters:
    ///   - checkedBytesMax: bytes of a body that has a checksum; how long it is may not have been said.
    ///   - work: finds the upload, and gives what comes to it.
    static func begin(
        _ patch: Tus.Patch, checkedBytesMax: Int = Tus.checkedBytesMax,
        _ work: @escaping @Sendable (TusReception) async throws(Failure) -> TusUpload
    ) -> TusReception {
        let reception = TusReception(patch, bytesMax: patch.checksum == nil ? .max : checkedBytesMax)
        let task = Task<Result<TusUpload, Failure>, Never> {
            do throws(Failure) {
                let upload = try await work(reception)
                reception.refuseMore(TusPolicy.beyondTheEnd)
                return .success(upload)
            } catch {
                reception.refuseMore(error)
                return .failure(error)
            }
        }
        reception.state.withLock {
            $0.task = task
            $0.digest = patch.checksum.map { Digest($0.algorithm) }
        }
        return reception
    }

    // MARK: The server's thread

    var isReady: Bool { state.withLock { Self.isReady($0) } }
    private static func isReady(_ state: State) -> Bool { state.spool != nil || state.refusal != nil }

    func whenReady(_ resume: @escaping @Sendable () -> Void) {
        let isReady = state.withLock { state in
            if !Self.isReady(state) { state.resume = resume }
            return Self.isReady(state)
        }
        if isReady { resume() }
    }

    func receive(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int {
        let (taken, waiter) = try state.withLock { state throws(Failure) in
            if let refusal = state.refusal { throw refusal }
            guard let spool = state.spool else { return (0, nil as CheckedContinuation<Void, Never>?) }
            guard state.takenBytes < bytesMax || bytes.isEmpty else {
                state.refusal = TusPolicy.tooLongToCheck
                throw TusPolicy.tooLongToCheck
            }
            state.heardAt = .now
            let taken = try spool.take(
                UnsafeRawBufferPointer(rebasing: bytes.prefix(bytesMax - state.takenBytes)))
            let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(taken))
            state.hash.update(part)
            state.digest?.update(part)
            state.takenBytes += taken
            guard spool.isFull else { return (taken, nil) }
            state.spool = nil
            return (taken, state.waiter.take())
        }
        waiter?.resume()
        return taken
    }

    func breakOff() { end(.broken) }

    /// Nothing more comes.
    func end(_ ending: Ending) {
        let waiter = state.withLock { state in
            if state.ending == nil { state.ending = ending }
            return state.waiter.take()
        }
        waiter?.resume()
    }

    /// After `end`.
    func outcome() async throws(Failure) -> TusUpload {
        guard let task = state.withLock({ $0.task }) else {
            preconditionFailure("a reception has its task from the start")
        }
        return try await task.value.get()
    }

    /// Not all of it has come.
    var isBroken: Bool { state.withLock { $0.ending == .broken } }

    /// Whether a client that is waited for has been silent for so long that another of its requests counts more.
    func isStalled(at now: ContinuousClock.Instant) -> Bool {
        state.withLock { $0.spool != nil && $0.ending == nil && now - $0.heardAt > .seconds(Tus.silenceMax) }
    }

    // MARK: The task

    private func change(_ body: (inout State) -> Void) {
        let resume = state.withLock { state in
            body(&state)
            return Self.isReady(state) ? state.resume.take() : nil
        }
        resume?()
    }

    /// What the upload's bytes so far come to.
    func goOn(from hash: ResumableSHA256) { change { $0.hash = hash } }

    /// What still comes is dropped.
    func refuseMore(_ failure: Failure) { change { $0.refusal = $0.refusal ?? failure } }

    /// Returns when the part is full or nothing more comes.
    /// - Returns: how the body has ended; nil when it goes on.
    func fill(_ spool: TusSpool) async -> Ending? {
        change { state in
            state.spool = spool
            state.heardAt = .now
        }
        await wait { $0.spool == nil || $0.ending != nil }
        return state.withLock { state in
            state.spool = nil
            spool.hash = state.hash
            return state.ending
        }
    }

    func ended() async -> Ending {
        await wait { $0.ending != nil }
        return state.withLock { $0.ending ?? .broken }
    }

    private func wait(until isReached: (State) -> Bool) async {
        await withCheckedContinuation { continuation in
            let isReached = state.withLock { state in
                let isReached = isReached(state)
                if !isReached { state.waiter = continuation }
                return isReached
            }
            if isReached { continuation.resume() }
        }
    }

    /// - Throws: `checksum-mismatch`.
    func checkSum() throws(Failure) {
        guard let checksum = patch.checksum, let digest = state.withLock({ $0.digest.take() }) else { return }
        guard digest.finalize() == checksum.bytes else {
            throw Failure(
                .checksumMismatch, "What arrived does not have the checksum that came with it: send it again.")
        }
    }
}
