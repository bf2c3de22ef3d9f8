extension Verb {
    /// In the order in which the help shows them.
    static let all: [Verb] = [
        .ingest,
        .run,
        .status,
        .show,
        .pause,
        .resume,
        .cancel,
        .retry,
        .discard,
        .verify,
        .mhl,
        .probe,
        .transcode,
        .thumb,
        .serve,
        .token,
        .check,
    ]
}
