import Files
import Foundation
import Testing
import Vocabulary

@testable import rushes

@Suite struct ArgumentsTests {
    private static let size = Verb.Option("--size", "N", "the size")
    private static let verb = Verb(
        "paint", operands: "IN OUT", operandCount: 1...2, summary: "paint", options: [size, .json, .memory]
    ) { _ in .done }

    private func parse(_ words: String...) throws(Failure) -> Arguments {
        try Arguments(words.map { RawPath($0) }, for: Self.verb)
    }

    @Test func optionsMayStandAnywhereAndTakeTheirValueEitherWay() throws {
        for words in [["a", "--size", "7", "b", "--json"], ["--json", "--size=7", "a", "b"]] {
            let arguments = try Arguments(words.map { RawPath($0) }, for: Self.verb)
            #expect(arguments.operands == ["a", "b"])
            #expect(arguments.has(.json))
            #expect(try arguments.integer(Self.size, in: 1...10) == 7)
        }
    }

    @Test func aNameThatIsNotUTF8StaysWhatItIs() throws {
        let odd = RawPath([0x61, 0xFF, 0x2E])
        #expect(try Arguments([odd, "--json"], for: Self.verb).paths == [odd])
    }

    @Test func theValueOfAnOptionIsTextAndIsNotRepaired() throws {
        for words in [["--size=\u{7F}"], ["--size", "\u{7F}"]] {
            let raw = words.map { RawPath(Array($0.utf8).map { $0 == 0x7F ? 0xFF : $0 }) }
            let failure = #expect(throws: Failure.self) { try Arguments(["a"] + raw, for: Self.verb) }
            #expect(failure?.message.hasPrefix("--size takes UTF-8") == true)
        }
    }

    @Test func theSourceIsKnownByItsBytesAndATargetHasToBeText() throws {
        let folder = NSTemporaryDirectory() + "/rushes-output-" + UUID().uuidString
        try Files.makeFolder(folder)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let source = RawPath(folder).appending([0x61, 0xFF] + Array(".jpg".utf8))
        let target = RawPath(folder + "/out.jpg")
        try OutputPath.check(target, source: source)
        try Files.write([1], to: target.description)
        try OutputPath.check(target, source: source)
        let linked = link(target.description, source.bytes.map { CChar(bitPattern: $0) } + [0])
        #expect(linked == 0)
        let itself = #expect(throws: Failure.self) { try OutputPath.check(target, source: source) }
        #expect(itself?.code == .usage && itself?.message.contains("source itself") == true)
        let repaired = RawPath(folder).appending([0x62, 0xFF])
        let noText = #expect(throws: Failure.self) { try OutputPath.check(repaired, source: target) }
        #expect(noText?.code == .usage && noText?.message.contains("UTF-8") == true)
    }

    @Test func afterTwoDashesEverythingIsAName() throws {
        let arguments = try parse("--", "--json", "-")
        #expect(arguments.operands == ["--json", "-"])
        #expect(!arguments.has(.json))
    }

    @Test(
        "each mistake has its sentence",
        arguments: [
            (["a", "--colour"], "rushes paint has no option --colour"),
            (["a", "-x"], "rushes paint has no option -x"),
            (["a", "--json", "--json"], "--json is given twice"),
            (["a", "--size=1", "--size", "1"], "--size is given twice"),
            (["a", "--json=yes"], "--json takes no value"),
            (["a", "--size"], "--size needs a value"),
            ([], "rushes paint needs IN OUT"),
            (["a", "b", "c"], "rushes paint takes only IN OUT"),
        ])
    func mistake(_ words: [String], _ sentence: String) {
        let failure = #expect(throws: Failure.self) { try Arguments(words.map { RawPath($0) }, for: Self.verb) }
        #expect(failure?.code == .usage)
        #expect(failure?.message == "\(sentence); rushes help paint shows what it takes.")
    }

    @Test(
        "bytes take K, M and G",
        arguments: [
            ("100", 100), ("1K", 1024), ("64M", 64 << 20), ("2g", 2 << 30), ("", nil), ("M", nil), ("-1", nil),
            ("1.5G", nil),
            ("1T", nil), ("9999999999999G", nil), ("3G", nil),
        ])
    func bytes(_ text: String, _ expected: Int?) throws {
        let arguments = try parse("a", "--memory=\(text)")
        #expect((try? arguments.bytes(.memory, in: 0...(2 << 30))) == expected)
    }

    @Test func everyVerbHasAHelpTextThatFitsATerminal() {
        for verb in Verb.all {
            for line in Help.of(verb).split(separator: "\n") { #expect(line.count <= 100, "\(verb.name): \(line)") }
        }
    }

    @Test func controlCharactersAreShownAndNotSent() {
        #expect(Output.printable("two\nlines\u{1B}[2J\u{202E}") == #"two\nlines\u{1B}[2J\u{202E}"#)
        #expect(Output.printable("clip 🎬 👩‍🚀 été") == "clip 🎬 👩‍🚀 été")
    }

    @Test(arguments: [
        ("clip.mp4", 8), ("été", 3), ("e\u{301}te\u{301}", 3), ("東京.mp4", 8), ("한글", 4), ("🎬", 2), ("👩‍🚀", 2),
        ("☀\u{FE0F}", 2),
        ("ﾊﾝｶｸ", 4),
    ])
    func columnsAreWhatATerminalShows(text: String, columns: Int) {
        #expect(Columns.count(text) == columns)
        #expect(Columns.prefix(text + text, columns) == text && Columns.suffix(text + text, columns) == text)
    }

    @Test func theBarShowsHowFarAndHowLong() {
        let half = ProgressLine.bar("a.mov", MediaProgress(fraction: 0.5, frames: 50), elapsed: .seconds(61))
        #expect(half == "a.mov ████████████░░░░░░░░░░░░ 50 %, 50 frames, 1:01 left")
    }

    @Test func thumbnailSizesComeFromTheVariableOrTheFile() throws {
        func sizes(_ variable: String?, file: String? = nil) throws(Failure) -> [Int] {
            try Configuration(environment: ["HOME": "/h", "RUSHES_THUMBNAIL_SIZES": variable ?? ""]) { _ in
                file.map { Data($0.utf8) }
            }.thumbnailSizes
        }
        #expect(try sizes(nil) == [2048, 512, 256])
        #expect(try sizes("1600, 300") == [1600, 300])
        #expect(try sizes(nil, file: "{thumbnail_sizes: [1024]}") == [1024])
        #expect(try sizes("640", file: "{thumbnail_sizes: [1024]}") == [640])
        for wrong in ["big", "512,512", "512,", "8", "20000", "16,17,18,19,20,21,22,23,24"] {
            let failure = #expect(throws: Failure.self) { try sizes(wrong) }
            #expect(failure?.code == .usage)
        }
    }
}
