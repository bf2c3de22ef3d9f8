internal import CSQLite
import Glibc
public import Vocabulary

/// One connection to one SQLite database, for one thread at a time.
public final class Connection {
    let path: String
    private let database: OpaquePointer
    private var statements: [String: StatementBox] = [:]
    /// Kept prepared statements. The number of different texts is fixed by the code, this only bounds a mistake.
    private static let statementCountMax = 256
    /// How long a writer of another process is waited for, in milliseconds.
    static let busyTimeout: Int32 = 15_000

    enum Access {
        case writing
        /// Others may write meanwhile.
        case reading
        /// Nobody writes, and there is no log beside it: only the file itself is opened.
        case readingAlone
    }

    init(_ path: String, _ access: Access = .writing) throws(Failure) {
        var opened: OpaquePointer?
        let wanted =
            switch access {
            case .writing: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
            case .reading: SQLITE_OPEN_READONLY
            case .readingAlone: SQLITE_OPEN_READONLY | SQLITE_OPEN_URI
            }
        let flags = wanted | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
        let name = access == .readingAlone ? Self.immutable(path) : path
        let result = sqlite3_open_v2(name, &opened, flags, nil)
        guard result == SQLITE_OK, let opened else {
            let detail = opened.map { String(cString: sqlite3_errmsg($0)) }
            let systemError = opened.map { sqlite3_system_errno($0) } ?? 0
            sqlite3_close_v2(opened)
            throw SQLiteFault.failure(result, "open", path, detail, systemError: systemError)
        }
        self.path = path
        database = opened
        sqlite3_busy_timeout(database, Self.busyTimeout)
    }

    /// sqlite.org/uri.html; a path may hold what means something in a URI.
    private static func immutable(_ path: String) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        var name = Array("file:".utf8)
        for byte in path.utf8 {
            if byte == UInt8(ascii: "%") || byte == UInt8(ascii: "?") || byte == UInt8(ascii: "#") {
                name += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            } else {
                name.append(byte)
            }
        }
        return String(decoding: name, as: UTF8.self) + "?immutable=1"
    }

    deinit {
        statements.removeAll()
        sqlite3_close_v2(database)
    }

    /// Rows changed since it was opened.
    var changeCount: Int64 { sqlite3_total_changes64(database) }
    var isInTransaction: Bool { sqlite3_get_autocommit(database) == 0 }

    /// Runs a script without parameters.
    public func execute(_ sql: String) throws(Failure) {
        let result = sqlite3_exec(database, sql, nil, nil, nil)
        guard result == SQLITE_OK else { throw fault(result, sql) }
    }

    /// Runs one statement.
    /// - Returns: the number of rows that it changed.
    @discardableResult
    public func run(_ sql: String, _ parameters: [SQLValue] = []) throws(Failure) -> Int {
        _ = try rows(sql, parameters, limit: 0)
        return Int(sqlite3_changes64(database))
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
        let result = sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &pointer, nil)
        guard result == SQLITE_OK, let pointer else { throw fault(result, sql) }
        if statements.count >= Self.statementCountMax { statements.removeAll() }
        let box = StatementBox(pointer)
        statements[sql] = box
        return box
    }

    private func fault(_ code: Int32, _ sql: String) -> Failure {
        SQLiteFault.failure(
            code, sql, path, String(cString: sqlite3_errmsg(database)), systemError: sqlite3_system_errno(database))
    }
}

/// Finalizes its statement when it goes.
private final class StatementBox {
    let pointer: OpaquePointer
    init(_ pointer: OpaquePointer) { self.pointer = pointer }
    deinit { sqlite3_finalize(pointer) }
}

enum SQLiteFault {
    /// SQLITE_IOERR_SHMSIZE of sqlite3.h, whose definition Swift does not read: there is no room for the index of the log, and SQLite does not
    /// keep the errno of that.
    private static let noRoomForLogIndex = SQLITE_IOERR | 19 << 8

    /// - Parameter systemError: the errno that SQLite has kept; it counts only where files could not be read, written or opened.
    static func failure(
        _ code: Int32, _ sql: String, _ path: String, _ message: String?, systemError: Int32 = 0
    ) -> Failure {
        let detail = "\(path): \(message ?? "") (\(code)) in \(sql.prefix(200))"
        let isFileFault = code & 0xFF == SQLITE_IOERR || code & 0xFF == SQLITE_CANTOPEN
        let isFull = code == noRoomForLogIndex || isFileFault && [ENOSPC, EDQUOT].contains(systemError)
        switch isFull ? SQLITE_FULL : code & 0xFF {
        case SQLITE_FULL:
            return Failure(
                .diskFull, "The disk is full: free some space and start again; nothing was lost.", detail: detail)
        case SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_PERM:
            return Failure(
                .readOnly,
                "“\(path)” cannot be written: choose another folder with RUSHES_HOME, or change its permissions.",
                detail: detail)
        case SQLITE_BUSY, SQLITE_LOCKED:
            return Failure(.busy, "Another process is writing for a long time: try again.", detail: detail)
        case SQLITE_CONSTRAINT:
            return Failure(.conflict, "This contradicts what is already written.", detail: detail)
        case SQLITE_CORRUPT, SQLITE_NOTADB:
            return Failure(
                .databaseError, "The database “\(path)” is damaged: restore it, or set it aside and start again.",
                remedy: .askUser,
                detail: detail)
        default:
            return Failure(.databaseError, "The database “\(path)” reported an error.", detail: detail)
        }
    }
}
