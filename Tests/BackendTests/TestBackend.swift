import Digests
import Files
import Foundation
import HTTPServer
import MediaJobs
import Synchronization
import Testing
import Vocabulary

@testable import Backend

/// A folder that is gone when the test is. Its path is short: a socket lies in it.
final class ScratchFolder: Sendable {
    let path: String
    init() throws {
        path = "/tmp/rb-\(UUID().uuidString.prefix(13))"
        try Files.makeFolder(path)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// A clock that stands until it is moved.
final class TestClock: Sendable {
    private let now: Mutex<Timestamp>
    init(_ start: Timestamp = Timestamp(milliseconds: 1_700_000_000_000)) { now = Mutex(start) }
    var read: @Sendable () -> Timestamp { { self.now.withLock { $0 } } }
    func advance(seconds: Double) { now.withLock { $0 = $0.adding(seconds: seconds) } }
}

/// A running backend with media work that tests decide on.
final class TestBackend: Sendable {
    let scratch: ScratchFolder
    let clock: TestClock
    let backend: Backend
    let client: TestClient
    var data: String { scratch.path + "/data" }

    /// - Parameter scratch: of an earlier backend that was stopped.
    init(
        scratch: ScratchFolder? = nil, media: MediaWork = .photos, policy: RetryPolicy = RetryPolicy(firstDelay: 0),
        listen: ListenAddress? = nil, lifetimes: BackendSettings.Lifetimes = BackendSettings.Lifetimes(),
        store: S3Settings? = nil, idleTimeout: Int = 75, streams: EventStreams.Settings = EventStreams.Settings(),
        eventLog: EventLogBounds = EventLogBounds(), idle: Double = 0.02,
        log: @escaping @Sendable (String) -> Void = { _ in }
    ) async throws {
        // A store of its own mind wants the right time.
        clock = store == nil ? TestClock() : TestClock(Timestamp.system())
        let folder = try scratch ?? ScratchFolder()
        self.scratch = folder
        let settings = BackendSettings(
            dataFolder: folder.path + "/data", listen: listen ?? .unix(path: folder.path + "/s"), store: store,
            media: MediaJobs(MediaSettings(workerPath: "/nonexistent")), lifetimes: lifetimes,
            bounds: HTTPBounds(idleTimeout: idleTimeout), clock: clock.read, log: log)
        var processing = ProcessingLoop.Settings()
        processing.policy = policy
        processing.idle = idle
        backend = try await Backend.start(
            settings, media: media, processing: processing, streams: streams, eventLog: eventLog)
        client = TestClient(address: backend.address)
    }
}

/// Where the client's side is imported too.
typealias ServerRequest = HTTPRequest
typealias ServerResponse = HTTPResponse

extension MediaWork {
    /// Every file is a photo of 600 × 400, and its thumbnail is its name.
    static let photos = photos { ProbeReport(file: "", facts: $0) }

    static func photos(_ report: @escaping @Sendable (MediaFacts) throws(Failure) -> ProbeReport) -> MediaWork {
        MediaWork(
            probe: { _, _ throws(Failure) in
                var facts = MediaFacts(kind: .photo, format: .jpeg)
                (facts.width, facts.height) = (600, 400)
                return try report(facts)
            },
            transcode: { _, _, _, _, _ throws(Failure) in throw Failure(.internalError, "There are no videos here.") },
            thumb: { _, name, sizes, folder throws(Failure) in
                var files: [MadeFile] = []
                for size in sizes {
                    files.append(try made(ThumbSettings.name(of: size), .thumbnail, "image/jpeg", name, folder))
                }
                return (ThumbReport(outcome: .made, previewColor: "#a0b0c0"), files)
            })
    }

    static func made(_ name: OutputName, _ role: FileRole, _ type: String, _ text: String, _ folder: String)
        throws(Failure) -> MadeFile
    {
        let bytes = Array("\(name) of \(text)".utf8)
        let path = "\(folder)/\(name)"
        try Files.write(bytes, to: path)
        return MadeFile(
            output: SealedOutput(
                name: name, role: role, contentType: type, bytes: bytes.count, sha256: Digest.sha256(bytes), width: 512,
                height: 341),
            path: path)
    }
}

/// A file as a client sees it.
struct TestFile: Sendable {
    var upload: UploadID
    var item: ItemID
    var role = FileRole.original
    var name = "original"
    var filename = "IMG_1.JPG"
    var bytes: [UInt8]
    var partSize = PartLimits.bytesRange.lowerBound
    var sha256: SHA256Digest { Digest.sha256(bytes) }

    init(_ upload: String, item: String = "item-1", _ bytes: [UInt8] = Array("some bytes".utf8)) throws {
        self.upload = try #require(UploadID(rawValue: upload))
        self.item = try #require(ItemID(rawValue: item))
        self.bytes = bytes
    }

    var chunks: [ArraySlice<UInt8>] {
        bytes.isEmpty
            ? [[]] : stride(from: 0, to: bytes.count, by: partSize).map { bytes[$0..<min(bytes.count, $0 + partSize)] }
    }
    var parts: [PartRequest] {
        chunks.enumerated().map {
            PartRequest(partNumber: $0 + 1, length: $1.count, contentMD5: Digest.contentMD5(Array($1)))
        }
    }
    var open: OpenUploadRequest {
        OpenUploadRequest(
            uploadID: upload, itemID: item, role: role, name: name, filename: filename, contentType: "image/jpeg",
            sizeBytes: bytes.count, partSize: partSize, sha256: sha256, shoot: "wedding",
            parts: Array(parts.prefix(PartLimits.firstURLsMax)))
    }
    func complete(generation: Int = 1) -> CompleteUploadRequest {
        CompleteUploadRequest(
            generation: generation, sizeBytes: bytes.count, sha256: sha256,
            parts: parts.map { CompleteUploadRequest.Part(partNumber: $0.partNumber, etag: nil) })
    }
    var attach: AttachRequest {
        AttachRequest(
            kind: nil, shoot: "wedding", uploads: [AttachRequest.Upload(uploadID: upload, role: role, name: name)])
    }
}

extension TestClient {
    func open(_ file: TestFile) async throws -> UploadSession {
        try await send("POST", "/v1/uploads", file.open, headers: ["Idempotency-Key": file.upload.rawValue]).decoded()
    }

    /// All parts, asking for their URLs.
    func sendParts(_ file: TestFile, generation: Int = 1) async throws {
        let urls: PartURLs = try await send(
            "POST", "/v1/uploads/\(file.upload)/part-urls", PartURLsRequest(generation: generation, parts: file.parts)
        ).decoded()
        for (part, chunk) in zip(file.parts, file.chunks) {
            let url = try #require(urls.urls[String(part.partNumber)])
            let status =
                url.hasPrefix("http")
                ? try await StoreUnderTest.put(Array(chunk), to: url, contentMD5: part.contentMD5)
                : try await request("PUT", url, body: Data(chunk)).status
            #expect(status == 200)
        }
    }

    /// Until its item is ready.
    func deliver(_ file: TestFile) async throws {
        try await upload(file)
        _ = try await attach(file)
        _ = try await item(file.item) { $0.state == .ready }
    }

    func upload(_ file: TestFile) async throws {
        guard try await open(file).state == .open else { return }
        try await sendParts(file)
        let answer = try await send("POST", "/v1/uploads/\(file.upload)/complete", file.complete())
        #expect(answer.status == 200)
    }

    func attach(_ file: TestFile) async throws -> ItemDocument {
        try await send("PUT", "/v1/items/\(file.item)", file.attach).decoded()
    }

    func item(_ id: ItemID) async throws -> ItemDocument { try await request("GET", "/v1/items/\(id)").decoded() }

    /// Asks until the item is in such a state; a minute at most.
    func item(_ id: ItemID, until isReached: (ItemDocument) -> Bool) async throws -> ItemDocument {
        for _ in 0..<3000 {
            let document = try await item(id)
            if isReached(document) { return document }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw NeverReached()
    }
}
