/// Something that `rushes check` found wrong: a broken invariant, told for a person.
public struct Finding: Codable, Sendable, Hashable, CustomStringConvertible {
    /// Stable, e.g. `blob-missing`.
    public var code: String
    /// The number of the invariant in ARCHITECTURE.md that it breaks.
    public var invariant: Int
    /// One sentence.
    public var message: String
    /// The row, key or path that it is about.
    public var subject: String

    public init(_ code: String, invariant: Int, _ message: String, subject: String) {
        self.code = code
        self.invariant = invariant
        self.message = message
        self.subject = subject
    }

    public var description: String { "\(code): \(message) (\(subject))" }
}
