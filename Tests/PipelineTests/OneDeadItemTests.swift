import Curl
import Files
import Foundation
import LossyTransport
@testable import SQLite
import Testing
import Vocabulary

@testable import Ingest

/// What is wrong with one item of a home at the start of a run is that item's alone.
@Suite struct OneDeadItemTests {
    /// A path that cannot even be looked at, whoever asks.
    private static let unreachable = "/" + String(repeating: "x", count: 300)

    private static func edit(_ stage: Stage, _ sql: String, _ parameters: [SQLValue] = []) throws {
        try Connection(stage.home + "/catalog.db").run(sql, parameters)
    }

    @Test(.timeLimit(.minutes(2))) func aRejectedCopyWhoseSourceCannotBeLookedAtStaysAndHoldsUpNoOther() async throws {
        let stage = try await Stage()
        let note = try stage.write("n.txt", .text, size: 7)
        let (_, items) = try await stage.ingest(stage.settings())
        #expect(items.map(\.state) == [.rejected])
        // As if the run had ended before it was released.
        let id = items[0].item
        try Files.makeFolder(stage.home + "/staging/\(id)")
        try FileManager.default.copyItem(atPath: note, toPath: stage.home + "/staging/\(id)/original")
        try Self.edit(
            stage, "UPDATE file SET state = 'staged', source = ?1", [.blob(RawPath(Self.unreachable).bytes)])
        try Files.remove(note)
        try stage.write("a.jpg", .photo, size: 1000)
        let (_, after) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(after.map(\.state) == [.ready])
        #expect(try stage.staged() == [id.rawValue])
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aSidecarThatCannotBeReadIsLeftToldAndTakenNextTime() async throws {
        let stage = try await Stage()
        try stage.write("clip.mp4", .video, size: 2000)
        let sidecar = try stage.write("clip.xmp", .sidecar, size: 20)
        let box = try await Box.open(stage.settings())
        let report = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        // The kernel answers EIO to whoever reads there.
        try Self.edit(
            stage, "UPDATE file SET source = ?1 WHERE role = 'sidecar'", [.blob(RawPath("/proc/self/mem").bytes)])
        try await box.run(until: .itemsFinal(report.items)) { _ in }
        #expect(try await box.items(report.items).map(\.state) == [.ready])
        #expect(try await box.leftOut(report.items) == ["clip.xmp"])
        #expect(try await BoxCheck.run(home: stage.home) == [])

        try Self.edit(
            stage, "UPDATE file SET source = ?1 WHERE role = 'sidecar'", [.blob(try RawPath(sidecar).resolved().bytes)])
        let (again, items) = try await stage.ingest(stage.settings(), prepare: .original)
        #expect(again.items == report.items && items.map(\.state) == [.ready])
        #expect(try await box.leftOut(report.items) == [])
        let sidecars = try await box.show(report.items[0]).files.filter { $0.role == .sidecar }
        #expect(sidecars.count == 1 && sidecars.allSatisfy { $0.confirmedSHA256 != nil })
        try await stage.end()
    }

    @Test(.timeLimit(.minutes(2))) func aMoveThatCannotBeFinishedAndStagedBytesThatAreGoneAreTheirItemsOwn()
        async throws
    {
        let stage = try await Stage()
        for (index, name) in ["back.jpg", "gone.jpg", "good.jpg"].enumerated() {
            try stage.write(name, .photo, size: 1000 + index, seed: index)
        }
        let away = LossyTransport.away()
        let (uploading, uploads) = AsyncStream.makeStream(of: ItemID.self)
        let box = try await Box.open(stage.settings(away, patience: nil))
        _ = try await box.enrol(PickRequest(paths: [stage.card], shoot: "test", prepare: .original))
        let run = Task {
            try await box.run(until: .stopped) { event in
                if case .item(let item) = event, item.state == .uploading { uploads.yield(item.id) }
            }
        }
        var begun: Set<ItemID> = []
        for await id in uploading where begun.insert(id).inserted && begun.count == 3 { break }
        run.cancel()
        _ = try? await run.value
        let items = try await box.items()
        // As a move leaves it that has copied and could not remove.
        try Self.edit(stage, "UPDATE item SET is_moved = 1")
        for item in items where item.name != "good.jpg" {
            try Files.remove(stage.home + "/staging/\(item.item)/original")
        }
        try Self.edit(
            stage, "UPDATE file SET source = ?1 WHERE name = 'gone.jpg'", [.blob(RawPath(Self.unreachable).bytes)])
        let (_, after) = try await stage.ingest(stage.settings(), prepare: .original, move: true)
        let states = Dictionary(uniqueKeysWithValues: after.map { ($0.name, $0.state) })
        #expect(states == ["back.jpg": .ready, "gone.jpg": .missing, "good.jpg": .ready])
        #expect(try Files.names(in: stage.card.description) == ["gone.jpg"])
        try await stage.end()
    }
}
