import Glibc
import Vocabulary

/// The only door for the shims' results: a count or descriptor, or a negated errno.
@discardableResult
func checked<Count: SignedInteger>(_ call: String, _ result: Count) throws(Failure) -> Count {
    guard result < 0 else { return result }
    throw fault(call, Int32(-result))
}

func fault(_ call: String, _ code: Int32) -> Failure {
    let detail = "\(call): \(String(cString: strerror(code)))"
    switch code {
    case EMFILE, ENFILE:
        return Failure(
            .busy, "Too many files are open: raise the limit (ulimit -n) or start again later.", remedy: .retryLater,
            detail: detail)
    case EAGAIN, ENOMEM:
        return Failure(
            .busy, "This machine has no room for another process: start again later.", remedy: .retryLater,
            detail: detail)
    default:
        return Failure(.internalError, "A process could not be started or reached.", detail: detail)
    }
}
