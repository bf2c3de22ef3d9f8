import Vocabulary

/// Which of the items that could be worked on comes first.
public enum QueueOrder: String, Sendable, CaseIterable {
    /// As they were picked.
    case chosen
    /// By the bytes of the original.
    case smallest
    /// By when the original was last changed, which is when it was recorded.
    case newest

    /// What a person has asked for comes before what an inbox has found; then the order; then that of picking.
    /// - Parameter items: in the order of picking.
    func sorted(_ items: [WorkQueue.Item]) -> [WorkQueue.Item] {
        items.enumerated().sorted { left, right in
            if left.element.isAsked != right.element.isAsked { return left.element.isAsked }
            switch self {
            case .chosen: break
            case .smallest:
                if left.element.bytes != right.element.bytes { return left.element.bytes < right.element.bytes }
            case .newest:
                if left.element.modified != right.element.modified {
                    return left.element.modified > right.element.modified
                }
            }
            return left.offset < right.offset
        }.map(\.element)
    }
}
