import Digests
import Testing

@testable import Backend

/// The examples that AWS publishes: "Signature Calculations … Examples" for S3, and the general test suite of version 4.
@Suite struct SignatureV4Tests {
    private static let s3 = SignatureV4(
        accessKey: "AKIAIOSFODNN7EXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", region: "us-east-1")
    private static let suite = SignatureV4(
        accessKey: "AKIDEXAMPLE", secretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", region: "us-east-1",
        service: "service")
    /// 2013-05-24 and 2015-08-30 12:36.
    private static let may = Timestamp(milliseconds: 1_369_353_600_000)
    private static let august = Timestamp(milliseconds: 1_440_938_160_000)
    private static let empty = Digest.sha256([]).rawValue

    struct Vector: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var signer: SignatureV4
        var time: Timestamp
        var request: SignatureV4.Request
        var signature: String
    }

    private static func s3(
        _ name: String, _ method: String, _ path: String, _ query: [SignatureV4.Parameter] = [],
        _ headers: [SignatureV4.Parameter] = [], hash: String = empty, _ signature: String
    ) -> Vector {
        let fixed = [
            SignatureV4.Parameter("Host", "examplebucket.s3.amazonaws.com"),
            SignatureV4.Parameter("x-amz-content-sha256", hash),
            SignatureV4.Parameter("x-amz-date", "20130524T000000Z"),
        ]
        return Vector(
            testDescription: name, signer: s3, time: may,
            request: SignatureV4.Request(
                method: method, path: path, query: query, headers: fixed + headers, payloadHash: hash),
            signature: signature)
    }
    private static func suite(
        _ name: String, _ method: String, _ query: [SignatureV4.Parameter] = [],
        _ headers: [SignatureV4.Parameter] = [],
        _ signature: String
    ) -> Vector {
        let fixed = [
            SignatureV4.Parameter("Host", "example.amazonaws.com"),
            SignatureV4.Parameter("X-Amz-Date", "20150830T123600Z"),
        ]
        return Vector(
            testDescription: name, signer: suite, time: august,
            request: SignatureV4.Request(
                method: method, path: "/", query: query, headers: fixed + headers, payloadHash: empty),
            signature: signature)
    }

    static let vectors = [
        s3(
            "GET object with a range", "GET", "/test.txt", [], [SignatureV4.Parameter("Range", "bytes=0-9")],
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        s3(
            "PUT object", "PUT", "/test$file.text", [],
            [
                SignatureV4.Parameter("Date", "Fri, 24 May 2013 00:00:00 GMT"),
                SignatureV4.Parameter("x-amz-storage-class", "REDUCED_REDUNDANCY"),
            ], hash: "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        s3(
            "GET bucket lifecycle", "GET", "/", [SignatureV4.Parameter("lifecycle", "")], [],
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        s3(
            "list objects", "GET", "/",
            [SignatureV4.Parameter("max-keys", "2"), SignatureV4.Parameter("prefix", "J")], [],
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        suite(
            "get-vanilla", "GET", [], [], "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        suite(
            "get-vanilla-query-order-key-case", "GET",
            [SignatureV4.Parameter("Param2", "value2"), SignatureV4.Parameter("Param1", "value1")], [],
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"),
        suite(
            "post-vanilla", "POST", [], [], "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        suite(
            "get-header-value-trim", "GET", [],
            [
                SignatureV4.Parameter("My-Header1", " value1"), SignatureV4.Parameter("My-Header2", " \"a   b   c\""),
            ], "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"),
    ]

    @Test(arguments: vectors) func aPublishedRequestHasItsPublishedSignature(vector: Vector) {
        let header = vector.signer.authorization(vector.request, at: vector.time)
        #expect(header.hasSuffix("Signature=" + vector.signature))
    }

    @Test func thePublishedURLHasItsPublishedSignature() {
        let request = SignatureV4.Request(
            method: "GET", path: "/test.txt",
            headers: [SignatureV4.Parameter("host", "examplebucket.s3.amazonaws.com")],
            payloadHash: SignatureV4.unsignedPayload)
        let query = Self.s3.presignedQuery(request, at: Self.may, expiresIn: 86400)
        #expect(
            query
                == "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"
        )
    }
}
