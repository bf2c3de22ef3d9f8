import Digests
import Files
import Foundation
import SQLite
import Synchronization
import Testing
import Vocabulary

@testable import Ingest

@Suite struct HistoryTests {
    let scratch: ScratchFolder
    let catalog: Catalog
    let id = ItemID.named("item-1")
    let time = Moment()

    final class Moment: Sendable {
        private let now = Mutex<Int64>(1_700_000_000_000)
        func tick() -> Int64 {
            now.withLock {
                $0 += 1; return $0
            }
        }
    }

    init() async throws {
        scratch = try ScratchFolder()
        let time = time
        catalog = try await Catalog.open(home: scratch.path, now: { time.tick() })
        let walked = WalkedFile(path: "/card/a.mp4", size: 10, modified: 5)
        _ = try await catalog.picked(
            .init(new: [
                .init(
                    id: id, shoot: "s", name: "a.mp4", source: walked, isMoved: false, prepare: .auto,
                    files: [
                        FileRow(
                            item: id, role: .original, name: "a.mp4", source: walked.path, path: "\(id)/original",
                            contentType: "x/y", state: .wanted)
                    ], created: 1)
            ]), since: 0)
    }

    private func item() async throws -> ItemRow { try #require(try catalog.item(id)) }
    private func told() throws -> [HistoryEntry] { try catalog.history(of: id).entries }

    @Test func aStoryThatGoesOnForEverKeepsItsBeginningAndItsEnd() async throws {
        for number in 1...1200 { try await catalog.waits(try await item(), "reason \(number)") }
        let (entries, leftOut) = try catalog.history(of: id)
        #expect(entries.count == HistoryBounds.firstKept + HistoryBounds.lastKept)
        #expect(leftOut == 201)
        #expect(
            entries.first?.what == .picked && entries[99].words == "reason 99" && entries[100].words == "reason 301")
        #expect(entries.last?.words == "reason 1200")
        #expect(entries.map(\.at) == entries.map(\.at).sorted())
    }

    @Test func whatIsOnlyNotedGoesWithTheNextStepAndIsNoStepOfItsOwn() async throws {
        let failure = Failure(.backendUnreachable, "No answer.")
        for _ in 1...3 { catalog.notes.note(id, HistoryEntry(.retry, part: 7, reason: Reason(failure))) }
        catalog.notes.note(id, HistoryEntry(.event))
        #expect(try told().map(\.what) == [.picked])
        // A step that changes nothing writes nothing down.
        try await catalog.waiting(nil)
        try await catalog.completed(UploadID.named("none"), generation: 1)
        #expect(try told().map(\.what) == [.picked])
        try await catalog.waits(try await item(), "Waiting")
        let entries = try told()
        #expect(entries.map(\.what) == [.picked, .retry, .event, .waiting])
        #expect(entries[1].times == 3 && entries[1].part == 7 && entries[1].reason == Reason(failure))
        // They have the times at which they happened.
        #expect(entries[1].at < entries[2].at && entries[2].at < entries[3].at)
    }

    @Test func aStepThatIsRepeatedIsToldOnce() async throws {
        let upload = UploadRow(id: .named("up-1"), item: id, role: .original, name: "a.mp4", partSize: 5)
        try await catalog.prepared(try await item(), derived: [], uploads: [upload], server: "own")
        let parts = [PartRow(number: 1, bytes: 5), PartRow(number: 2, bytes: 5)]
        for _ in 1...2 { try await catalog.sessionOpened(upload.id, generation: 1, partSize: 5) }
        for _ in 1...2 { try await catalog.stored(parts, of: upload.id, generation: 1) }
        for _ in 1...2 { try await catalog.completing(upload.id) }
        for _ in 1...2 { try await catalog.completed(upload.id, generation: 1) }
        #expect(
            try told().map(\.what) == [.picked, .planned, .session, .part, .part, .completing, .completed])
        #expect(try told().filter { $0.what == .part }.map(\.part) == [1, 2])
    }

    @Test func aWaitOfAllIsInEachItemsStoryAndSoIsItsEnd() async throws {
        try await catalog.waiting("No network")
        try await catalog.waiting("No network")
        try await catalog.waiting(nil)
        #expect(try told().map(\.what) == [.picked, .waiting, .goesOn])
        #expect(try told()[1].words == "No network")
    }

    @Test func theHashOfListsIsTheOneThatOthersCompute() throws {
        // xxhsum -H2 of the same bytes.
        for (text, expected) in [
            ("", "99aa06d3014798d86001c324468d497f"), ("hello\n", "6bba86c7e069f56d5a10b435f1c8e49c"),
            ("w\n", "fbe38d12c8e55bc3a1c982a67a7f6017"),
        ] {
            let hash = XXH128()
            Array(text.utf8).withUnsafeBytes { hash.update($0) }
            #expect(hash.finalize().rawValue == expected)
        }
    }
}
