public import Vocabulary

/// What the backend confirmed of a shoot, file by file: the hash that it came to when it read the bytes back.
public struct Receipt: Sendable, Encodable {
    public struct File: Sendable, Encodable {
        /// As in the hash list beside it.
        public var path: String
        public var item: ItemID
        public var upload: UploadID?
        public var sizeBytes: Int
        public var sha256: SHA256Digest?
        /// Null where the backend has not confirmed anything of it.
        public var sha256Recomputed: SHA256Digest?
        public var verifiedAt: String?
        /// The backend has exactly these bytes.
        public var confirmed: Bool
        public var server: String?

        enum CodingKeys: String, CodingKey {
            case path, item, upload, sha256, confirmed, server
            case sizeBytes = "size_bytes"
            case sha256Recomputed = "sha256_recomputed"
            case verifiedAt = "verified_at"
        }
        public func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(path, forKey: .path)
            try container.encode(item, forKey: .item)
            try container.encode(upload, forKey: .upload)
            try container.encode(sizeBytes, forKey: .sizeBytes)
            try container.encode(sha256, forKey: .sha256)
            try container.encode(sha256Recomputed, forKey: .sha256Recomputed)
            try container.encode(verifiedAt, forKey: .verifiedAt)
            try container.encode(confirmed, forKey: .confirmed)
            try container.encode(server, forKey: .server)
        }

        init(_ file: ProofPlan.File) {
            path = file.path
            item = file.known.item
            upload = file.known.upload
            sizeBytes = file.known.bytes ?? 0
            sha256 = file.known.sha256
            sha256Recomputed = file.known.confirmed
            verifiedAt = file.known.verifiedAt
            confirmed = file.known.confirmed != nil && file.known.confirmed == file.known.sha256
            server = file.known.server
        }
    }

    public static let name = "rushes-receipt.json"

    public var shoot: String
    /// ISO 8601.
    public var writtenAt: String
    public var confirmedFiles: Int
    public var files: [File]

    init(shoot: String, writtenAt: String, files: [File]) {
        self.shoot = shoot
        self.writtenAt = writtenAt
        self.files = files
        confirmedFiles = files.count(where: \.confirmed)
    }

    enum CodingKeys: String, CodingKey {
        case shoot, files
        case writtenAt = "written_at"
        case confirmedFiles = "confirmed_files"
    }
}
