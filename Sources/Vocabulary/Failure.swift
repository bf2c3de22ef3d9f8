/// What went wrong, in a form that a person, a program and an operator can each use. The only error that crosses modules.
public struct Failure: Error, Codable, Sendable, Hashable, CustomStringConvertible {
    /// Stable; the table is `FailureCode.all`.
    public var code: FailureCode
    /// One sentence for the person, with what to do where that is not obvious. No paths of ours, no secrets, no library noise.
    public var message: String
    public var remedy: Remedy
    /// For operators: the failed call, the library's last words, numbers.
    public var detail: String?
    /// Seconds, where whoever refused said when to come back.
    public var retryAfter: Double?

    public init(_ code: FailureCode, _ message: String, remedy: Remedy? = nil, detail: String? = nil) {
        self.code = code
        self.message = message
        self.remedy = remedy ?? code.row?.remedy ?? .giveUp
        self.detail = detail
    }

    public var description: String {
        detail.map { "\(code): \(message) (\($0))" } ?? "\(code): \(message)"
    }
}

/// What the program does next about a failure.
public enum Remedy: String, Codable, Sendable, Hashable {
    /// The same thing may work later: try again with backoff.
    case retryLater = "retry_later"
    /// A person has to change something first.
    case askUser = "ask_user"
    /// The same thing will never work.
    case giveUp = "give_up"
}

/// A stable name of a kind of failure. Open, since a newer peer may send one that we do not know yet.
public struct FailureCode: RawRepresentable, Codable, Sendable, Hashable, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }

    public init(from decoder: any Decoder) throws {
        rawValue = try decoder.singleValueContainer().decode(String.self)
    }
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(rawValue)
    }

    /// What is known about a code.
    public struct Row: Sendable {
        public let code: FailureCode
        public let remedy: Remedy
        /// HTTP status under which the backend reports it.
        public let status: Int
        public let meaning: String
    }

    /// True for the codes that are a verdict on a file: the file is what is wrong with it.
    public var isVerdict: Bool { Self.verdicts.contains(self) }
    public var row: Row? { Self.rows[self] }
}

// Verdicts on a file.
extension FailureCode {
    public static let empty = FailureCode(rawValue: "empty")
    public static let notMedia = FailureCode(rawValue: "not-media")
    public static let truncated = FailureCode(rawValue: "truncated")
    public static let corrupt = FailureCode(rawValue: "corrupt")
    public static let encrypted = FailureCode(rawValue: "encrypted")
    public static let unsupportedCodec = FailureCode(rawValue: "unsupported-codec")
    public static let unsupportedHDR = FailureCode(rawValue: "unsupported-hdr")
    public static let tooLarge = FailureCode(rawValue: "too-large")
    public static let tooLong = FailureCode(rawValue: "too-long")
    public static let noVideo = FailureCode(rawValue: "no-video")
    public static let contentRefused = FailureCode(rawValue: "content-refused")

    static let verdicts: Set<FailureCode> = [
        .empty, .notMedia, .truncated, .corrupt, .encrypted, .unsupportedCodec, .unsupportedHDR, .tooLarge, .tooLong,
        .noVideo, .contentRefused,
    ]
}

// Everything else.
extension FailureCode {
    // Media work that did not come to a verdict.
    public static let overBudget = FailureCode(rawValue: "over-budget")
    public static let mediaCrashed = FailureCode(rawValue: "media-crashed")
    public static let mediaKilled = FailureCode(rawValue: "media-killed")
    public static let mediaTimeout = FailureCode(rawValue: "media-timeout")
    public static let mediaProtocol = FailureCode(rawValue: "media-protocol")
    public static let outputInvalid = FailureCode(rawValue: "output-invalid")
    public static let workerMissing = FailureCode(rawValue: "worker-missing")
    public static let sandboxUnavailable = FailureCode(rawValue: "sandbox-unavailable")
    // Files and this machine.
    public static let sourceMissing = FailureCode(rawValue: "source-missing")
    public static let sourceUnreadable = FailureCode(rawValue: "source-unreadable")
    public static let sourceChanged = FailureCode(rawValue: "source-changed")
    public static let stagingMissing = FailureCode(rawValue: "staging-missing")
    public static let stagingDamaged = FailureCode(rawValue: "staging-damaged")
    public static let diskFull = FailureCode(rawValue: "disk-full")
    public static let readOnly = FailureCode(rawValue: "read-only")
    public static let ioError = FailureCode(rawValue: "io-error")
    public static let databaseError = FailureCode(rawValue: "database-error")
    public static let socketPathTooLong = FailureCode(rawValue: "socket-path-too-long")
    public static let alreadyRunning = FailureCode(rawValue: "already-running")
    public static let usage = FailureCode(rawValue: "usage")
    public static let cancelled = FailureCode(rawValue: "cancelled")
    public static let internalError = FailureCode(rawValue: "internal-error")
    // Network and backend.
    public static let backendUnreachable = FailureCode(rawValue: "backend-unreachable")
    public static let backendError = FailureCode(rawValue: "backend-error")
    public static let badRequest = FailureCode(rawValue: "bad-request")
    public static let unauthorized = FailureCode(rawValue: "unauthorized")
    public static let forbidden = FailureCode(rawValue: "forbidden")
    public static let notFound = FailureCode(rawValue: "not-found")
    public static let gone = FailureCode(rawValue: "gone")
    public static let conflict = FailureCode(rawValue: "conflict")
    public static let staleGeneration = FailureCode(rawValue: "stale-generation")
    public static let incomplete = FailureCode(rawValue: "incomplete")
    public static let urlExpired = FailureCode(rawValue: "url-expired")
    public static let badDigest = FailureCode(rawValue: "bad-digest")
    public static let hashMismatch = FailureCode(rawValue: "hash-mismatch")
    public static let bodyTooLarge = FailureCode(rawValue: "body-too-large")
    public static let quotaExceeded = FailureCode(rawValue: "quota-exceeded")
    public static let busy = FailureCode(rawValue: "busy")
    public static let locked = FailureCode(rawValue: "locked")
    public static let unknownVersion = FailureCode(rawValue: "unknown-version")
    public static let unknownContentType = FailureCode(rawValue: "unknown-content-type")
    public static let checksumMismatch = FailureCode(rawValue: "checksum-mismatch")
    public static let clockSkewed = FailureCode(rawValue: "clock-skewed")
    public static let redirected = FailureCode(rawValue: "redirected")
    public static let foreignAnswer = FailureCode(rawValue: "foreign-answer")

    /// The documented table of codes: one row a code.
    public static let all: [Row] = [
        Row(code: .empty, remedy: .giveUp, status: 422, meaning: "the file has no bytes"),
        Row(code: .notMedia, remedy: .giveUp, status: 422, meaning: "not a photo, video or sound"),
        Row(
            code: .truncated, remedy: .giveUp, status: 422,
            meaning: "the end is missing (recording not finished, or copied in part)"),
        Row(code: .corrupt, remedy: .giveUp, status: 422, meaning: "the structure is damaged"),
        Row(code: .encrypted, remedy: .giveUp, status: 422, meaning: "protected content"),
        Row(
            code: .unsupportedCodec, remedy: .giveUp, status: 422,
            meaning: "a real format for which there is no decoder here"),
        Row(
            code: .unsupportedHDR, remedy: .giveUp, status: 422, meaning: "an HDR form that cannot be shown right here"),
        Row(code: .tooLarge, remedy: .giveUp, status: 422, meaning: "more pixels than the fixed bound"),
        Row(code: .tooLong, remedy: .giveUp, status: 422, meaning: "longer than the setting allows"),
        Row(code: .noVideo, remedy: .giveUp, status: 422, meaning: "no picture track where one is needed"),
        Row(code: .contentRefused, remedy: .giveUp, status: 422, meaning: "refused by the backend's policy"),
        Row(
            code: .overBudget, remedy: .askUser, status: 500, meaning: "decoding needs more memory than --memory allows"
        ),
        Row(code: .mediaCrashed, remedy: .retryLater, status: 500, meaning: "the media process died on this file"),
        Row(
            code: .mediaKilled, remedy: .retryLater, status: 500,
            meaning: "the media process was killed from outside, by somebody or by the kernel for want of memory"),
        Row(
            code: .mediaTimeout, remedy: .retryLater, status: 500, meaning: "the media process made no progress in time"
        ),
        Row(code: .mediaProtocol, remedy: .retryLater, status: 500, meaning: "the media process broke its protocol"),
        Row(
            code: .outputInvalid, remedy: .retryLater, status: 500, meaning: "what was made did not pass its own check"),
        Row(code: .workerMissing, remedy: .askUser, status: 500, meaning: "rushes-media was not found beside rushes"),
        Row(
            code: .sandboxUnavailable, remedy: .askUser, status: 500,
            meaning: "this kernel cannot take rushes-media's powers away, and no setting allows going on without"),
        Row(code: .sourceMissing, remedy: .askUser, status: 404, meaning: "the given path does not exist"),
        Row(code: .sourceUnreadable, remedy: .askUser, status: 500, meaning: "the file could not be read"),
        Row(
            code: .sourceChanged, remedy: .retryLater, status: 409, meaning: "the file changed while it was being taken"
        ),
        Row(code: .stagingMissing, remedy: .askUser, status: 500, meaning: "a staged file is no longer there"),
        Row(code: .stagingDamaged, remedy: .askUser, status: 500, meaning: "a staged file no longer has its hash"),
        Row(code: .diskFull, remedy: .askUser, status: 507, meaning: "no space left"),
        Row(code: .readOnly, remedy: .askUser, status: 500, meaning: "the folder cannot be written"),
        Row(code: .ioError, remedy: .retryLater, status: 500, meaning: "the file system reported an error"),
        Row(code: .databaseError, remedy: .retryLater, status: 500, meaning: "the catalog or ledger reported an error"),
        Row(
            code: .socketPathTooLong, remedy: .askUser, status: 500, meaning: "the Unix socket's path is over 107 bytes"
        ),
        Row(code: .alreadyRunning, remedy: .askUser, status: 409, meaning: "another process holds this folder"),
        Row(code: .usage, remedy: .askUser, status: 400, meaning: "the command line is wrong"),
        Row(code: .cancelled, remedy: .giveUp, status: 409, meaning: "stopped on request"),
        Row(code: .internalError, remedy: .retryLater, status: 500, meaning: "a fault of Rushes itself"),
        Row(code: .backendUnreachable, remedy: .retryLater, status: 503, meaning: "no answer from the backend"),
        Row(
            code: .backendError, remedy: .retryLater, status: 502,
            meaning: "the backend or store answered with a fault of its own"),
        Row(code: .badRequest, remedy: .giveUp, status: 400, meaning: "the request has the wrong form"),
        Row(code: .unauthorized, remedy: .askUser, status: 401, meaning: "no valid token"),
        Row(code: .forbidden, remedy: .askUser, status: 403, meaning: "the token is valid, but not for this"),
        Row(code: .notFound, remedy: .giveUp, status: 404, meaning: "no such thing for this owner"),
        Row(code: .gone, remedy: .giveUp, status: 410, meaning: "was there and is not any more"),
        Row(code: .conflict, remedy: .giveUp, status: 409, meaning: "contradicts what is already there"),
        Row(code: .staleGeneration, remedy: .retryLater, status: 409, meaning: "the session was reopened meanwhile"),
        Row(code: .incomplete, remedy: .retryLater, status: 409, meaning: "parts are missing"),
        Row(code: .urlExpired, remedy: .retryLater, status: 403, meaning: "the signed URL is not valid (any more)"),
        Row(
            code: .badDigest, remedy: .retryLater, status: 400, meaning: "a part does not have the signed length or MD5"
        ),
        Row(
            code: .hashMismatch, remedy: .retryLater, status: 409,
            meaning: "what arrived does not have the declared SHA-256"),
        Row(code: .bodyTooLarge, remedy: .giveUp, status: 413, meaning: "the request body is over its bound"),
        Row(code: .quotaExceeded, remedy: .askUser, status: 507, meaning: "the owner's quota is used up"),
        Row(code: .busy, remedy: .retryLater, status: 503, meaning: "too much at once; see Retry-After"),
        Row(code: .locked, remedy: .retryLater, status: 423, meaning: "another request is sending to this upload"),
        Row(
            code: .unknownVersion, remedy: .giveUp, status: 412, meaning: "this version of tus is not spoken here"),
        Row(
            code: .unknownContentType, remedy: .giveUp, status: 415,
            meaning: "a body of this content type is not taken here"),
        // The status is tus's own.
        Row(
            code: .checksumMismatch, remedy: .retryLater, status: 460,
            meaning: "what arrived does not have the checksum that came with it"),
        Row(
            code: .clockSkewed, remedy: .askUser, status: 503,
            meaning: "the clocks of two machines are so far apart that signatures do not hold"),
        Row(
            code: .redirected, remedy: .retryLater, status: 502,
            meaning: "the answer points to another address, where nothing is sent unasked"),
        Row(
            code: .foreignAnswer, remedy: .retryLater, status: 502,
            meaning: "something on the way (a proxy, a network's login page) answered in the backend's or store's place"
        ),
    ]
    private static let rows: [FailureCode: Row] = Dictionary(uniqueKeysWithValues: all.map { ($0.code, $0) })
}
