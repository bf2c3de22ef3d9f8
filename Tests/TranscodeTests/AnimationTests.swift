import FFmpeg
import Foundation
import Testing
import Vocabulary

@testable import Thumbs
@testable import Transcode

@Suite struct AnimationTests {
    private static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appending(path: "../../fixtures/animations").standardizedFileURL
    static let fixtures = ["gif", "png", "webp", "avif"].map { folder.appending(path: "moving.\($0)").path }
    /// Real ones, where the corpus is at hand.
    static let corpus = {
        let shared = ProcessInfo.processInfo.environment["RUSHES_SHARED"] ?? "../shared"
        let paths = ["gif", "webp", "avif"].map { "\(shared)/media/animated.\($0)" }
        let present = paths.filter { FileManager.default.fileExists(atPath: $0) }
        if present.isEmpty { print("ANIMATIONS OF THE CORPUS SKIPPED: set RUSHES_SHARED to the folder that has it") }
        return present
    }()

    private func format(_ descriptor: Int32) throws -> MediaFormat {
        try #require(MediaFormat.sniff(SourceBytes(descriptor).read(at: 0, count: MediaFormat.headLength)))
    }
    private func transcode(_ path: String, _ sink: MemorySink, _ change: (inout [UInt8]) -> Void = { _ in }) throws
        -> (ProbeReport, TranscodeReport)
    {
        var bytes = Array(try Data(contentsOf: URL(fileURLWithPath: path)))
        change(&bytes)
        return try TemporaryFile(bytes).use { input in
            let format = try format(input), limits = MediaLimits()
            let probe = try PhotoProbe.probe(input, format: format, file: path, limits: limits)
            let animation = try #require(try Animation.open(input, format: format, limits: limits))
            let settings = TranscodeSettings(outputs: [.rendition1080, .poster], preset: "ultrafast")
            let report = try Transcode.run(
                animation: animation.source, header: animation.header, settings: settings, limits: limits, sink: sink)
            return (probe, report)
        }
    }

    @Test(arguments: fixtures + corpus)
    func anAnimationBecomesASilentVideoOfItsFramesAndLength(_ path: String) throws {
        let sink = MemorySink()
        let (probe, report) = try transcode(path, sink)
        let facts = try #require(probe.facts), seconds = try #require(facts.duration)
        #expect(facts.kind == .animation && report.outcome == .encoded && report.warnings.isEmpty)
        let read = try ReadVideo(sink.file(.rendition1080))
        #expect(read.audio == nil && read.pictures.count == facts.frames)
        #expect(abs(read.duration - seconds) <= 0.05 * seconds)
        #expect(sink.sealed[.poster] != nil)
    }

    @Test func picturesStandAsLongAsTheirDelaysSay() throws {
        let sink = MemorySink()
        _ = try transcode(Self.fixtures[0], sink)
        let times = try ReadVideo(sink.file(.rendition1080)).pictures.map(\.time)
        // Of twelve pictures every fourth stands 0.2 s, the others 0.12 s.
        for number in 0..<12 {
            #expect(abs(times[number] - (0.12 * Double(number) + 0.08 * Double(number / 4))) < 0.002)
        }
    }

    /// The place of the time in a frame's header, and its bytes.
    @Test(arguments: [(1, "fcTL", 24, [0, 0, 0, 100]), (2, "ANMF", 20, [0, 0, 0]), (2, "ANMF", 20, [5, 0, 0])])
    func picturesWithoutATimeStandForATenthOfASecond(_ fixture: Int, _ header: String, _ place: Int, _ time: [UInt8])
        throws
    {
        let sink = MemorySink()
        let (probe, report) = try transcode(Self.fixtures[fixture], sink) { bytes in
            let name = Array(header.utf8)
            for at in bytes.indices.dropLast(place + 4) where bytes[at] == name[0] {
                guard bytes[at..<(at + 4)].elementsEqual(name) else { continue }
                bytes.replaceSubrange((at + place)..<(at + place + time.count), with: time)
            }
        }
        let facts = try #require(probe.facts), frames = try #require(facts.frames)
        #expect(frames > 2 && abs((facts.duration ?? 0) - 0.1 * Double(frames)) < 0.001)
        #expect(report.frames == frames)
        let times = try ReadVideo(sink.file(.rendition1080)).pictures.map(\.time)
        for (number, time) in times.enumerated() { #expect(abs(time - 0.1 * Double(number)) < 0.002) }
    }

    /// As AVIF sequences have it: the right half of every picture shines through.
    @Test func theTrackOfTransparencyIsLaidOverThePictures() throws {
        let mask = "color=white:size=160x120:rate=10:duration=1,drawbox=x=80:w=80:h=120:color=black:t=fill"
        let made = try TemporaryFile.made(
            by: ["-f", "lavfi", "-i", "color=magenta:size=160x120:rate=10:duration=1", "-f", "lavfi", "-i", mask]
                + ["-map", "0", "-map", "1", "-c:v", "libx264", "-pix_fmt", "yuv420p"], ending: "mp4")
        let auxiliary = UInt32(bigEndian: Array("auxv".utf8).withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
        let file = try made.with(auxiliary, at: 12, from: "hdlr", occurrence: 1)
        try file.use { descriptor in
            let reader = try SequenceReader(descriptor, limits: MediaLimits())
            var count = 0
            while let picture = try reader.next() {
                let row = Array(picture.image.pixels[(60 * 160 * 4)..<(61 * 160 * 4)])
                #expect(picture.image.hasAlpha && row[20 * 4 + 3] > 250 && row[140 * 4 + 3] < 5)
                #expect(row[20 * 4] > 230 && row[20 * 4 + 1] < 20)
                count += 1
            }
            #expect(count == 10)
        }
    }

    @Test func aPictureThatDoesNotMoveIsNoAnimation() throws {
        let still = try #require(try? Data(contentsOf: Self.folder.appending(path: "../shoot/picture.png")))
        let file = try TemporaryFile(Array(still))
        let opened = try file.use { try Animation.open($0, format: .png, limits: MediaLimits()) }
        #expect(opened == nil)
    }
}
