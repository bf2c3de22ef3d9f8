import Files
import Foundation
import Testing
import Vocabulary

@testable import SQLite

/// What may be read and not written: a home that is only looked at, and a card from which nothing can be taken away.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ReadOnlyTests {
    private static let photo = "exif-orientation-6.jpg"

    @Test func aHomeThatCannotBeWrittenIsLookedAt() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 80) else { return }
            let (home, card) = (disk.scratch.path + "/home", disk.scratch.path + "/card")
            let environment = ["RUSHES_HOME": home]
            try Files.makeFolder(card)
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + Self.photo, toPath: card + "/a.jpg")
            try disk.show(at: home)
            defer { try? disk.hide(at: home) }
            #expect(try Programs.run(["ingest", card, "--shoot", "r"], environment).status == 0)

            #expect(Disk.run("mount", "-o", "remount,bind,ro", home))
            let status = try Programs.run(["status", "--json"], environment)
            let item = try #require(try StatusLine.read(status.output).first, "\(status.errors)")
            #expect(item.state == "ready")
            let looks: [([String], String?)] = [
                (["status"], "a.jpg"), (["show", item.item], "a.jpg"), (["check"], nil), (["token", "list"], nil),
                (["verify", card], "as it said earlier"), (["mhl", "r", card], nil),
            ]
            for (arguments, words) in looks {
                let ended = try Programs.run(arguments, environment)
                #expect(
                    ended.status == 0 && (words.map { ended.output.contains($0) } ?? true),
                    "\(arguments) \(ended.output)\(ended.errors)")
            }
            #expect(try Programs.run(["ingest", card], environment).status == 1)
        }
    }

    @Test func changesThatStandOnlyInTheLogAreReadOrMissedAloud() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 80) else { return }
            let (home, copy) = (disk.scratch.path + "/home", disk.scratch.path + "/copy")
            try FileManager.default.copyItem(
                atPath: Programs.fixtures + "/" + Self.photo, toPath: disk.scratch.path + "/a.jpg")
            let path = disk.scratch.path + "/a.jpg"
            #expect(try Programs.run(["ingest", path], ["RUSHES_HOME": home]).status == 0)
            do {
                let catalog = try Connection(home + "/catalog.db")
                try catalog.execute("UPDATE item SET name = 'renamed.jpg'")
                // As a power cut leaves it.
                try FileManager.default.copyItem(atPath: home, toPath: copy)
            }
            func readOnly(_ body: () throws -> Void) throws {
                try #require(Disk.run("mount", "--bind", copy, copy))
                defer { #expect(Disk.run("umount", "-l", copy)) }
                try #require(Disk.run("mount", "-o", "remount,bind,ro", copy))
                try body()
            }
            func status() throws -> Programs.Ended { try Programs.run(["status"], ["RUSHES_HOME": copy]) }
            try readOnly {
                let ended = try status()
                #expect(ended.status == 0 && ended.output.contains("renamed.jpg"), "\(ended.output)\(ended.errors)")
            }
            try Files.remove(copy + "/catalog.db-shm")
            try readOnly {
                let ended = try status()
                #expect(ended.status == 1 && ended.output.isEmpty && ended.errors.contains("on a copy of the folder"))
            }
            #expect(try status().output.contains("renamed.jpg"))
        }
    }

    private struct Line: Decodable {
        var name: String
        var state: String
        var remaining: [String]
    }

    @Test func aSourceThatCannotBeRemovedIsNamedAndGoesLater() async throws {
        try await onThread {
            guard let disk = try Disk(megabytes: 80) else { return }
            let (home, card) = (disk.scratch.path + "/home", disk.scratch.path + "/card")
            let environment = ["RUSHES_HOME": home]
            try disk.show(at: card)
            defer { try? disk.hide(at: card) }
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + Self.photo, toPath: card + "/a.jpg")
            try Files.write(Array("<x/>".utf8), to: card + "/a.xmp")
            let sources = [card + "/a.jpg", card + "/a.xmp"]
            func remaining() throws -> [String] {
                try Programs.run(["status", "--json"], environment).output.split(separator: "\n").flatMap {
                    try JSONDecoder().decode(Line.self, from: Data($0.utf8)).remaining
                }
            }

            #expect(Disk.run("mount", "-o", "remount,bind,ro", card))
            let ingest = try Programs.run(["ingest", card, "--shoot", "u", "--move"], environment)
            #expect(ingest.status == 0 && ingest.errors.contains("2 files were taken and could not be removed"))
            #expect(try remaining() == sources)
            let status = try Programs.run(["status"], environment).output
            #expect(status.contains("not removed yet: \(sources.joined(separator: ", "))"))
            let item = try #require(
                try StatusLine.read(try Programs.run(["status", "--json"], environment).output).first?.item)
            let story = try Programs.run(["show", item], environment).output
            #expect(story.contains("could not be removed yet from \(sources[0])"))
            #expect(story.contains("source not removed"))

            // Its copy is gone from here. Where the backend does not have it (any more), it stays.
            #expect(Disk.run("mount", "-o", "remount,bind,rw", card))
            try FileManager.default.moveItem(atPath: home + "/backend", toPath: home + "/away")
            let other = disk.scratch.path + "/picture.png"
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/picture.png", toPath: other)
            #expect(try Programs.run(["ingest", other, "--shoot", "o"], environment).status == 0)
            #expect(try remaining() == sources && Files.names(in: card) == ["a.jpg", "a.xmp"])

            try FileManager.default.removeItem(atPath: home + "/backend")
            try FileManager.default.moveItem(atPath: home + "/away", toPath: home + "/backend")
            let again = try Programs.run(["ingest", card, "--shoot", "u", "--move"], environment)
            #expect(again.status == 0 && !again.errors.contains("stays where it is"), "\(again.errors)")
            #expect(try remaining() == [] && Files.names(in: card) == [])
        }
    }
}
