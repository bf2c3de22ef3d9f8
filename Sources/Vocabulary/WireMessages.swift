/// The messages of the wire API under `/v1`. Both sides decode the same types; `Problem` is every error's body.

public struct PartRequest: Codable, Sendable, Hashable {
    /// 1 to 10,000.
    public var partNumber: Int
    /// Bytes.
    public var length: Int
    /// Base64 of the 16 bytes, as the Content-MD5 header has it.
    public var contentMD5: String
    public init(partNumber: Int, length: Int, contentMD5: String) {
        self.partNumber = partNumber
        self.length = length
        self.contentMD5 = contentMD5
    }
    enum CodingKeys: String, CodingKey {
        case length
        case partNumber = "part_number"
        case contentMD5 = "content_md5"
    }
}

public enum PartLimits {
    public static let bytesDefault = 8 << 20
    public static let bytesRange = (5 << 20)...(32 << 20)
    public static let countMax = 10_000
    /// URLs that may be asked for with the open.
    public static let firstURLsMax = 4
    /// URLs that may be asked for in one later request.
    public static let urlsMax = 32

    /// The part size to ask for: the default, or the smallest whole number of MiB with which the file fits; a size that is not known may become
    /// any.
    public static func partSize(for size: Int?) -> Int {
        guard let size else { return bytesRange.upperBound }
        let needed = size / countMax + (size % countMax).signum()
        let rounded = ((needed + (1 << 20) - 1) >> 20) << 20
        return min(max(rounded, bytesDefault), bytesRange.upperBound)
    }
}

public struct OpenUploadRequest: Codable, Sendable, Hashable {
    public var uploadID: UploadID
    public var itemID: ItemID
    public var role: FileRole
    /// Unique among the item's files of one role.
    public var name: String
    /// The file's own name, for people.
    public var filename: String
    public var contentType: String
    /// Nil while the file still grows.
    public var sizeBytes: Int?
    public var partSize: Int
    public var sha256: SHA256Digest?
    public var shoot: String
    /// The first parts, at most `PartLimits.firstURLsMax`.
    public var parts: [PartRequest]

    public init(
        uploadID: UploadID, itemID: ItemID, role: FileRole, name: String, filename: String, contentType: String,
        sizeBytes: Int?, partSize: Int, sha256: SHA256Digest?, shoot: String, parts: [PartRequest]
    ) {
        self.uploadID = uploadID
        self.itemID = itemID
        self.role = role
        self.name = name
        self.filename = filename
        self.contentType = contentType
        self.sizeBytes = sizeBytes
        self.partSize = partSize
        self.sha256 = sha256
        self.shoot = shoot
        self.parts = parts
    }
    enum CodingKeys: String, CodingKey {
        case role, name, filename, sha256, shoot, parts
        case uploadID = "upload_id"
        case itemID = "item_id"
        case contentType = "content_type"
        case sizeBytes = "size_bytes"
        case partSize = "part_size"
    }
}

/// The answer to an open and to a reopen.
public struct UploadSession: Codable, Sendable, Hashable {
    public var uploadID: UploadID
    public var generation: Int
    public var state: SessionState
    public var partSize: Int
    public var partCount: Int?
    /// Part number → URL; a relative one resolves against the server.
    public var urls: [String: String]
    /// ISO 8601, UTC.
    public var expiresAt: String
    /// The owner already has these bytes, verified: nothing to send.
    public var alreadyStored: Bool

    public init(
        uploadID: UploadID, generation: Int, state: SessionState, partSize: Int, partCount: Int?,
        urls: [String: String], expiresAt: String, alreadyStored: Bool
    ) {
        self.uploadID = uploadID
        self.generation = generation
        self.state = state
        self.partSize = partSize
        self.partCount = partCount
        self.urls = urls
        self.expiresAt = expiresAt
        self.alreadyStored = alreadyStored
    }
    enum CodingKeys: String, CodingKey {
        case generation, state, urls
        case uploadID = "upload_id"
        case partSize = "part_size"
        case partCount = "part_count"
        case expiresAt = "expires_at"
        case alreadyStored = "already_stored"
    }
}

public struct PartURLsRequest: Codable, Sendable, Hashable {
    public var generation: Int
    /// At most `PartLimits.urlsMax`.
    public var parts: [PartRequest]
    public init(generation: Int, parts: [PartRequest]) {
        self.generation = generation
        self.parts = parts
    }
}

public struct PartURLs: Codable, Sendable, Hashable {
    public var urls: [String: String]
    /// Seconds.
    public var expiresIn: Int
    public init(urls: [String: String], expiresIn: Int) {
        self.urls = urls
        self.expiresIn = expiresIn
    }
    enum CodingKeys: String, CodingKey {
        case urls
        case expiresIn = "expires_in"
    }
}

/// What the store holds of an upload.
public struct StoredParts: Codable, Sendable, Hashable {
    public struct Part: Codable, Sendable, Hashable {
        public var partNumber: Int
        public var size: Int
        public var etag: String
        public init(partNumber: Int, size: Int, etag: String) {
            self.partNumber = partNumber
            self.size = size
            self.etag = etag
        }
        enum CodingKeys: String, CodingKey {
            case size, etag
            case partNumber = "part_number"
        }
    }
    public var generation: Int
    public var state: SessionState
    public var parts: [Part]
    public init(generation: Int, state: SessionState, parts: [Part]) {
        self.generation = generation
        self.state = state
        self.parts = parts
    }
}

public struct CompleteUploadRequest: Codable, Sendable, Hashable {
    public struct Part: Codable, Sendable, Hashable {
        public var partNumber: Int
        /// Opaque; nil where the store showed none.
        public var etag: String?
        public init(partNumber: Int, etag: String?) {
            self.partNumber = partNumber
            self.etag = etag
        }
        enum CodingKeys: String, CodingKey {
            case etag
            case partNumber = "part_number"
        }
    }
    public var generation: Int
    public var sizeBytes: Int
    public var sha256: SHA256Digest
    public var parts: [Part]
    public init(generation: Int, sizeBytes: Int, sha256: SHA256Digest, parts: [Part]) {
        self.generation = generation
        self.sizeBytes = sizeBytes
        self.sha256 = sha256
        self.parts = parts
    }
    enum CodingKeys: String, CodingKey {
        case generation, sha256, parts
        case sizeBytes = "size_bytes"
    }
}

public struct ReopenUploadRequest: Codable, Sendable, Hashable {
    /// The generation that the client knows.
    public var generation: Int
    public init(generation: Int) { self.generation = generation }
}

/// Ties finished uploads to an item. Repeatable; uploads only grow.
public struct AttachRequest: Codable, Sendable, Hashable {
    public struct Upload: Codable, Sendable, Hashable {
        public var uploadID: UploadID
        public var role: FileRole
        public var name: String
        public init(uploadID: UploadID, role: FileRole, name: String) {
            self.uploadID = uploadID
            self.role = role
            self.name = name
        }
        enum CodingKeys: String, CodingKey {
            case role, name
            case uploadID = "upload_id"
        }
    }
    public var kind: MediaFacts.Kind?
    public var shoot: String
    public var title: String?
    public var caption: String?
    public var place: String?
    public var takenAt: String?
    public var uploads: [Upload]
    public init(
        kind: MediaFacts.Kind?, shoot: String, title: String? = nil, caption: String? = nil, place: String? = nil,
        takenAt: String? = nil, uploads: [Upload]
    ) {
        self.kind = kind
        self.shoot = shoot
        self.title = title
        self.caption = caption
        self.place = place
        self.takenAt = takenAt
        self.uploads = uploads
    }
    enum CodingKeys: String, CodingKey {
        case kind, shoot, title, caption, place, uploads
        case takenAt = "taken_at"
    }
}

/// A file that an item offers: what the manifest lists.
public struct Rendition: Codable, Sendable, Hashable {
    public var role: FileRole
    public var name: String
    public var contentType: String
    public var sizeBytes: Int
    public var sha256: SHA256Digest
    public var width: Int?
    public var height: Int?
    /// Where the bytes are, signed; only in answers.
    public var url: String?
    public init(
        role: FileRole, name: String, contentType: String, sizeBytes: Int, sha256: SHA256Digest, width: Int?,
        height: Int?, url: String? = nil
    ) {
        self.role = role
        self.name = name
        self.contentType = contentType
        self.sizeBytes = sizeBytes
        self.sha256 = sha256
        self.width = width
        self.height = height
        self.url = url
    }
    enum CodingKeys: String, CodingKey {
        case role, name, sha256, width, height, url
        case contentType = "content_type"
        case sizeBytes = "size_bytes"
    }
}

/// An item as the backend shows it.
public struct ItemDocument: Codable, Sendable, Hashable {
    public struct Upload: Codable, Sendable, Hashable {
        public var uploadID: UploadID
        public var role: FileRole
        public var name: String
        public var state: SessionState
        public var sizeBytes: Int
        /// Nil until the backend has read the bytes itself.
        public var sha256Recomputed: SHA256Digest?
        public var verifiedAt: String?
        public init(
            uploadID: UploadID, role: FileRole, name: String, state: SessionState, sizeBytes: Int,
            sha256Recomputed: SHA256Digest?, verifiedAt: String?
        ) {
            self.uploadID = uploadID
            self.role = role
            self.name = name
            self.state = state
            self.sizeBytes = sizeBytes
            self.sha256Recomputed = sha256Recomputed
            self.verifiedAt = verifiedAt
        }
        enum CodingKeys: String, CodingKey {
            case role, name, state
            case uploadID = "upload_id"
            case sizeBytes = "size_bytes"
            case sha256Recomputed = "sha256_recomputed"
            case verifiedAt = "verified_at"
        }
    }
    public var itemID: ItemID
    public var shoot: String
    public var kind: MediaFacts.Kind?
    public var state: BackendItemState
    public var generation: Int
    public var reason: Reason?
    /// 0 to 1 while processing.
    public var progress: Double?
    public var durationMS: Int?
    /// Width over height.
    public var aspect: Double?
    /// `#rrggbb`.
    public var previewColor: String?
    public var posterURL: String?
    public var renditions: [Rendition]
    public var uploads: [Upload]
    public init(itemID: ItemID, shoot: String, kind: MediaFacts.Kind?, state: BackendItemState, generation: Int) {
        self.itemID = itemID
        self.shoot = shoot
        self.kind = kind
        self.state = state
        self.generation = generation
        renditions = []
        uploads = []
    }
    enum CodingKeys: String, CodingKey {
        case shoot, kind, state, generation, reason, progress, aspect, renditions, uploads
        case itemID = "item_id"
        case durationMS = "duration_ms"
        case previewColor = "preview_color"
        case posterURL = "poster_url"
    }
}

public struct ItemPage: Codable, Sendable, Hashable {
    public var items: [ItemDocument]
    /// Opaque; nil on the last page.
    public var cursor: String?
    public init(items: [ItemDocument], cursor: String?) {
        self.items = items
        self.cursor = cursor
    }
}

public struct Playback: Codable, Sendable, Hashable {
    public var url: String
    public var expiresAt: String
    public var renditions: [Rendition]
    public init(url: String, expiresAt: String, renditions: [Rendition]) {
        self.url = url
        self.expiresAt = expiresAt
        self.renditions = renditions
    }
    enum CodingKeys: String, CodingKey {
        case url, renditions
        case expiresAt = "expires_at"
    }
}

/// `application/problem+json` (RFC 9457) with our stable code.
public struct Problem: Codable, Sendable, Hashable {
    public var type: String
    public var title: String
    public var status: Int
    public var detail: String?
    public var code: FailureCode
    /// Seconds.
    public var retryAfter: Int?
    public init(_ failure: Failure, status: Int? = nil, retryAfter: Int? = nil) {
        type = "about:blank"
        title = failure.message
        self.status = status ?? failure.code.row?.status ?? 500
        detail = failure.detail
        code = failure.code
        self.retryAfter = retryAfter
    }
    enum CodingKeys: String, CodingKey {
        case type, title, status, detail, code
        case retryAfter = "retry_after"
    }
}
