import Digests
import Vocabulary

/// AWS Signature Version 4 (docs.aws.amazon.com, "Authenticating Requests: AWS Signature Version 4"), as stores other than AWS take it too. Pure.
struct SignatureV4: Sendable {
    let accessKey: String
    let secretKey: String
    let region: String
    var service = "s3"

    /// A request as far as it is signed.
    struct Request: Sendable, Hashable {
        var method: String
        /// Not encoded; begins with a slash.
        var path: String
        /// Not encoded.
        var query: [Parameter] = []
        /// Names in any case; `host` has to be among them.
        var headers: [Parameter]
        /// Hexadecimal SHA-256 of the body, or `unsignedPayload`.
        var payloadHash: String
    }
    struct Parameter: Sendable, Hashable {
        var name: String
        var value: String
        init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    static let unsignedPayload = "UNSIGNED-PAYLOAD"
    private static let algorithm = "AWS4-HMAC-SHA256"

    /// The value of the Authorization header.
    func authorization(_ request: Request, at time: Timestamp) -> String {
        let names = Self.signedNames(request)
        return "\(Self.algorithm) Credential=\(accessKey)/\(scope(time)), SignedHeaders=\(names), "
            + "Signature=\(signature(request, at: time))"
    }

    /// The query of a URL that allows this one request until it expires.
    /// - Parameter seconds: 604,800 at most.
    func presignedQuery(_ request: Request, at time: Timestamp, expiresIn seconds: Int) -> String {
        var request = request
        request.query += [
            Parameter("X-Amz-Algorithm", Self.algorithm),
            Parameter("X-Amz-Credential", "\(accessKey)/\(scope(time))"),
            Parameter("X-Amz-Date", time.basicISO8601),
            Parameter("X-Amz-Expires", String(seconds)),
            Parameter("X-Amz-SignedHeaders", Self.signedNames(request)),
        ]
        return Self.canonicalQuery(request.query) + "&X-Amz-Signature=\(signature(request, at: time))"
    }

    // MARK: The pieces, in the order of the specification

    static func canonicalRequest(_ request: Request) -> String {
        let headers = sortedHeaders(request).map { "\($0.name):\($0.value)\n" }.joined()
        return [
            request.method, encoded(request.path, keeping: [UInt8(ascii: "/")]), canonicalQuery(request.query), headers,
            signedNames(request), request.payloadHash,
        ].joined(separator: "\n")
    }

    private func signature(_ request: Request, at time: Timestamp) -> String {
        let text = [
            Self.algorithm, time.basicISO8601, scope(time), Digest.sha256(Self.canonicalRequest(request)).rawValue,
        ].joined(separator: "\n")
        var key = Array("AWS4\(secretKey)".utf8)
        for word in [time.basicDate, region, service, "aws4_request"] {
            key = MessageAuthentication.sign(word, key: key)
        }
        return MessageAuthentication.sign(text, key: key).hexadecimal
    }

    private func scope(_ time: Timestamp) -> String { "\(time.basicDate)/\(region)/\(service)/aws4_request" }

    private static func sortedHeaders(_ request: Request) -> [Parameter] {
        request.headers.map { header in
            // White space around a value goes, and runs of it inside become one space.
            let words = header.value.split(whereSeparator: { $0 == " " || $0 == "\t" })
            return Parameter(header.name.lowercased(), words.joined(separator: " "))
        }.sorted { $0.name < $1.name }
    }

    private static func signedNames(_ request: Request) -> String {
        sortedHeaders(request).map(\.name).joined(separator: ";")
    }

    static func canonicalQuery(_ query: [Parameter]) -> String {
        query.map { (encoded($0.name), encoded($0.value)) }
            .sorted { ($0.0, $0.1) < ($1.0, $1.1) }
            .map { "\($0.0)=\($0.1)" }.joined(separator: "&")
    }

    /// Percent-encoding of everything but the unreserved characters of RFC 3986.
    static func encoded(_ text: String, keeping kept: Set<UInt8> = []) -> String {
        var result: [UInt8] = []
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                result.append(byte)
            case _ where kept.contains(byte): result.append(byte)
            default: result += Array("%\([byte].hexadecimal.uppercased())".utf8)
            }
        }
        return String(decoding: result, as: UTF8.self)
    }
}

extension Timestamp {
    /// `20130524`, UTC.
    var basicDate: String { String(basicISO8601.prefix(8)) }
    /// `20130524T000000Z`.
    var basicISO8601: String { String(iso8601.filter { $0 != "-" && $0 != ":" }) }
}
