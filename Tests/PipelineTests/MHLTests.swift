import Files
import Foundation
import Ingest
import Testing
import Vocabulary

/// `rushes mhl` against the reference implementation of ASC MHL.
@Suite(.timeLimit(.minutes(5))) struct MHLTests {
    private static let names = [
        "picture.png", "zero-bytes.mp4", "not-media.mp4", "conforming.mp4", "portrait-rotated-90.mov",
        "portrait-rotated-90.xmp",
    ]

    @Test func theReferenceToolFindsNoDifferenceOnACopyAndOneAfterAByteWasChanged() async throws {
        try await onThread {
            guard let tool = try PythonTool("ascmhl", version: "1.2", word: "ASCMHL") else { return }
            let scratch = try ScratchFolder()
            let (card, copy) = (scratch.path + "/card", scratch.path + "/copy")
            let home = ["RUSHES_HOME": scratch.path + "/home"]
            try Files.makeFolder(card + "/DCIM/é & <b>")
            for (index, name) in Self.names.enumerated() {
                let folder = index == 0 ? "/DCIM/é & <b>/" : "/DCIM/"
                try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: card + folder + name)
            }
            // What cameras and computers leave is not taken, and is no difference either.
            for name in ["/.DS_Store", "/DCIM/C0001.THM", "/DCIM/._picture.png"] {
                try Files.write([1], to: card + name)
            }
            #expect(try Programs.run(["ingest", card, "--shoot", "S", "--prepare", "original"], home).status == 3)
            try FileManager.default.copyItem(atPath: card, toPath: copy)

            let made = try Programs.run(["mhl", "S", copy], home)
            #expect(made.status == 0, "\(made.errors)")
            #expect(made.errors.contains("6 files, 4 of them confirmed"), "\(made.errors)")
            // Twice: the second time as the next generation of the same history.
            for _ in 1...2 {
                for (program, verb) in [("ascmhl", "diff"), ("ascmhl-debug", "verify")] {
                    let judged = try tool.run(program, [verb, copy])
                    #expect(judged.status == 0, "\(verb): \(judged.output)")
                }
                #expect(try Programs.run(["mhl", "S", copy], home).status == 0)
            }
            // Its own next generation builds upon ours, and ours upon it.
            #expect(try tool.run("ascmhl", ["create", "-h", "xxh128", copy]).status == 0)
            #expect(try Programs.run(["mhl", "S", copy], home).status == 0)
            #expect(try tool.run("ascmhl-debug", ["verify", copy]).status == 0)

            let path = copy + "/DCIM/conforming.mp4"
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            bytes[bytes.count / 2] ^= 1
            try Files.write(bytes, to: path)
            let changed = try tool.run("ascmhl-debug", ["verify", copy])
            #expect(changed.status == 11, "\(changed.output)")
            let lines = changed.output.split(separator: "\n").filter { $0.contains("mismatch") }
            #expect(lines.count == 1 && lines[0].contains("DCIM/conforming.mp4"), "\(changed.output)")
            // A file that nobody took is told as new.
            try Files.write(Array("new".utf8), to: copy + "/DCIM/new.mp4")
            #expect(try tool.run("ascmhl", ["diff", copy]).status == 21)
        }
    }

    @Test func theReceiptSaysWhatTheBackendHasReadBack() async throws {
        try await onThread {
            let scratch = try ScratchFolder()
            let card = scratch.path + "/card"
            let home = ["RUSHES_HOME": scratch.path + "/home"]
            for words in [["mhl", "S", scratch.path], ["mhl", "S"]] {
                #expect(try Programs.run(words, home).status == (words.count == 3 ? 1 : 2))
            }
            try Files.makeFolder(card)
            for name in ["picture.png", "not-media.mp4"] {
                try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: card + "/" + name)
            }
            #expect(try Programs.run(["ingest", card, "--shoot", "S"], home).status == 3)
            #expect(try Programs.run(["mhl", "another", card], home).status == 1)
            #expect(try Programs.run(["mhl", "S", card + "/none"], home).status == 1)
            #expect(try Programs.run(["mhl", "S", card], home).status == 0)
            struct Receipt: Decodable {
                struct File: Decodable {
                    var path: String
                    var sha256: String
                    var recomputed: String?
                    var confirmed: Bool
                    enum CodingKeys: String, CodingKey {
                        case path, sha256, confirmed
                        case recomputed = "sha256_recomputed"
                    }
                }
                var shoot: String
                var confirmedCount: Int
                var files: [File]
                enum CodingKeys: String, CodingKey {
                    case shoot, files
                    case confirmedCount = "confirmed_files"
                }
            }
            let receipt = try JSONDecoder().decode(
                Receipt.self, from: Data(contentsOf: URL(fileURLWithPath: card + "/rushes-receipt.json")))
            #expect(receipt.shoot == "S" && receipt.confirmedCount == 1)
            #expect(receipt.files.map(\.path) == ["not-media.mp4", "picture.png"])
            #expect(receipt.files.map(\.confirmed) == [false, true])
            for file in receipt.files {
                #expect(try Files.sha256(of: .reading(card + "/" + file.path)).rawValue == file.sha256)
                #expect(file.recomputed == (file.confirmed ? file.sha256 : nil))
            }

            // Bytes that are others by now, taken once more: the list before is what they differ from.
            try FileManager.default.removeItem(atPath: card + "/picture.png")
            try FileManager.default.copyItem(
                atPath: Programs.fixtures + "/exif-orientation-6.jpg", toPath: card + "/picture.png")
            #expect(try Programs.run(["ingest", card + "/picture.png", "--shoot", "S"], home).status == 0)
            let differs = try Programs.run(["mhl", "S", card], home)
            #expect(differs.status == 3)
            #expect(differs.output == "picture.png: differs from the earlier list\n", "\(differs.output)")
        }
    }
}
