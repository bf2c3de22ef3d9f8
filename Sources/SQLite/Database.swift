import Dispatch
import Files
import Glibc
import Synchronization
public import Vocabulary

/// One SQLite database, through two connections. Writes are made durable on a queue, since that blocks; a transaction's body is synchronous, so
/// nothing can come between its statements. Reads are carried out where they are asked for: in WAL mode they wait for no writer, and to change
/// threads twice costs more than to look up a row.
///
/// WAL with `synchronous=FULL`: a transaction that has returned survives a power cut, and none is read that would not.
public final class Database: Sendable {
    public let path: String
    private let writer: Mutex<Connection>
    private let reader: Mutex<Connection>
    private let queue = DispatchQueue(label: "rushes.database")
    /// What has come since the last commit began.
    private let waiting = Mutex<[WaitingWrite]>([])
    /// Writes in one commit. There are as many writers as operations at once; this only bounds a mistake.
    private static let groupMax = 256
    /// Milliseconds between two looks where SQLite does not wait itself.
    private static let busyInterval: Int32 = 5

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
        writer = Mutex(try Connection(path))
        reader = Mutex(try Connection(path))
        try await onQueue { connection throws(Failure) in
            try Self.keepLog(connection)
            try connection.execute("PRAGMA synchronous=FULL")
            try connection.execute("PRAGMA foreign_keys=ON")
            try Self.boundCache(connection)
        }
        try reader.withLock { connection throws(Failure) in
            try Self.boundCache(connection)
            try connection.execute("PRAGMA query_only=ON")
        }
        try await migrate(migrations)
    }

    /// Opens a database for who only looks: where it cannot be written, it is read as it is. Writing is refused then.
    /// - Throws: `read-only` where that needs writing once: transactions in the log of which there is no index, or an older schema.
    public static func looking(_ path: String, migrations: [String]) async throws(Failure) -> Database {
        do throws(Failure) { return try await Database(path, migrations: migrations) } catch {
            guard error.code == .readOnly else { throw error }
        }
        do throws(Failure) { return try Database(path, .reading, version: migrations.count) } catch {
            guard error.code == .readOnly else { throw error }
        }
        // Without a log all is in the database itself. What the log holds can only be read with its index, which would have to be made.
        guard try Files.facts(path + "-wal")?.size ?? 0 == 0 else {
            throw needsWriting(path, "its last changes are still in a log, which has to be gone through")
        }
        return try Database(path, .readingAlone, version: migrations.count)
    }

    private init(_ path: String, _ access: Connection.Access, version known: Int) throws(Failure) {
        self.path = path
        writer = Mutex(try Connection(path, access))
        reader = Mutex(try Connection(path, access))
        let version = try reader.withLock { reader throws(Failure) in
            try Self.boundCache(reader)
            return try reader.row("PRAGMA user_version")?.int(0) ?? 0
        }
        guard version <= known else { throw Self.isNewer(path, version, known: known) }
        guard version == known else {
            throw Self.needsWriting(path, "an older Rushes wrote it, and it has to be updated")
        }
    }

    private static func needsWriting(_ path: String, _ why: String) -> Failure {
        Failure(
            .readOnly,
            "“\(path)” cannot be read where nothing can be written: \(why). Run the same command once where its folder can be written, or on a copy of the folder.",
            remedy: .askUser, detail: path)
    }

    private static func isNewer(_ path: String, _ version: Int, known: Int) -> Failure {
        Failure(
            .databaseError, "This folder was written by a newer Rushes: use that version.", remedy: .askUser,
            detail: "\(path): user_version \(version), known \(known)")
    }

    private static func boundCache(_ connection: Connection) throws(Failure) {
        // KiB, negative by SQLite's convention. The default of 2 MiB a connection fills slowly over thousands of items and looks like a leak;
        // the system's own cache has the pages anyway.
        try connection.execute("PRAGMA cache_size=-512")
    }

    /// SQLite waits for nobody where a database gets its log: of two that open a new one at once, one would be refused.
    private static func keepLog(_ connection: Connection) throws(Failure) {
        var waited: Int32 = 0
        while true {
            do throws(Failure) { return try connection.execute("PRAGMA journal_mode=WAL") } catch {
                guard error.code == .busy, waited < Connection.busyTimeout else { throw error }
            }
            usleep(useconds_t(busyInterval) * 1000)
            waited += busyInterval
        }
    }

    private func migrate(_ migrations: [String]) async throws(Failure) {
        let path = path
        try await write("schema") { database throws(Failure) in
            let version = try database.row("PRAGMA user_version")?.int(0) ?? 0
            guard version <= migrations.count else { throw Self.isNewer(path, version, known: migrations.count) }
            for index in version..<migrations.count {
                try database.execute(migrations[index])
                try database.execute("PRAGMA user_version=\(index + 1)")
            }
        }
    }

    // MARK: Writing

    /// Runs `body` as one transaction: all of it is durable when this returns, or nothing of it happened. One durable step, unless the body
    /// changed nothing.
    ///
    /// Writes that come while another is being made durable share one commit: its sync is what a write costs.
    public func write<Value: Sendable>(
        _ step: String, _ body: @escaping @Sendable (Connection) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            let write = WaitingWrite(step: step) { connection in
                do throws(Failure) {
                    let value = try body(connection)
                    return .done { failure in
                        continuation.resume(returning: failure.map { .failure($0) } ?? .success(value))
                    }
                } catch {
                    return .failed(error)
                }
            } refuse: { failure in
                continuation.resume(returning: .failure(failure))
            }
            let isFirst = waiting.withLock { waiting in
                waiting.append(write)
                return waiting.count == 1
            }
            if isFirst { queue.async { self.commitWaiting() } }
        }
        return try result.get()
    }

    /// Writes that nobody has begun with.
    var waitingCount: Int { waiting.withLock { $0.count } }

    private func commitWaiting() {
        let group = waiting.withLock { waiting in
            let group = waiting.prefix(Self.groupMax)
            waiting.removeFirst(group.count)
            if !waiting.isEmpty { queue.async { self.commitWaiting() } }
            return group
        }
        let answers = writer.withLock { Self.commit(group, by: $0) }
        for answer in answers { answer() }
    }

    /// - Returns: what tells each of the writers how it ended.
    private static func commit(_ group: ArraySlice<WaitingWrite>, by connection: Connection) -> [@Sendable () -> Void] {
        var ends: [WaitingWrite.End?] = group.map { _ in nil }
        var failure: Failure?
        do throws(Failure) {
            try carryOut(group, by: connection, &ends)
        } catch {
            // A failed COMMIT (disk full) leaves the transaction open; some errors have rolled it back already.
            try? connection.execute("ROLLBACK")
            failure = error
        }
        return zip(group, ends).map { write, end in
            switch end {
            case .done(let tell)?: { [failure] in tell(failure) }
            case .failed(let own)?: { write.refuse(own) }
            case nil:
                { [failure] in write.refuse(failure ?? Failure(.internalError, "A write was never carried out.")) }
            }
        }
    }

    private static func carryOut(
        _ group: ArraySlice<WaitingWrite>, by connection: Connection, _ ends: inout [WaitingWrite.End?]
    ) throws(Failure) {
        try connection.run("BEGIN IMMEDIATE")
        var changed: [String] = []
        for (index, write) in group.enumerated() {
            let before = connection.changeCount
            // One that fails must not take the others with it.
            if group.count > 1 { try connection.run("SAVEPOINT one") }
            let end = write.run(connection)
            ends[index] = end
            if case .failed(let failure) = end {
                // Alone; or some errors (disk full) have rolled everything back already.
                if group.count == 1 || !connection.isInTransaction { throw failure }
                try connection.run("ROLLBACK TO one")
            } else if connection.changeCount != before {
                changed.append(write.step)
            }
            if group.count > 1 { try connection.run("RELEASE one") }
        }
        try connection.run("COMMIT")
        for step in changed { DurableSteps.passed(step) }
    }

    /// Something that needs the connection that writes.
    private func onQueue<Value: Sendable>(
        _ body: @escaping @Sendable (Connection) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            queue.async {
                let result = self.writer.withLock { connection -> Result<Value, Failure> in
                    do throws(Failure) { return .success(try body(connection)) } catch { return .failure(error) }
                }
                continuation.resume(returning: result)
            }
        }
        return try result.get()
    }

    // MARK: Reading

    /// Several reads of one state.
    public func read<Value: Sendable>(
        _ body: (Connection) throws(Failure) -> Value
    ) throws(Failure) -> Value {
        try reader.withLock { reader throws(Failure) in
            try reader.run("BEGIN")
            defer { _ = try? reader.run("COMMIT") }
            return try body(reader)
        }
    }

    public func row(_ sql: String, _ parameters: [SQLValue] = []) throws(Failure) -> SQLRow? {
        try reader.withLock { reader throws(Failure) in try reader.row(sql, parameters) }
    }

    public func rows(
        _ sql: String, _ parameters: [SQLValue] = [], limit: Int = .max
    ) throws(Failure) -> [SQLRow] {
        try reader.withLock { reader throws(Failure) in try reader.rows(sql, parameters, limit: limit) }
    }

    /// Changes whenever somebody else has committed something.
    public func version() async throws(Failure) -> Int {
        try await onQueue { connection throws(Failure) in try connection.row("PRAGMA data_version")?.int(0) ?? 0 }
    }
}

/// A write that waits for its commit.
private struct WaitingWrite: Sendable {
    enum End: Sendable {
        /// Tells the caller. - Parameter failure: of the commit; nothing of the write happened then.
        case done(tell: @Sendable (_ failure: Failure?) -> Void)
        case failed(Failure)
    }
    let step: String
    /// Carries its body out.
    let run: @Sendable (Connection) -> End
    /// Tells the caller that nothing of it happened.
    let refuse: @Sendable (Failure) -> Void
}
