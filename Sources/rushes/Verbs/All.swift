extension Verb {
    /// In the order in which the help shows them.
    static let all: [Verb] = [
        .probe,
        .transcode,
        .thumb,
        .serve,
    ]
}
