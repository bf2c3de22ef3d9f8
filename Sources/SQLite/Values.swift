internal import CSQLite
public import Vocabulary

/// A value on its way into or out of a statement.
public enum SQLValue: Sendable, Hashable, ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
    ExpressibleByNilLiteral
{
    case null
    case int(Int)
    case real(Double)
    case text(String)
    case blob([UInt8])

    public init(stringLiteral value: String) { self = .text(value) }
    public init(integerLiteral value: Int) { self = .int(value) }
    public init(nilLiteral: ()) { self = .null }

    public init(_ value: Int?) { self = value.map { .int($0) } ?? .null }
    public init(_ value: Int64) { self = .int(Int(value)) }
    public init(_ value: Double?) { self = value.map { .real($0) } ?? .null }
    public init(_ value: String?) { self = value.map { .text($0) } ?? .null }
    public init(_ value: Bool) { self = .int(value ? 1 : 0) }
    public init<Kind>(_ value: Identifier<Kind>?) { self.init(value?.rawValue) }
    public init(_ value: SHA256Digest?) { self.init(value?.rawValue) }
    public init<Value: RawRepresentable>(_ value: Value) where Value.RawValue == String { self = .text(value.rawValue) }

    func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
        switch self {
        case .null: return sqlite3_bind_null(statement, index)
        case .int(let value): return sqlite3_bind_int64(statement, index, Int64(value))
        case .real(let value): return sqlite3_bind_double(statement, index, value)
        case .text(var value):
            return value.withUTF8 { bytes in
                // An empty buffer may have no address, and a null pointer would bind NULL instead of "".
                guard let base = bytes.baseAddress else { return rushes_bind_text(statement, index, "", 0) }
                return base.withMemoryRebound(to: CChar.self, capacity: bytes.count) {
                    rushes_bind_text(statement, index, $0, Int32(bytes.count))
                }
            }
        case .blob(let value):
            guard !value.isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
            return rushes_bind_blob(statement, index, value, Int32(value.count))
        }
    }
}

/// A row, copied out of its statement.
public struct SQLRow: Sendable, Hashable {
    public let values: [SQLValue]

    init(_ statement: OpaquePointer) {
        values = (0..<sqlite3_column_count(statement)).map { column in
            switch sqlite3_column_type(statement, column) {
            case SQLITE_INTEGER: return .int(Int(sqlite3_column_int64(statement, column)))
            case SQLITE_FLOAT: return .real(sqlite3_column_double(statement, column))
            case SQLITE_TEXT:
                let bytes = UnsafeBufferPointer(
                    start: sqlite3_column_text(statement, column), count: Int(sqlite3_column_bytes(statement, column)))
                return .text(String(decoding: bytes, as: UTF8.self))
            case SQLITE_BLOB:
                let count = Int(sqlite3_column_bytes(statement, column))
                return .blob(Array(UnsafeRawBufferPointer(start: sqlite3_column_blob(statement, column), count: count)))
            default: return .null
            }
        }
    }

    public func int(_ column: Int) -> Int? {
        if case .int(let value) = values[column] { value } else { nil }
    }
    public func real(_ column: Int) -> Double? {
        switch values[column] {
        case .real(let value): value
        case .int(let value): Double(value)
        default: nil
        }
    }
    public func text(_ column: Int) -> String? {
        if case .text(let value) = values[column] { value } else { nil }
    }
    public func blob(_ column: Int) -> [UInt8]? {
        if case .blob(let value) = values[column] { value } else { nil }
    }
    public func bool(_ column: Int) -> Bool { int(column) ?? 0 != 0 }

    /// A column that must hold such a value; one that does not means a damaged database.
    public func required<Value>(_ column: Int, _ read: (SQLRow) -> (Int) -> Value?) throws(Failure) -> Value {
        guard let value = read(self)(column) else {
            throw Failure(
                .databaseError, "The database holds a row that cannot be read.",
                detail: "column \(column): \(values[column])")
        }
        return value
    }
    public func required<Value: RawRepresentable>(_ column: Int, as type: Value.Type) throws(Failure) -> Value
    where Value.RawValue == String {
        guard let text = text(column), let value = Value(rawValue: text) else {
            throw Failure(
                .databaseError, "The database holds a row that cannot be read.",
                detail: "\(type) in column \(column): \(values[column])")
        }
        return value
    }
}
