import Curl
import Files
import Foundation
import Ingest
import LossyTransport
import Testing
import Vocabulary

/// What `rushes show` tells of an item afterwards.
@Suite(.timeLimit(.minutes(2))) struct StoryTests {
    @Test func eachHashPartRetryWaitAndEventIsInTheStoryWithItsTime() async throws {
        let stage = try await Stage()
        let clip = try stage.write("clip.mp4", .video, size: 20 << 20)
        try stage.write("clip.xmp", .sidecar, size: 50, seed: 2)
        let network = LossyTransport(HTTPClient(), seed: 4, chance: 0.3, faultsMax: 60)
        let start = BoxClock.system.now()
        let (_, items) = try await stage.ingest(stage.settings(network), prepare: .original)
        // Another process reads it: nothing of it is in memory.
        let view = try #require(try await BoxView.open(home: stage.home))
        let detail = try await view.show(try #require(items.first).item)
        let story = detail.history.map(\.entry)
        let whats = story.map(\.what)

        let steps: [HistoryEntry.What] = [
            .picked, .staged, .probed, .planned, .session, .part, .completing, .completed, .attached, .confirmed,
            .released,
            .state,
        ]
        var firsts: [Int] = []
        for step in steps { firsts.append(try #require(whats.firstIndex(of: step), "\(step) is not told")) }
        #expect(firsts.dropLast(2) == firsts.dropLast(2).sorted()[...], "\(whats)")
        let hash = try Files.sha256(of: .reading(clip))
        for what in [HistoryEntry.What.staged, .confirmed] {
            #expect(story.filter { $0.what == what }.count == 2)
            #expect(story.contains { $0.what == what && $0.file == "original/clip.mp4" && $0.sha256 == hash })
        }
        #expect(
            story.filter { $0.what == .part && $0.file == "original/clip.mp4" }.compactMap(\.part).sorted() == [
                1, 2, 3,
            ])
        #expect(network.exchanges.contains { $0.fate != .pass && $0.fate != .delayed && $0.fate != .duplicated })
        #expect(story.contains { $0.what == .retry && $0.reason != nil }, "\(whats)")
        #expect(story.contains { $0.what == .state && $0.state == .ready })
        let now = BoxClock.system.now()
        #expect(story.allSatisfy { (start...now).contains($0.at) })
        #expect(story.map(\.at) == story.map(\.at).sorted())
        #expect(detail.leftOut == 0)
        try await stage.end()
    }

    @Test func showTellsItInLinesAndAsJSON() async throws {
        let stage = try await Stage()
        try stage.write("clip.mp4", .video, size: 17 << 20)
        let (_, items) = try await stage.ingest(stage.settings(), prepare: .original)
        let item = try #require(items.first).item.rawValue
        let home = stage.home
        try await onThread {
            let text = try Programs.run(["show", item], ["RUSHES_HOME": home])
            #expect(text.status == 0)
            for words in [
                "in staging", "3 parts (1–3) of original/clip.mp4 stored", "read back by the backend", "now  ready",
            ] {
                #expect(text.output.contains(words), "\(text.output)")
            }
            let json = try Programs.run(["show", item, "--json"], ["RUSHES_HOME": home])
            let object = try #require(
                try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
            let history = try #require(object["history"] as? [[String: Any]])
            #expect(history.filter { $0["what"] as? String == "part" }.count == 3)
            for step in history {
                let at = try #require(step["at"] as? String)
                #expect((try? Date(at, strategy: Date.ISO8601FormatStyle(includingFractionalSeconds: true))) != nil)
            }
        }
        try await stage.end()
    }
}
