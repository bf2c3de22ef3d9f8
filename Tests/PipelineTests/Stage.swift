import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Testing
import Vocabulary

/// The real box against the real backend over a Unix socket, with a network that the test chooses. Every test ends with the check of both
/// sides.
struct Stage {
    let scratch: ScratchFolder
    let backend: RunningBackend

    /// - Parameter start: the backend below a folder.
    init(start: (String) async throws -> RunningBackend = { try await RunningBackend.start(in: $0) }) async throws {
        scratch = try ScratchFolder()
        backend = try await start(scratch.path + "/b")
    }

    var home: String { scratch.path + "/home" }
    var card: RawPath { RawPath(scratch.path + "/card") }

    @discardableResult
    func write(_ name: String, _ kind: Media, size: Int, seed: Int = 1) throws -> String {
        let path = scratch.path + "/card/" + name
        try Files.makeFolder(Files.folder(of: path))
        try Files.write(try kind.bytes(padding: size, seed: seed), to: path)
        return path
    }

    func settings(_ transport: any UploadTransport = HTTPClient(), patience: Double? = 20) -> IngestSettings {
        var settings = IngestSettings(
            home: home, server: .socket(path: backend.socket), media: .running(Media.jobs), transport: transport)
        settings.patience = patience
        settings.random = .seeded(11)
        settings.bounds.spaceMarginBytes = 1 << 20
        // Waits of seconds pass in milliseconds.
        settings.clock.sleep = { seconds in try? await Task.sleep(for: .seconds(seconds / 20)) }
        return settings
    }

    /// Takes the card and sees it through.
    @discardableResult
    func ingest(
        _ settings: IngestSettings, shoot: String = "test", prepare: PrepareMode = .both, move: Bool = false
    ) async throws -> (EnrolReport, [ItemStatus]) {
        let box = try await Box.open(settings)
        let report = try await box.enrol(
            PickRequest(paths: [card], shoot: shoot, move: move, prepare: prepare))
        try await box.run(until: .itemsFinal(report.items)) { _ in }
        return (report, try await box.items(report.items))
    }

    /// What lies in staging beside its tag.
    func staged() throws -> [String] { try Files.names(in: home + "/staging").filter { $0 != "CACHEDIR.TAG" } }

    func end() async throws {
        #expect(try await BoxCheck.run(home: home) == [])
        await backend.backend.stop()
        #expect(try await backend.check() == [])
    }
}

enum Pattern {
    static func bytes(_ count: Int, seed: Int) -> [UInt8] {
        var random = BoxRandom.seeded(UInt64(seed))
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        while bytes.count < count { withUnsafeBytes(of: random.next()) { bytes.append(contentsOf: $0) } }
        return Array(bytes.prefix(count))
    }
}

extension LossyTransport {
    /// Parts whose success the box heard, each as often as it was sent after that. A part is what its URL names: upload, generation, number.
    var sentAgain: [String] {
        var heard: Set<String> = []
        var again: [String] = []
        for exchange in exchanges {
            guard exchange.contentMD5 != nil, let token = exchange.url.split(separator: "/").last else { continue }
            let part = token.split(separator: ".").prefix(3).joined(separator: ".")
            if heard.contains(part) { again.append(part) }
            if let status = exchange.status, (200..<300).contains(status) { heard.insert(part) }
        }
        return again
    }
}

extension Stage {
    var onlyStagedOriginal: String? {
        (try? staged())?.first.map { home + "/staging/" + $0 + "/original" }
    }

    /// Uploads that the backend holds open, as the catalog of the box names them.
    func openUploads(_ socket: String) async throws -> [UploadID] {
        let box = try await Box.open(settings())
        var ids: [UploadID] = []
        for item in try await box.items() {
            for file in try await box.show(item.item).files where file.uploadState == .uploading {
                if let id = file.upload { ids.append(id) }
            }
        }
        return ids
    }
}
