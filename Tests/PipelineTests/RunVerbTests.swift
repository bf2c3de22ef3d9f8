import Files
import Foundation
import Testing
import Vocabulary

/// `rushes run`: the queue and the inboxes, until it is stopped.
@Suite(.serialized, .timeLimit(.minutes(5))) struct RunVerbTests {
    @Test func whatIsPutIntoAnInboxIsMovedAwayAndABatchOfAnotherTerminalJoins() async throws {
        try await onThread {
            let house = try InboxHouse()
            let run = try house.start(["run"])
            let second = try house.start(["run"])
            try house.drop("exif-orientation-6.jpg")
            try Programs.wait("the dropped photo is ready") { try house.states() == ["ready"] }
            #expect(try Files.names(in: house.inbox) == [])

            let card = Programs.fixtures + "/picture.png"
            let ingest = try house.start(["ingest", card]).wait()
            #expect(ingest.status == 0, "\(ingest.errors)")
            #expect(try Files.facts(card) != nil)

            // Whoever is left goes on with the work.
            let ended = run.stop()
            #expect(ended.status == 0, "\(ended.errors)")
            try house.drop("conforming.mp4")
            try Programs.wait("the second run has taken over") { try house.states() == ["ready", "ready", "ready"] }
            let takenOver = second.stop()
            #expect(takenOver.status == 0)
            // Between the one's backend and the other's there is a moment without any: that is nothing to be told.
            #expect(!takenOver.errors.contains("waiting:"), "\(takenOver.errors)")
            try house.end()
        }
    }

    @Test func aFileThatSomebodyStillWritesStaysWhereItIs() async throws {
        try await onThread {
            let house = try InboxHouse()
            let path = house.inbox + "/growing.png"
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Programs.fixtures + "/picture.png")))
            _ = FileManager.default.createFile(atPath: path, contents: Data(bytes.prefix(1000)))
            let writer = try #require(FileHandle(forWritingAtPath: path))
            let run = try house.start(["run"])
            // This one comes later and is taken: the first one was looked at as often.
            try house.drop("exif-orientation-6.jpg")
            try Programs.wait("the other one is ready") { try house.states() == ["ready"] }
            #expect(try Files.facts(path) != nil)
            try writer.seekToEnd()
            try writer.write(contentsOf: Data(bytes.dropFirst(1000)))
            try writer.close()
            try Programs.wait("the finished one is ready") { try house.states() == ["ready", "ready"] }
            #expect(run.stop().status == 0)
            try house.end()
        }
    }

    @Test func anInboxThatIsAwayIsOneReasonAndItGoesOnWhenItIsBack() async throws {
        try await onThread {
            let house = try InboxHouse()
            let away = house.scratch.path + "/away"
            try FileManager.default.moveItem(atPath: house.inbox, toPath: away)
            try FileManager.default.copyItem(
                atPath: Programs.fixtures + "/picture.png", toPath: away + "/picture.png")
            let run = try house.start(["run"])
            try Programs.wait("it says what it waits for") { run.said.contains("waits:") }
            try Programs.wait("something else is done meanwhile") {
                try house.start(["ingest", Programs.fixtures + "/exif-orientation-6.jpg"]).wait().status == 0
            }
            try FileManager.default.moveItem(atPath: away, toPath: house.inbox)
            try Programs.wait("the inbox is back") { try house.states() == ["ready", "ready"] }
            let ended = run.stop()
            #expect(ended.status == 0)
            #expect(ended.errors.components(separatedBy: "waits:").count == 2, "\(ended.errors)")
            #expect(ended.errors.contains("is back"))
            try house.end()
        }
    }
}

/// A home with an inbox, and a backend inside.
final class InboxHouse: Sendable {
    let scratch: ScratchFolder
    let inbox: String
    private let environment: [String: String]

    init() throws {
        scratch = try ScratchFolder()
        inbox = scratch.path + "/inbox"
        environment = [
            "RUSHES_HOME": scratch.path + "/home", "RUSHES_INBOX": inbox, "RUSHES_INBOX_QUIET": "1",
        ]
        try Files.makeFolder(inbox)
    }

    func start(_ arguments: [String]) throws -> Programs.Started { try Programs.Started(arguments, environment) }

    func drop(_ name: String) throws {
        try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: inbox + "/" + name)
    }

    func states() throws -> [String] {
        try StatusLine.read(try Programs.run(["status", "--json"], environment).output).map(\.state)
    }

    func end() throws {
        let check = try Programs.run(["check"], environment)
        #expect(check.status == 0, "\(check.output)\(check.errors)")
    }
}
