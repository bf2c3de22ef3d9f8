import Dispatch
import Files
import Glibc
import Synchronization
public import Vocabulary

/// One SQLite database, through two connections. Writes go through a queue of their own, since making them durable blocks; a transaction's body is
/// synchronous, so nothing can come between its statements. Reads are carried out where they are asked for: in WAL mode they wait for no
/// writer, and to change threads twice costs more than to look up a row.
///
/// WAL with `synchronous=FULL`: a transaction that has returned survives a power cut, and none is read that would not.
public actor Database {
    private let executor = DatabaseExecutor()
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    public nonisolated let path: String
    private let writer: Connection
    private nonisolated let reader: Mutex<Connection>
    /// Milliseconds between two looks where SQLite does not wait itself.
    private static let busyInterval: Int32 = 5

    /// What has come since the last commit began.
    private var waiting: [WaitingWrite] = []
    /// Writes in one commit. There are as many writers as operations at once; this only bounds a mistake.
    private static let groupMax = 256

    /// Opens or creates the database and brings its schema up to date.
    /// - Parameter migrations: SQL scripts in order; their number is kept as `user_version`, each runs once, in a transaction of its own.
    public init(_ path: String, migrations: [String]) async throws(Failure) {
        // Transactions that a killed process wrote and did not come to sync are found by the next one and acted upon: they have to be durable
        // before they are read. (Closing another descriptor of the log drops no lock: SQLite holds none on it.)
        do throws(Failure) { try OpenFile.reading(path + "-wal").synchronize() } catch {
            // None, or gone this moment: the last one to close has written everything into the database then.
            guard error.code == .sourceMissing else { throw error }
        }
        self.path = path
        writer = try Connection(path)
        reader = Mutex(try Connection(path))
        try await prepareSchema(migrations)
    }

    private func prepareSchema(_ migrations: [String]) async throws(Failure) {
        try keepLog()
        try writer.execute("PRAGMA synchronous=FULL")
        try writer.execute("PRAGMA foreign_keys=ON")
        // KiB, negative by SQLite's convention. The default of 2 MiB a connection fills slowly over thousands of items and looks like a leak;
        // the system's own cache has the pages anyway.
        try writer.execute("PRAGMA cache_size=-512")
        try reader.withLock { reader throws(Failure) in
            try reader.execute("PRAGMA cache_size=-512")
            try reader.execute("PRAGMA query_only=ON")
        }
        let path = path
        try await write("schema") { database throws(Failure) in
            let version = try database.row("PRAGMA user_version")?.int(0) ?? 0
            guard version <= migrations.count else {
                throw Failure(
                    .databaseError, "This folder was written by a newer Rushes: use that version.", remedy: .askUser,
                    detail: "\(path): user_version \(version), known \(migrations.count)")
            }
            for index in version..<migrations.count {
                try database.execute(migrations[index])
                try database.execute("PRAGMA user_version=\(index + 1)")
            }
        }
    }

    /// SQLite waits for nobody where a database gets its log: of two that open a new one at once, one would be refused.
    private func keepLog() throws(Failure) {
        var waited: Int32 = 0
        while true {
            do throws(Failure) { return try writer.execute("PRAGMA journal_mode=WAL") } catch {
                guard error.code == .busy, waited < Connection.busyTimeout else { throw error }
            }
            usleep(useconds_t(Self.busyInterval) * 1000)
            waited += Self.busyInterval
        }
    }

    /// Runs `body` as one transaction: all of it is durable when this returns, or nothing of it happened. One durable step, unless the body
    /// changed nothing.
    ///
    /// Writes that come while another is being made durable share one commit: its sync is what a write costs.
    public func write<Value: Sendable>(
        _ step: String, _ body: @escaping @Sendable (Connection) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            var result: Result<Value, Failure>?
            let write = WaitingWrite(step: step) {
                do throws(Failure) {
                    result = .success(try body(self.writer))
                    return nil
                } catch {
                    result = .failure(error)
                    return error
                }
            } end: { failure in
                if case .failure(let own)? = result {
                    continuation.resume(returning: .failure(own))
                } else if let failure {
                    continuation.resume(returning: .failure(failure))
                } else {
                    continuation.resume(
                        returning: result ?? .failure(Failure(.internalError, "A write was never carried out.")))
                }
            }
            waiting.append(write)
            // Behind those who wait for the queue already: they may have something to write as well.
            if waiting.count == 1 { Task { commitWaiting() } }
        }
        return try result.get()
    }

    private func commitWaiting() {
        let group = waiting.prefix(Self.groupMax)
        waiting.removeFirst(group.count)
        if !waiting.isEmpty { Task { commitWaiting() } }
        var failure: Failure?
        do throws(Failure) { try commit(group) } catch {
            // A failed COMMIT (disk full) leaves the transaction open; some errors have rolled it back already.
            try? writer.execute("ROLLBACK")
            failure = error
        }
        for write in group { write.end(failure) }
    }

    private func commit(_ group: ArraySlice<WaitingWrite>) throws(Failure) {
        try writer.run("BEGIN IMMEDIATE")
        var changed: [String] = []
        for write in group {
            let before = writer.changeCount
            // One that fails must not take the others with it.
            if group.count > 1 { try writer.run("SAVEPOINT one") }
            if let failure = write.run() {
                // Alone; or some errors (disk full) have rolled everything back already.
                if group.count == 1 || !writer.isInTransaction { throw failure }
                try writer.run("ROLLBACK TO one")
            } else if writer.changeCount != before {
                changed.append(write.step)
            }
            if group.count > 1 { try writer.run("RELEASE one") }
        }
        try writer.run("COMMIT")
        for step in changed { DurableSteps.passed(step) }
    }

    // MARK: Reading

    /// Several reads of one state.
    public nonisolated func read<Value: Sendable>(
        _ body: (Connection) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try reader.withLock { reader throws(Failure) in
            try reader.run("BEGIN")
            defer { _ = try? reader.run("COMMIT") }
            return try body(reader)
        }
    }

    public nonisolated func row(_ sql: String, _ parameters: [SQLValue] = []) throws(Failure) -> SQLRow? {
        try reader.withLock { reader throws(Failure) in try reader.row(sql, parameters) }
    }

    public nonisolated func rows(
        _ sql: String, _ parameters: [SQLValue] = [], limit: Int = .max
    ) throws(Failure) -> [SQLRow] {
        try reader.withLock { reader throws(Failure) in try reader.rows(sql, parameters, limit: limit) }
    }

    /// Changes whenever somebody else has committed something.
    public func version() throws(Failure) -> Int { try writer.row("PRAGMA data_version")?.int(0) ?? 0 }
}

/// A write that waits for its commit.
private struct WaitingWrite {
    let step: String
    /// Carries its body out. - Returns: why that failed.
    let run: () -> Failure?
    /// Tells the caller. - Parameter failure: of the commit; nothing of the write happened then, whatever its body came to.
    let end: (_ failure: Failure?) -> Void
}

/// One serial queue: blocking calls leave Swift's shared threads alone.
private final class DatabaseExecutor: SerialExecutor {
    private let queue = DispatchQueue(label: "rushes.database")
    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedSerialExecutor()) }
    }
    func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
