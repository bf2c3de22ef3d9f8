import Ingest
import Vocabulary

/// Items as a person names them: by their ids, or by a beginning that only one has.
enum ItemNames {
    /// - Parameter all: every item's id.
    /// - Throws: `not-found` when none begins so, `usage` when several do.
    static func item(_ text: String, among all: [ItemID]) throws(Failure) -> ItemID {
        let matching = all.filter { $0.rawValue.hasPrefix(text) }
        guard !text.isEmpty, let first = matching.first else {
            throw Failure(.notFound, "There is no item “\(text)”: rushes status lists them.")
        }
        if let exact = matching.first(where: { $0.rawValue == text }) { return exact }
        guard matching.count == 1 else {
            throw Failure(.usage, "\(matching.count) items begin with “\(text)”: give more of the id.")
        }
        return first
    }
}
