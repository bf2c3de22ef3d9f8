import Files
import Foundation
import HTTPServer
import Synchronization
import Testing
import Vocabulary

@testable import Backend

/// A client that does the same thing again and again until it is done, and remembers what it was told.
private final class Patience: Sendable {
    let client: TestClient
    let files: [TestFile]
    private let acknowledged = Mutex<Set<String>>([])

    init(client: TestClient, files: [TestFile]) {
        self.client = client
        self.files = files
    }

    /// Throws a `ConnectionFault` when the server is gone.
    func run() async throws {
        for file in files {
            guard try await client.open(file).state == .open else { continue }
            try await sendMissing(file)
            #expect(try await client.send("POST", "/v1/uploads/\(file.upload)/complete", file.complete()).status == 200)
        }
        let request = AttachRequest(
            kind: nil, shoot: "crash", uploads: files.map { .init(uploadID: $0.upload, role: $0.role, name: $0.name) })
        #expect(try await client.send("PUT", "/v1/items/\(files[0].item)", request).status == 200)
        let item = try await client.item(files[0].item) { $0.state == .ready || $0.state == .rejected }
        #expect(item.state == .ready)
        #expect(item.renditions.map(\.name) == ["2048", "256", "512"])
        for file in files {
            #expect(item.uploads.first { $0.uploadID == file.upload }?.sha256Recomputed == file.sha256)
        }
    }

    private func sendMissing(_ file: TestFile) async throws {
        let listed: StoredParts = try await client.request("GET", "/v1/uploads/\(file.upload)/parts").decoded()
        let held = Set(listed.parts.map(\.partNumber))
        for part in file.parts where acknowledged.withLock({ $0.contains("\(file.upload)/\(part.partNumber)") }) {
            #expect(held.contains(part.partNumber), "an acknowledged part is gone")
        }
        for (part, bytes) in zip(file.parts, file.chunks) where !held.contains(part.partNumber) {
            let urls: PartURLs = try await client.send(
                "POST", "/v1/uploads/\(file.upload)/part-urls",
                PartURLsRequest(generation: listed.generation, parts: [part])
            ).decoded()
            let answer = try await client.request(
                "PUT", try #require(urls.urls["\(part.partNumber)"]), body: Data(bytes))
            #expect(answer.status == 200)
            acknowledged.withLock { _ = $0.insert("\(file.upload)/\(part.partNumber)") }
        }
    }
}

/// The backend dies by SIGKILL right after its nth durable step and is started again; n goes up until it survives.
@Suite struct CrashTests {
    /// Durable steps of the backend for a photo with a sidecar of two parts. A loop that stopped early would show here.
    static let stepCount = 27

    @Test(.timeLimit(.minutes(5))) func theBackendLosesNothingWhereverItIsKilled() async throws {
        var photo = try TestFile("up-1", try picture())
        photo.partSize = PartLimits.bytesDefault
        var sidecar = try TestFile("up-2", [UInt8](repeating: 7, count: 6 << 20))
        (sidecar.role, sidecar.name, sidecar.filename) = (.sidecar, "IMG_1.XMP", "IMG_1.XMP")
        let files = [photo, sidecar]
        let (survived, _) = try await ServeProcess.killedAtEachStep { client in
            let patience = Patience(client: client, files: files)
            return { try await patience.run() }
        }
        #expect(survived == Self.stepCount + 1)
    }

    /// A GIF of one pixel: small, so that its thumbnail is quick.
    private func picture() throws -> [UInt8] {
        [UInt8](try #require(Data(base64Encoded: "R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")))
    }
}
