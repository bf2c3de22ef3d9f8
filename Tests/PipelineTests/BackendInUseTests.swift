import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Synchronization
import Testing
import Vocabulary

/// “Already there” is what the backend in use says, and no other.
@Suite struct BackendInUseTests {
    @Test(.timeLimit(.minutes(2))) func whatAnotherBackendHasIsTakenForThisOne() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        let (_, first) = try await stage.ingest(stage.settings(), prepare: .original)
        let other = try await RunningBackend.start(in: stage.scratch.path + "/other")
        var settings = stage.settings()
        settings.server = .socket(path: other.socket)
        settings.serverName = "unix:" + other.socket
        let (report, second) = try await stage.ingest(settings, prepare: .original)
        #expect(report.picks.map(\.outcome) == [.new])
        #expect(second.map(\.state) == [.ready] && second.map(\.item) != first.map(\.item))
        let (again, _) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(again.picks.map(\.outcome) == [.alreadyThere] && again.items == first.map(\.item))
        await other.backend.stop()
        #expect(try await other.check() == [])
        try await stage.end()
    }

    /// What the backend forgets everything before: the third part, or the item's description.
    @Test(.timeLimit(.minutes(2)), arguments: ["/v1/parts/", "/v1/items/"])
    func whatTheBackendHasNeverHeardOfIsSentAnew(path: String) async throws {
        let stage = try await Stage()
        try stage.write("a.mp4", .video, size: 20 << 20)
        try stage.write("a.xmp", .sidecar, size: 10)
        let puts = Tally()
        let another = Mutex<RunningBackend?>(nil)
        let network = LossyTransport(HTTPClient(), seed: 1, chance: 0) { request in
            guard request.method == .put, request.url.contains(path), puts.next() == (path == "/v1/parts/" ? 3 : 1)
            else { return nil }
            await stage.backend.backend.stop()
            let data = stage.backend.folder + "/data"
            for name in (try? Files.names(in: data)) ?? [] where name.hasPrefix("ledger.sqlite") {
                try? Files.remove(data + "/" + name)
            }
            let next = try? await RunningBackend.start(in: stage.backend.folder)
            another.withLock { $0 = next }
            return nil
        }
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        let last = try #require(another.withLock { $0 })
        #expect(items.map(\.state) == [.ready])
        #expect(try stage.staged() == [])
        await last.backend.stop()
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func whatTheBackendHasDeletedIsTakenOnceMoreAsTheSameItem() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        try stage.write("a.xmp", .sidecar, size: 10)
        let (_, first) = try await stage.ingest(stage.settings(), prepare: .original)
        let item = try #require(first.first?.item)
        let gone = HTTPRequest(.delete, "http://localhost/v1/items/\(item)", socketPath: stage.backend.socket)
        #expect(try await HTTPClient().send(gone).status == 204)
        let (report, second) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(report.picks.map(\.outcome) == [.lost])
        #expect(second.map(\.item) == [item] && second.map(\.state) == [.ready] && second.map(\.generation) == [2])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aBackendThatCannotBeAskedCountsAsItSaidEarlierAndThatIsTold() async throws {
        let stage = try await Stage()
        try stage.write("a.jpg", .photo, size: 1000)
        try await stage.ingest(stage.settings(), prepare: .original)
        let away = LossyTransport.away()
        let (report, _) = try await stage.ingest(stage.settings(away), prepare: .original)
        #expect(report.picks.map(\.outcome) == [.alreadyThere])
        #expect(report.backendFault?.code == .busy)
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aBackendWhoseFolderIsGoneIsAFindingAndWhatItHadIsTakenAgain() async throws {
        try await onThread {
            let scratch = try ScratchFolder()
            let home = ["RUSHES_HOME": scratch.path + "/home"]
            let command = ["ingest", Programs.fixtures + "/picture.png", "--shoot", "s"]
            #expect(try Programs.run(command, home).status == 0)
            try FileManager.default.removeItem(atPath: scratch.path + "/home/backend")
            let dirty = try Programs.run(["check"], home)
            #expect(dirty.status == 1 && dirty.output.contains("released-unheld"), "\(dirty.output)\(dirty.errors)")
            let unsafe = try Programs.run(["verify", Programs.fixtures + "/picture.png"], home)
            #expect(unsafe.status == 3 && unsafe.output.contains("not taken"), "\(unsafe.output)\(unsafe.errors)")
            let again = try Programs.run(command, home)
            #expect(again.status == 0 && again.errors.contains("take once more"), "\(again.errors)")
            let clean = try Programs.run(["check"], home)
            #expect(clean.status == 0, "\(clean.output)\(clean.errors)")
        }
    }
}
