public import Vocabulary

/// Where an S3-compatible store is, and the key to it.
public struct S3Settings: Sendable, Hashable {
    /// `https://host[:port]`; the bucket stands in the path, which every store takes.
    public var endpoint: String
    public var bucket: String
    public var region: String
    public var accessKey: String
    public var secretKey: String

    /// - Throws: `usage`, when one is missing or has no such form.
    public init(endpoint: String, bucket: String, region: String?, accessKey: String, secretKey: String) throws(Failure)
    {
        let trimmed = endpoint.hasSuffix("/") ? String(endpoint.dropLast()) : endpoint
        guard let host = Self.host(of: trimmed), !host.isEmpty, !host.contains("/"), !host.contains("@") else {
            throw Failure(.usage, "RUSHES_S3_ENDPOINT takes https://HOST[:PORT] or http://HOST[:PORT].")
        }
        guard !bucket.isEmpty, !bucket.contains("/") else {
            throw Failure(.usage, "RUSHES_S3_BUCKET takes the name of a bucket.")
        }
        guard !accessKey.isEmpty, !secretKey.isEmpty else {
            throw Failure(.usage, "The store needs RUSHES_S3_ACCESS_KEY and RUSHES_S3_SECRET_KEY.")
        }
        self.endpoint = trimmed
        self.bucket = bucket
        self.region = region ?? "us-east-1"
        self.accessKey = accessKey
        self.secretKey = secretKey
    }

    /// As an HTTP client writes it into the Host header: without the scheme's own port.
    var host: String { Self.host(of: endpoint) ?? "" }

    private static func host(of endpoint: String) -> String? {
        for (scheme, port) in [("https://", ":443"), ("http://", ":80")] where endpoint.hasPrefix(scheme) {
            let host = String(endpoint.dropFirst(scheme.count))
            return host.hasSuffix(port) ? String(host.dropLast(port.count)) : host
        }
        return nil
    }
}
