import Curl
import Digests
import Dispatch
import Files
import Foundation
import Glibc
import TestStores
import Testing
import Vocabulary

@testable import Backend

/// Requests of tus 1.0.0, made by hand.
struct TusClient: Sendable {
    var client: TestClient
    static let version = ["Tus-Resumable": "1.0.0"]

    func create(_ headers: [String: String], body: Data = Data()) async throws -> TestAnswer {
        try await client.request("POST", "/v1/tus", body: body, headers: Self.version.merging(headers) { $1 })
    }

    /// - Returns: the upload's address.
    func created(_ length: Int?, _ metadata: [String: String] = [:]) async throws -> String {
        var headers = length.map { ["Upload-Length": String($0)] } ?? ["Upload-Defer-Length": "1"]
        headers["Upload-Metadata"] = Self.metadata(metadata)
        let answer = try await create(headers)
        #expect(answer.status == 201)
        return try #require(answer.headers["location"])
    }

    static func metadata(_ values: [String: String]) -> String {
        values.sorted { $0.key < $1.key }.map { "\($0) \(Array($1.utf8).base64)" }.joined(separator: ",")
    }

    func patch(
        _ path: String, at offset: Int, _ bytes: some Collection<UInt8>, _ headers: [String: String] = [:]
    ) async throws -> TestAnswer {
        try await client.request("PATCH", path, body: Data(bytes), headers: Self.patch(offset).merging(headers) { $1 })
    }

    static func patch(_ offset: Int) -> [String: String] {
        version.merging(["Content-Type": "application/offset+octet-stream", "Upload-Offset": String(offset)]) { $1 }
    }

    func head(_ path: String) async throws -> TestAnswer {
        try await client.request("HEAD", path, headers: Self.version)
    }
    func offset(_ path: String) async throws -> Int? {
        try await head(path).headers["upload-offset"].flatMap { Int($0) }
    }

    func end(_ path: String) async throws -> TestAnswer {
        try await client.request("DELETE", path, headers: Self.version)
    }

    /// The item that a finished upload has become has the upload's id.
    func item(_ path: String, until isReached: (ItemDocument) -> Bool = { $0.state == .ready }) async throws
        -> ItemDocument
    {
        try await client.item(
            try #require(ItemID(rawValue: String(path.split(separator: "/").last ?? ""))), until: isReached)
    }
}

/// A backend for foreign clients over each kind of store.
struct TusBackend: Sendable {
    enum Kind: String, CaseIterable, Sendable { case directory, ceph }
    let test: TestBackend
    let store: S3Settings?
    var tus: TusClient { TusClient(client: test.client) }

    /// Nil where there is no such store on this machine.
    init?(_ kind: Kind, scratch: ScratchFolder? = nil) async throws {
        if kind == .ceph, !TestStore.waits || TestStore.ceph == nil { return nil }
        store = kind == .ceph ? try TestStore.ceph.map { try S3Settings($0) } : nil
        test = try await TestBackend(scratch: scratch, store: store)
    }

    var locks: TusLocks { test.backend.tus.locks }

    static func id(_ path: String) throws -> UploadID {
        try #require(UploadID(rawValue: String(path.split(separator: "/").last ?? "")))
    }

    /// Returns when the first so many bytes of a file have come, as far as they are not parts yet.
    func taken(_ bytes: Int, by path: String) async throws {
        let part = bytes / PartLimits.partSize(for: bytes) + 1
        let spool = "\(test.data)/work/\(TusDoor.folderName(try Self.id(path)))/\(part)"
        while try Files.facts(spool)?.size ?? 0 < bytes % PartLimits.partSize(for: bytes) {
            try await Task.sleep(for: .milliseconds(2))
        }
    }

    /// Stops it; nothing is wrong, and of unfinished uploads nothing but `left` is there.
    func stop(left: Int = 0) async throws {
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store).isEmpty)
        let work = test.data + "/work"
        #expect(try FileManager.default.contentsOfDirectory(atPath: work).isEmpty)
        let ledger = try await SQLiteLedger.open(test.data + "/ledger.sqlite")
        var keys: [BlobKey] = []
        var sessions: [StoreSession] = []
        if let store {
            let prefix = try #require(try await ledger.storePrefix(orMake: nil))
            let bucket = S3BlobStore(
                client: S3Client(settings: store, http: HTTPClient(), clock: Timestamp.system), prefix: prefix,
                abilities: .usual, workFolder: work)
            (keys, sessions) = (try await bucket.keys(), try await bucket.sessions())
        } else {
            let folder = try DirectoryBlobStore.open(test.data)
            (keys, sessions) = (try await folder.keys(), try await folder.sessions())
        }
        #expect(sessions.count == left)
        for key in keys where try await ledger.blob(key) == nil {
            let isDoomed = try await ledger.doomedBlobs(limit: 1000).contains(key)
            var isTail = false
            if case .tail = key.origin { isTail = true }
            #expect(isDoomed || left > 0 && isTail, "\(key) is left over")
        }
    }
}

/// A request whose body is not all sent.
final class OpenRequest: @unchecked Sendable {
    // Unchecked: used by one test at a time.
    private var descriptor: Int32

    init(_ client: TestClient, _ method: String, _ path: String, _ headers: [String: String]) throws {
        descriptor = try TestClient.connected(client.address)
        var head = "\(method) \(path) HTTP/1.1\r\nHost: test\r\n"
        for (name, value) in headers { head += "\(name): \(value)\r\n" }
        try Self.send(Array((head + "\r\n").utf8), to: descriptor)
    }
    deinit { hangUp() }

    func send(_ bytes: ArraySlice<UInt8>) async throws {
        let (descriptor, bytes) = (descriptor, Array(bytes))
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue(label: "test.client").async { @Sendable in
                continuation.resume(with: Result { try Self.send(bytes, to: descriptor) })
            }
        }
    }

    private static func send(_ bytes: [UInt8], to descriptor: Int32) throws {
        var sent = 0
        while sent < bytes.count {
            let put = bytes.withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress?.advanced(by: sent), $0.count - sent, Int32(MSG_NOSIGNAL))
            }
            guard put > 0 else { throw TestClient.ConnectionFault(call: "send") }
            sent += put
        }
    }

    func hangUp() {
        if descriptor >= 0 { close(descriptor) }
        descriptor = -1
    }
}
