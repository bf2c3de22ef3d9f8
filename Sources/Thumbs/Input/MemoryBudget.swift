import Vocabulary

/// Decides before an allocation whether it may be made.
struct MemoryBudget: Sendable {
    /// Bytes.
    var limit: Int

    init(_ limits: MediaLimits) { limit = limits.memoryBytes }
    /// The file is mapped: what of it is read is in memory too.
    init(_ limits: MediaLimits, input: PictureInput) { limit = max(0, limits.memoryBytes - input.bytes.count) }
    init(bytes: Int) { limit = bytes }

    /// What is left beside bytes that are alive all the time.
    func less(_ bytes: Int) -> MemoryBudget { MemoryBudget(bytes: max(0, limit - bytes)) }

    /// - Parameter bytes: everything that is alive at the same time; nil when the count overflowed.
    func admit(_ bytes: Int?) throws(Failure) {
        if let bytes, bytes <= limit { return }
        throw Failure(
            .overBudget, "This picture needs more memory than is allowed. Allow more with --memory.",
            detail: "\(bytes.map(String.init) ?? "too many") bytes of \(limit)")
    }
}

/// The product, or nil when it does not fit or a factor is negative.
func product(_ factors: Int...) -> Int? {
    var result = 1
    for factor in factors {
        let (value, isOver) = result.multipliedReportingOverflow(by: factor)
        if isOver || factor < 0 { return nil }
        result = value
    }
    return result
}

/// The sum, or nil when a part is nil or it does not fit.
func sum(_ parts: Int?...) -> Int? {
    var result = 0
    for part in parts {
        guard let part else { return nil }
        let (value, isOver) = result.addingReportingOverflow(part)
        if isOver { return nil }
        result = value
    }
    return result
}
