import Curl
import Files
import Foundation
import Ingest
import LossyTransport
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
