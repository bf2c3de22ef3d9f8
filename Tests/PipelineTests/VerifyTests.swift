import Files
import Foundation
import Testing
import Vocabulary

/// May this card be formatted? The real programs over a card of fixtures.
@Suite(.serialized, .timeLimit(.minutes(5))) struct VerifyTests {
    private struct Line: Decodable {
        var path: String?
        var status: String?
        var verdict: String?
    }

    @Test func exactlyTheChangedTheTruncatedAndTheNewFileAreNamed() async throws {
        try await onThread {
            let scratch = try ScratchFolder()
            let card = scratch.path + "/card"
            let home = ["RUSHES_HOME": scratch.path + "/home"]
            let names = ["conforming.mp4", "exif-orientation-6.jpg", "picture.png", "not-media.mp4", "zero-bytes.mp4"]
            try Files.makeFolder(card + "/DCIM")
            for name in names {
                try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: "\(card)/DCIM/\(name)")
            }
            try Files.write(Array("x".utf8), to: card + "/.DS_Store")

            let before = try Programs.run(["verify", card], home)
            #expect(before.status == 3)
            #expect(try Files.facts(scratch.path + "/home") == nil, "verifying makes nothing")

            #expect(try Programs.run(["ingest", card, "--shoot", "v"], home).status == 3)
            let safe = try Programs.run(["verify", card], home)
            #expect(safe.status == 0, "\(safe.output)\(safe.errors)")
            #expect(safe.output.split(separator: "\n").last?.hasPrefix("safe to format") == true)

            var changed = [UInt8](try Data(contentsOf: URL(fileURLWithPath: card + "/DCIM/picture.png")))
            changed[changed.count / 2] ^= 0x55
            try Files.write(changed, to: card + "/DCIM/picture.png")
            let whole = [UInt8](try Data(contentsOf: URL(fileURLWithPath: card + "/DCIM/conforming.mp4")))
            try Files.write(Array(whole.dropLast(1000)), to: card + "/DCIM/conforming.mp4")
            try Files.write([], to: card + "/DCIM/exif-orientation-6.jpg")
            try FileManager.default.copyItem(
                atPath: Programs.fixtures + "/recorder.wav", toPath: card + "/DCIM/recorder.wav")

            let after = try Programs.run(["verify", card, "--json"], home)
            #expect(after.status == 3)
            let lines = try after.output.split(separator: "\n").map {
                try JSONDecoder().decode(Line.self, from: Data($0.utf8))
            }
            let blocking = lines.filter {
                ["changed", "not-taken", "only-in-staging", "unreadable"].contains($0.status)
            }
            let found = blocking.map { "\($0.path?.split(separator: "/").last ?? "?") \($0.status ?? "?")" }
            #expect(
                found == [
                    "conforming.mp4 changed", "exif-orientation-6.jpg changed", "picture.png changed",
                    "recorder.wav not-taken",
                ])
            #expect(lines.last?.verdict == "not safe to format")
            #expect(try Programs.run(["verify", card + "/nothing"], home).status == 1)

            // A card that is not there leaves an empty folder in its place; what systems leave there is no footage.
            let empty = scratch.path + "/empty"
            for name in [nil, ".DS_Store"] {
                try Files.makeFolder(empty)
                if let name { try Files.write(Array("x".utf8), to: empty + "/" + name) }
                let nothing = try Programs.run(["verify", empty], home)
                #expect(nothing.status == 3)
                #expect(nothing.output.contains("nothing to verify") && !nothing.output.contains("safe to format"))
                let line = try Programs.run(["verify", empty, "--json"], home).output.split(separator: "\n").last
                let verdict = try JSONDecoder().decode(Line.self, from: Data((line ?? "").utf8)).verdict
                #expect(verdict == "nothing to verify")
            }
        }
    }
}
