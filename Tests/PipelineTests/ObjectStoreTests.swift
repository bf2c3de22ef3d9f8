import Curl
import Digests
import Files
import Foundation
import TestStores
import Testing
import Vocabulary

@testable import Backend

/// The programs as a person runs them, with the backend's files in a real object store: the bytes go from the box straight to it.
@Suite(.serialized) struct ObjectStoreTests {
    enum Kind: String, CaseIterable, Sendable {
        case ceph, swift
        var store: TestStore? { self == .ceph ? TestStore.ceph : TestStore.swift }
    }

    /// Whose file does not become ready, and why.
    private static let rejected = [
        "truncated-recording.mov": "truncated", "zero-bytes.mp4": "empty", "not-media.mp4": "not-media",
    ]

    @Test(.timeLimit(.minutes(5)), arguments: Kind.allCases)
    func aCardGoesStraightToTheStoreAndIsThereByteForByte(kind: Kind) async throws {
        guard let store = kind.store else { return }
        let scratch = try ScratchFolder()
        let clip = scratch.path + "/card/clip.mp4"
        try Files.makeFolder(scratch.path + "/card")
        try Files.write(try Media.video.bytes(padding: 20 << 20, seed: 1), to: clip)
        let environment = store.environment(home: scratch.path + "/box")
        let (data, socket) = (scratch.path + "/backend", "unix:\(scratch.path)/s")
        let (ingest, serve, check) = try await onThread {
            let server = try Programs.Started(["serve", "--listen", socket, "--data", data], environment)
            let ingest = try Programs.run(
                ["ingest", Programs.fixtures, clip, "--shoot", "x", "--server", socket, "--json"], environment)
            let serve = server.stop()
            return (ingest, serve, try Programs.run(["check", "--data", data], environment))
        }
        #expect(ingest.status == 3, "\(ingest.errors)")
        #expect(serve.status == 0, "\(serve.errors)")
        #expect(check.status == 0, "\(check.output)\(check.errors)")

        let items = try StatusLine.read(ingest.output)
        #expect(items.count == 17)
        for item in items {
            #expect((item.reason?.code.rawValue ?? item.state) == Self.rejected[item.name] ?? "ready", "\(item.name)")
        }
        let bucket = try await Bucket.of(store, dataFolder: data)
        let held = try await bucket.hashes()
        let kept = try Self.files(in: Programs.fixtures).filter { !Self.isLeftAtHome($0) } + [clip]
        for path in kept { #expect(held.contains(try Files.sha256(of: .reading(path))), "\(path) is not in the store") }
        for output in items.flatMap(\.outputs) { #expect(held.contains(output.sha256), "\(output.name) is not there") }
        #expect(try await bucket.uploadsUnderWay() == [])
        // Nor did anything come to lie on the backend's own disk.
        #expect(try Files.names(in: data + "/work") == [])
        #expect(try Files.facts(data + "/incoming") == nil && Files.facts(data + "/blobs") == nil)
    }

    @Test(.timeLimit(.minutes(3))) func aStoreThatIsNotUpYetIsWaitedForAndClientsAreToldSo() async throws {
        guard let (endpoint, up) = TestStore.absentCeph() else { return }
        let scratch = try ScratchFolder()
        let environment = [
            "RUSHES_HOME": scratch.path + "/box", "RUSHES_S3_ENDPOINT": endpoint, "RUSHES_S3_BUCKET": "test",
            "RUSHES_S3_ACCESS_KEY": "testaccesskey", "RUSHES_S3_SECRET_KEY": "testsecretkey",
        ]
        let socket = scratch.path + "/s"
        let serve = ["serve", "--listen", "unix:\(socket)", "--data", scratch.path + "/backend"]
        let client = Curl.HTTPClient()
        @Sendable func get(_ path: String) async throws -> Curl.HTTPResponse {
            try await client.send(Curl.HTTPRequest(.get, "http://localhost" + path, socketPath: socket))
        }

        // Who waits can be stopped.
        let stopped = try await onThread {
            let server = try Programs.Started(serve, environment)
            try Programs.wait("it waits") { server.said.contains("waiting for the store at \(endpoint)") }
            return server.stop()
        }
        #expect(stopped.status == 0, "\(stopped.errors)")

        let server = try Programs.Started(serve, environment)
        try await onThread { try Programs.wait("it waits") { server.said.contains("waiting for the store") } }
        for path in ["/readyz", "/v1/items"] {
            let answer = try await get(path)
            #expect(answer.status == 503 && answer.headers["Retry-After"] == "2", "\(path)")
        }
        #expect(try await get("/healthz").status == 200)
        #expect(try await onThread { up() } != nil)
        try await onThread { try Programs.wait("it serves") { server.said.contains("serving ") } }
        #expect(try await get("/readyz").status == 200 && server.said.contains("the store is there"))
        let ended = try await onThread { server.stop() }
        #expect(ended.status == 0, "\(ended.errors)")
    }

    private static func files(in folder: String) throws -> [String] {
        try FileManager.default.subpathsOfDirectory(atPath: folder).map { folder + "/" + $0 }
            .filter { try Files.facts($0)?.kind == .regular }
    }
    /// What is no media, has no bytes, or is made by a camera or a file system for itself.
    private static func isLeftAtHome(_ path: String) -> Bool {
        ["zero-bytes.mp4", "not-media.mp4", ".DS_Store", "RUSH0001.THM"].contains { path.hasSuffix("/" + $0) }
    }
}

extension TestStore {
    /// For the program, to use this store.
    func environment(home: String) -> [String: String] {
        [
            "RUSHES_HOME": home, "RUSHES_S3_ENDPOINT": endpoint, "RUSHES_S3_BUCKET": bucket,
            "RUSHES_S3_ACCESS_KEY": accessKey, "RUSHES_S3_SECRET_KEY": secretKey,
        ]
    }
}

/// What one backend has in a store, read past the backend.
struct Bucket: Sendable {
    let client: S3Client
    let prefix: String

    static func of(_ store: TestStore, dataFolder: String) async throws -> Bucket {
        let settings = try S3Settings(
            endpoint: store.endpoint, bucket: store.bucket, region: nil, accessKey: store.accessKey,
            secretKey: store.secretKey)
        let ledger = try await SQLiteLedger.open(dataFolder + "/ledger.sqlite")
        return Bucket(
            client: S3Client(settings: settings, http: HTTPClient(), clock: Timestamp.system),
            prefix: try #require(try await ledger.storePrefix(orMake: nil)))
    }

    func hashes() async throws -> Set<SHA256Digest> {
        var hashes: Set<SHA256Digest> = []
        var keys: [String] = []
        try await client.eachPage(prefix: prefix + "/") { page throws(Failure) in keys += page }
        for key in keys {
            let size = try #require(try await client.head(key)).size
            let digest = Digest(.sha256)
            for offset in stride(from: 0, to: size, by: S3Client.rangeMax) {
                digest.update(try await client.read(key, at: offset, count: min(S3Client.rangeMax, size - offset)))
            }
            hashes.insert(digest.finalizeSHA256())
        }
        return hashes
    }

    func uploadsUnderWay() async throws -> [String] {
        try await client.multiparts(prefix: prefix + "/").map(\.key)
    }
}
