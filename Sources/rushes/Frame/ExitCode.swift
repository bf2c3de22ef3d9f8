import Vocabulary

/// The fixed exit codes.
enum ExitCode: Int32, Sendable {
    case done = 0
    case failed = 1
    case usage = 2
    /// Done, but some were rejected, failed or are missing.
    case partly = 3
    /// This media was rejected.
    case rejected = 4

    init(_ failure: Failure) {
        if failure.code == .usage {
            self = .usage
        } else if failure.code.isVerdict {
            self = .rejected
        } else {
            self = .failed
        }
    }
}
