extension Verb {
    /// In the order in which the help shows them.
    static let all: [Verb] = [
        .ingest,
        .status,
        .show,
        .probe,
        .transcode,
        .thumb,
        .serve,
        .check,
    ]
}
