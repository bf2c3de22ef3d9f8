import Files
import Foundation
import Glibc
import Testing

@Suite struct CommandLineTests {
    private let fixtures = CommandLineRun.fixtures

    @Test func bareRushesAndHelpShowTheVerbs() throws {
        let bare = try CommandLineRun.run()
        #expect(bare.status == 0)
        #expect(bare.output.contains("transcode"))
        #expect(try CommandLineRun.run("help").output == bare.output)
        #expect(try CommandLineRun.run("probe", "--help").output == CommandLineRun.run("help", "probe").output)
        #expect(try CommandLineRun.run("--version").output.hasPrefix("rushes "))
    }

    @Test(
        "a wrong command line is one sentence and exit 2",
        arguments: [
            ["fly"], ["help", "fly"], ["probe"], ["probe", "--fly", "a"], ["thumb", "a"],
            ["thumb", "--size", "0", "a", "b"],
            ["transcode", "a", "b", "c"], ["transcode", "--preset", "placebo2", "a", "b"],
            ["transcode", "--crf", "52", "a", "b"],
            ["transcode", "--chapters", "a", "b"], ["probe", "--memory", "lots", "a"],
        ])
    func usage(_ words: [String]) throws {
        let ended = try CommandLineRun.Running(words, in: "/", worker: nil).wait()
        #expect(ended.status == 2)
        #expect(ended.output.isEmpty)
        #expect(ended.errors.hasPrefix("rushes: ") && ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
    }

    @Test func aFileThatIsMediaIsAccepted() throws {
        let ended = try CommandLineRun.run("probe", "--json", fixtures + "/conforming.mp4")
        #expect(ended.status == 0)
        #expect(ended.object?["outcome"] as? String == "accept")
        #expect(ended.errors.isEmpty)
    }

    @Test func aFileThatIsNotIsRejectedWithItsReason() throws {
        for (name, code) in [
            ("zero-bytes.mp4", "empty"), ("not-media.mp4", "not-media"), ("truncated-recording.mov", "truncated"),
        ] {
            let ended = try CommandLineRun.run("probe", "--json", fixtures + "/" + name)
            #expect(ended.status == 4)
            #expect(ended.reason == code)
        }
    }

    @Test func aMissingPathIsOneSentenceAndExit1() throws {
        let ended = try CommandLineRun.run("probe", "/nonexistent/clip.mov")
        #expect(ended.status == 1)
        #expect(ended.output.isEmpty)
        #expect(ended.errors == "rushes: “/nonexistent/clip.mov” does not exist.\n")
    }

    @Test func aFolderGivesOneLineAFileInOrderAndExit3() throws {
        let ended = try CommandLineRun.run("probe", "--json", fixtures)
        #expect(ended.status == 3)
        let names = try ended.lines.map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object?["file"] as? String)
        }
        #expect(names.contains(fixtures + "/two\nlines.mp4"))
        #expect(names.contains(fixtures + "/DCIM/100RUSH/RUSH0001.JPG"))
        #expect(!names.contains(fixtures + "/.DS_Store"))
        #expect(names == names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
    }

    @Test func aMissingOneOfSeveralDoesNotStopTheOthers() throws {
        let ended = try CommandLineRun.run("probe", "--json", "/nonexistent", fixtures + "/conforming.mp4")
        #expect(ended.status == 3)
        #expect(ended.lines.count == 2)
        #expect(ended.lines.first?.contains("source-missing") == true)
    }

    @Test func textForPeopleIsOneLineEvenForANameOfTwo() throws {
        let ended = try CommandLineRun.run("probe", fixtures + "/two\nlines.mp4")
        #expect(ended.lines.count == 1)
        #expect(ended.output.contains(#"two\nlines.mp4: video"#))
    }

    @Test func aThumbnailIsMadeWholeAtItsPath() throws {
        let folder = try Bench.makeFolder()
        let ended = try CommandLineRun.run(
            "thumb", "--json", "--size", "64", fixtures + "/exif-orientation-6.jpg", "out.jpg", in: folder)
        #expect(ended.status == 0)
        #expect(ended.object?["height"] as? Int == 64)
        let mode = try FileManager.default.attributesOfItem(atPath: folder + "/out.jpg")[.posixPermissions] as? Int
        #expect(mode.map { $0 & 0o400 } == 0o400 && mode.map { $0 & 0o111 } == 0)
        #expect(try Files.names(in: folder) == ["out.jpg"])
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test func aRejectedFileLeavesNoThumbnailAndSaysWhyAsJSON() throws {
        let folder = try Bench.makeFolder()
        let ended = try CommandLineRun.run("thumb", fixtures + "/zero-bytes.mp4", folder + "/out.jpg")
        #expect(ended.status == 4)
        #expect(ended.reason == "empty")
        #expect(try Files.names(in: folder).isEmpty)
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test func aVideoAndItsPosterAppearTogether() throws {
        let folder = try Bench.makeFolder()
        let ended = try CommandLineRun.run(
            "transcode", "--json", "--preset", "ultrafast", "--poster", "p.jpg", fixtures + "/hlg-10-bit.mov",
            "out.mp4", in: folder)
        #expect(ended.status == 0)
        #expect(ended.object?["outcome"] as? String == "encoded")
        #expect(try Files.names(in: folder) == ["out.mp4", "p.jpg"])
        let again = try CommandLineRun.run("transcode", "--json", "out.mp4", "copy.mp4", in: folder)
        #expect(again.object?["outcome"] as? String == "remuxed")
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test func aPictureAndASoundHaveNoVideo() throws {
        for name in ["picture.png", "recorder.wav"] {
            let ended = try CommandLineRun.run("transcode", "--json", fixtures + "/" + name, "/tmp/never-written.mp4")
            #expect(ended.status == 4)
            #expect(ended.reason == "no-video")
        }
        #expect(try Files.facts("/tmp/never-written.mp4") == nil)
    }

    @Test func theSourceIsNeverReplaced() throws {
        let folder = try Bench.makeFolder()
        try FileManager.default.copyItem(atPath: fixtures + "/picture.png", toPath: folder + "/a.png")
        try FileManager.default.createSymbolicLink(atPath: folder + "/b.jpg", withDestinationPath: "a.png")
        let before = try Data(contentsOf: URL(fileURLWithPath: folder + "/a.png"))
        for target in ["a.png", "./a.png", "b.jpg"] {
            #expect(try CommandLineRun.run("thumb", "a.png", target, in: folder).status == 2)
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder + "/a.png")) == before)
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test func anInterruptLeavesNothingBehind() throws {
        let folder = try Bench.makeFolder()
        try Files.write([1], to: folder + "/gets on and hangs")
        let running = try CommandLineRun.Running(
            ["transcode", "gets on and hangs", "out.mp4"], in: folder, worker: "rogue-media")
        running.awaitWords()
        running.send(SIGINT)
        let ended = running.wait()
        #expect(ended.status == 1 && !ended.isSignal)
        #expect(ended.errors.hasSuffix("rushes: Stopped.\n"))
        #expect(try Files.names(in: folder) == ["gets on and hangs"])
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test func theMediaProcessDiesWithRushes() throws {
        let folder = try Bench.makeFolder()
        try Files.write([1], to: folder + "/gets on and hangs")
        let running = try CommandLineRun.Running(
            ["transcode", "gets on and hangs", "out.mp4"], in: folder, worker: "rogue-media")
        running.awaitWords()
        let worker = try #require(try running.children().first)
        running.send(SIGKILL)
        #expect(running.wait().isSignal)
        // It is nobody's child of ours, so its end cannot be awaited; it is looked for, for at most ten seconds.
        var isAlive = true
        for _ in 0..<1000 where isAlive {
            let status = try? String(contentsOfFile: "/proc/\(worker)/stat", encoding: .utf8)
            isAlive = status.map { !$0.contains(") Z ") } ?? false
            if isAlive { usleep(10_000) }
        }
        #expect(!isAlive)
        // What it left half written goes with the next try at the same output, and nothing else does.
        #expect(try Files.names(in: folder).count == 2)
        try Files.write([1], to: folder + "/.rushes-tmp-of-another")
        try Files.write([1], to: folder + "/fails")
        let again = try CommandLineRun.Running(
            ["transcode", "gets on and hangs", "out.mp4"], in: folder, worker: "rogue-media")
        again.awaitWords()
        // A third one meanwhile leaves the second one's alone.
        #expect(
            try CommandLineRun.run("transcode", "fails", "out.mp4", in: folder, worker: "rogue-media").status == 1)
        #expect(try Files.names(in: folder).count == 4)
        again.send(SIGINT)
        _ = again.wait()
        #expect(try Files.names(in: folder) == [".rushes-tmp-of-another", "fails", "gets on and hangs"])
        try FileManager.default.removeItem(atPath: folder)
    }

    @Test func aFolderThatCannotBeWrittenIsSaidSo() throws {
        let ended = try CommandLineRun.run("thumb", fixtures + "/picture.png", "/proc/out.jpg")
        #expect(ended.status == 1)
        #expect(
            ended.errors
                == "rushes: Nothing can be written in “/proc”: choose another folder or change its permissions.\n")
    }

    @Test func aWorkerThatDiesIsOneSentenceAndExit1() throws {
        let folder = try Bench.makeFolder()
        try Files.write([1], to: folder + "/talks and dies")
        let ended = try CommandLineRun.run("probe", "--json", "talks and dies", in: folder, worker: "rogue-media")
        #expect(ended.status == 1)
        #expect(ended.object?["code"] as? String == "media-crashed")
        let sentence = "The media process died while it worked on “talks and dies”; it can be tried again."
        #expect(ended.errors == "rushes: \(sentence)\n")
        try FileManager.default.removeItem(atPath: folder)
    }
}
