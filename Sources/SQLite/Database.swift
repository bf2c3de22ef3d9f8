internal import CSQLite
import Dispatch
import Files
import Glibc
public import Vocabulary

/// One connection to one SQLite database. Calls run on a queue of its own, since SQLite blocks; a transaction's body is synchronous, so
/// nothing can come between its statements.
///
/// WAL with `synchronous=FULL`: a transaction that has returned survives a power cut.
public actor Database {
    private let executor = DatabaseExecutor()
    public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    public nonisolated let path: String
    // OpaquePointer is not Sendable; this one is touched on the executor's queue alone, from the end of `init` on.
    private let connection: OpaquePointer
    private var statements: [String: StatementBox] = [:]
    /// Kept prepared statements. The number of different texts is fixed by the code, this only bounds a mistake.
    private static let statementCountMax = 256
    /// How long a writer of another process is waited for, in milliseconds.
    private static let busyTimeout: Int32 = 15_000
    /// Milliseconds between two looks where SQLite does not wait itself.
    private static let busyInterval: Int32 = 5

    /// What has come since the last commit began.
    private var waiting: [WaitingWrite] = []
    /// Writes in one commit. There are as many writers as operations at once; this only bounds a mistake.
    private static let groupMax = 256

    private init(path: String, connection: OpaquePointer) {
        self.path = path
        self.connection = connection
    }

    isolated deinit {
        statements.removeAll()
        sqlite3_close_v2(connection)
    }

    /// Opens or creates the database and brings its schema up to date.
    /// - Parameter migrations: SQL scripts in order; their number is kept as `user_version`, each runs once, in a transaction of its own.
    public static func open(_ path: String, migrations: [String]) async throws(Failure) -> Database {
        // Transactions that a killed process wrote and did not come to sync are found by the next one and acted upon: they have to be durable
        // before they are read. (Closing another descriptor of the log drops no lock: SQLite holds none on it.)
        do throws(Failure) { try OpenFile.reading(path + "-wal").synchronize() } catch {
            // None, or gone this moment: the last one to close has written everything into the database then.
            guard error.code == .sourceMissing else { throw error }
        }
        var opened: OpaquePointer?
        let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let result = sqlite3_open_v2(path, &opened, flags, nil)
        guard result == SQLITE_OK, let opened else {
            let detail = opened.map { String(cString: sqlite3_errmsg($0)) }
            sqlite3_close_v2(opened)
            throw SQLiteFault.failure(result, "open", path, detail)
        }
        let database = Database(path: path, connection: opened)
        try await database.prepareSchema(migrations)
        return database
    }

    private func prepareSchema(_ migrations: [String]) async throws(Failure) {
        sqlite3_busy_timeout(connection, Self.busyTimeout)
        try keepLog()
        try execute("PRAGMA synchronous=FULL")
        // KiB, negative by SQLite's convention. The default of 2 MiB a connection fills slowly over thousands of items and looks like a leak;
        // the system's own cache has the pages anyway.
        try execute("PRAGMA cache_size=-512")
        try execute("PRAGMA foreign_keys=ON")
        try await write("schema") { database throws(Failure) in
            let version = try database.row("PRAGMA user_version")?.int(0) ?? 0
            guard version <= migrations.count else {
                throw Failure(
                    .databaseError, "This folder was written by a newer Rushes: use that version.", remedy: .askUser,
                    detail: "\(database.path): user_version \(version), known \(migrations.count)")
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
            do throws(Failure) { return try execute("PRAGMA journal_mode=WAL") } catch {
                guard error.code == .busy, waited < Self.busyTimeout else { throw error }
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
        _ step: String, _ body: @escaping @Sendable (isolated Database) throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            var result = Result<Value, Failure>.failure(Failure(.internalError, "A write was never carried out."))
            let write = WaitingWrite(step: step) {
                do throws(Failure) {
                    result = .success(try body(self))
                    return nil
                } catch {
                    result = .failure(error)
                    return error
                }
            } end: { failure in
                if case .success = result, let failure { result = .failure(failure) }
                continuation.resume(returning: result)
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
            sqlite3_exec(connection, "ROLLBACK", nil, nil, nil)
            failure = error
        }
        for write in group { write.end(failure) }
    }

    private func commit(_ group: ArraySlice<WaitingWrite>) throws(Failure) {
        try run("BEGIN IMMEDIATE")
        var changed: [String] = []
        for write in group {
            let before = sqlite3_total_changes64(connection)
            // One that fails must not take the others with it.
            if group.count > 1 { try run("SAVEPOINT one") }
            if let failure = write.run() {
                // Alone; or some errors (disk full) have rolled everything back already.
                if group.count == 1 || sqlite3_get_autocommit(connection) != 0 { throw failure }
                try run("ROLLBACK TO one")
            } else if sqlite3_total_changes64(connection) != before {
                changed.append(write.step)
            }
            if group.count > 1 { try run("RELEASE one") }
        }
        try run("COMMIT")
        for step in changed { DurableSteps.passed(step) }
    }

    /// Several reads of one state.
    public func read<Value: Sendable>(_ body: @Sendable (isolated Database) throws(Failure) -> Value) throws(Failure)
        -> Value
    {
        try execute("BEGIN")
        defer { sqlite3_exec(connection, "COMMIT", nil, nil, nil) }
        return try body(self)
    }

    /// Runs a script without parameters.
    public func execute(_ sql: String) throws(Failure) {
        let result = sqlite3_exec(connection, sql, nil, nil, nil)
        guard result == SQLITE_OK else { throw fault(result, sql) }
    }

    /// Runs one statement.
    /// - Returns: the number of rows that it changed.
    @discardableResult
    public func run(_ sql: String, _ parameters: [SQLValue] = []) throws(Failure) -> Int {
        _ = try rows(sql, parameters, limit: 0)
        return Int(sqlite3_changes64(connection))
    }

    public func row(_ sql: String, _ parameters: [SQLValue] = []) throws(Failure) -> SQLRow? {
        try rows(sql, parameters, limit: 1).first
    }

    /// - Parameter limit: rows to return at most; the statement is stepped to its end only where it is not reached.
    public func rows(_ sql: String, _ parameters: [SQLValue] = [], limit: Int = .max) throws(Failure) -> [SQLRow] {
        let statement = try prepared(sql).pointer
        defer {
            sqlite3_reset(statement)
            sqlite3_clear_bindings(statement)
        }
        for (index, value) in parameters.enumerated() {
            let result = value.bind(to: statement, at: Int32(index + 1))
            guard result == SQLITE_OK else { throw fault(result, sql) }
        }
        var rows: [SQLRow] = []
        while true {
            switch sqlite3_step(statement) {
            case SQLITE_DONE: return rows
            case SQLITE_ROW:
                if rows.count >= limit { return rows }
                rows.append(SQLRow(statement))
                // A statement that returns rows and changes something (RETURNING) has to be stepped to its end to count.
                if rows.count == limit, sqlite3_stmt_readonly(statement) != 0 { return rows }
            case let result: throw fault(result, sql)
            }
        }
    }

    private func prepared(_ sql: String) throws(Failure) -> StatementBox {
        if let known = statements[sql] { return known }
        var pointer: OpaquePointer?
        let result = sqlite3_prepare_v3(connection, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard result == SQLITE_OK, let pointer else { throw fault(result, sql) }
        if statements.count >= Self.statementCountMax { statements.removeAll() }
        let box = StatementBox(pointer)
        statements[sql] = box
        return box
    }

    private func fault(_ code: Int32, _ sql: String) -> Failure {
        SQLiteFault.failure(code, sql, path, String(cString: sqlite3_errmsg(connection)))
    }
}

/// A write that waits for its commit.
private struct WaitingWrite {
    let step: String
    /// Carries its body out. - Returns: why that failed.
    let run: () -> Failure?
    /// Tells the caller. - Parameter failure: of the commit; nothing of the write happened then, whatever its body came to.
    let end: (_ failure: Failure?) -> Void
}

/// Finalizes its statement when it goes.
private final class StatementBox {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { sqlite3_finalize(pointer) }
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

private enum SQLiteFault {
    static func failure(_ code: Int32, _ sql: String, _ path: String, _ message: String?) -> Failure {
        let detail = "\(path): \(message ?? "") (\(code)) in \(sql.prefix(200))"
        switch code & 0xFF {
        case SQLITE_FULL:
            return Failure(
                .diskFull, "The disk is full: free some space and start again; nothing was lost.", detail: detail)
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM:
            return Failure(
                .readOnly,
                "The folder of Rushes cannot be written: choose another with RUSHES_HOME or change its permissions.",
                detail: detail)
        case SQLITE_BUSY, SQLITE_LOCKED:
            return Failure(.busy, "Another process is writing for a long time: try again.", detail: detail)
        case SQLITE_CONSTRAINT:
            return Failure(.conflict, "This contradicts what is already written.", detail: detail)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return Failure(
                .databaseError, "The database file is damaged: restore it, or set it aside and start again.",
                remedy: .askUser,
                detail: detail)
        default:
            return Failure(.databaseError, "The database reported an error.", detail: detail)
        }
    }
}
