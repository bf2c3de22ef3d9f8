import Curl
import Vocabulary

/// What a store's error means to who asked for something. Its words are for operators only, and often empty: the code counts.
enum S3Fault {
    static func failure(_ code: String, _ response: HTTPResponse, sentAt: Timestamp) -> Failure {
        let detail = "store: HTTP \(response.status) \(code)"
        switch code {
        case "RequestTimeTooSkewed", "RequestNotYetValid":
            return Failure(
                .clockSkewed, "The backend's clock \(skew(response, sentAt)): set it right.", detail: detail)
        case "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied", "InvalidToken", "ExpiredToken", "HTTP 401",
            "HTTP 403":
            return Failure(
                .backendError,
                "The store does not accept the backend's key: check RUSHES_S3_ACCESS_KEY and RUSHES_S3_SECRET_KEY.",
                remedy: .askUser, detail: detail)
        case "NoSuchBucket":
            return Failure(
                .backendError, "The store has no such bucket: make it, or name another with RUSHES_S3_BUCKET.",
                remedy: .askUser, detail: detail)
        case "QuotaExceeded", "XMinioStorageFull", "HTTP 507":
            return Failure(.quotaExceeded, "The quota at the store is used up.", detail: detail)
        case "BadDigest", "InvalidDigest":
            return Failure(.badDigest, "The bytes arrived at the store damaged.", detail: detail)
        case "NoSuchUpload", "NoSuchKey":
            return Failure(.sourceMissing, "The store does not have this.", remedy: .retryLater, detail: detail)
        case "HTTP 404":
            return Failure(
                .backendError, "What answers in the store's place is no store: check RUSHES_S3_ENDPOINT.",
                remedy: .retryLater, detail: detail)
        case "InvalidPart", "InvalidPartOrder", "EntityTooSmall":
            return Failure(
                .incomplete, "The store does not have the parts that it listed: ask for them and send the rest.",
                detail: detail)
        case "SlowDown", "ServiceUnavailable", "HTTP 429", "HTTP 503":
            return Failure(.busy, "The store is busy.", detail: detail)
        default:
            return Failure(.backendError, "The store reported a fault of its own.", detail: detail)
        }
    }

    static func unreachable(_ failure: Failure) -> Failure {
        let isCertificate = failure.remedy == .askUser
        return Failure(
            .backendUnreachable,
            isCertificate
                ? "The store's certificate is not valid: check RUSHES_S3_ENDPOINT."
                : "The backend cannot reach its store.",
            remedy: failure.remedy, detail: failure.detail)
    }

    /// By how much, where the store says what time it is.
    private static func skew(_ response: HTTPResponse, _ sentAt: Timestamp) -> String {
        response.standing(ofClock: Double(sentAt.seconds)).map { "is \($0) its store's" } ?? "differs from its store's"
    }
}
