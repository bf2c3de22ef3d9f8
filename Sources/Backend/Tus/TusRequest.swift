import Digests
import Vocabulary

/// tus 1.0.0, the resumable uploads of foreign clients (tus.io/protocols/resumable-upload): its words, and what the head of a request says. Pure.
enum Tus {
    static let version = "1.0.0"
    static let extensions =
        "creation,creation-with-upload,creation-defer-length,expiration,checksum,termination"
    static let contentType = "application/offset+octet-stream"
    static let path = "/v1/tus"

    /// Of one file: what fits into the largest parts.
    static let bytesMax = PartLimits.bytesRange.upperBound * PartLimits.countMax
    static let metadataBytesMax = 16 << 10
    /// Unfinished uploads of one owner.
    static let openMax = 1000
    /// Uploads that are held at once: bodies that come in, each with a part on this machine's disk (one with a checksum with all of it), and
    /// what is finished or ended.
    static let receptionsMax = 64
    /// Of them, one owner's.
    static let receptionsOfOneOwnerMax = 32
    /// Seconds of silence after which a body no longer keeps others from its upload, nor from its place where none is free; until then they
    /// are refused.
    static let silenceMax = 5
    /// Bytes of a body that comes with a checksum, whether it says how long it is or not: nothing of it is kept before all of it has come.
    static let checkedBytesMax = 1 << 30

    private static func bad(_ message: String) -> Failure { Failure(.badRequest, message) }

    /// Proxies that know no PATCH: the method that stands in the header counts.
    static func method(_ method: String, headers: [String: String]) -> String {
        headers["x-http-method-override"] ?? method
    }

    /// Of everything but OPTIONS.
    static func checkVersion(_ headers: [String: String]) throws(Failure) {
        guard headers["tus-resumable"] == version else {
            throw Failure(.unknownVersion, "Tus-Resumable has to be \(version).")
        }
    }

    static func checkContentType(_ headers: [String: String]) throws(Failure) {
        guard headers["content-type"]?.lowercased() == contentType else {
            throw Failure(.unknownContentType, "The body's Content-Type has to be \(contentType).")
        }
    }

    /// Nil where the header is not there.
    static func count(_ name: String, in headers: [String: String]) throws(Failure) -> Int? {
        guard let text = headers[name.lowercased()] else { return nil }
        guard text.utf8.allSatisfy(ByteCount.isDigit), let value = Int(text) else {
            throw bad("\(name) has to be a whole number of bytes.")
        }
        return value
    }

    // MARK: Requests

    /// POST.
    struct Creation: Sendable, Hashable {
        /// Bytes; nil: told later.
        var length: Int?
        /// As it was given.
        var metadata: String
        var checksum: Checksum?

        init(_ headers: [String: String]) throws(Failure) {
            length = try count("Upload-Length", in: headers)
            switch (length, headers["upload-defer-length"]) {
            case (nil, "1"), (_?, nil): break
            case (nil, nil): throw bad("Either Upload-Length or Upload-Defer-Length is needed.")
            case (_?, _?): throw bad("Upload-Length and Upload-Defer-Length exclude each other.")
            case (nil, _?): throw bad("Upload-Defer-Length can only be 1.")
            }
            metadata = headers["upload-metadata"] ?? ""
            checksum = try Checksum(headers)
        }
    }

    /// PATCH.
    struct Patch: Sendable, Hashable {
        var offset: Int
        /// The length of the whole, where it is told now.
        var length: Int?
        /// Bytes that are to come; nil where that is not said.
        var bodyBytes: Int?
        var checksum: Checksum?

        init(_ headers: [String: String]) throws(Failure) {
            guard let offset = try count("Upload-Offset", in: headers) else { throw bad("Upload-Offset is missing.") }
            self.offset = offset
            length = try count("Upload-Length", in: headers)
            bodyBytes = try count("Content-Length", in: headers)
            checksum = try Checksum(headers)
        }

        /// The body of a POST: the first bytes of what it makes.
        init(_ creation: Creation, _ headers: [String: String]) throws(Failure) {
            offset = 0
            bodyBytes = try count("Content-Length", in: headers)
            checksum = creation.checksum
        }
    }

    /// What the body of a request has to come to.
    struct Checksum: Sendable, Hashable {
        var algorithm: Digest.Algorithm
        var bytes: [UInt8]

        static let algorithms: [(name: String, algorithm: Digest.Algorithm, length: Int)] = [
            ("sha1", .sha1, 20), ("md5", .md5, 16), ("sha256", .sha256, 32), ("sha512", .sha512, 64),
        ]

        /// Nil where the header is not there.
        init?(_ headers: [String: String]) throws(Failure) {
            guard let text = headers["upload-checksum"] else { return nil }
            let words = text.split(separator: " ", omittingEmptySubsequences: false)
            let known = Self.algorithms.first { $0.name == words[0] }
            guard let known else {
                throw bad(
                    "This checksum is not known here: use \(Self.algorithms.map(\.name).joined(separator: ", ")).")
            }
            guard words.count == 2, let bytes = [UInt8](base64: String(words[1])), bytes.count == known.length
            else { throw bad("Upload-Checksum has to be an algorithm, a blank and the checksum in base64.") }
            algorithm = known.algorithm
            self.bytes = bytes
        }
    }
}
