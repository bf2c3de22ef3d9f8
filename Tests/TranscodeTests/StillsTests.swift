import FFmpeg
import Foundation
import Testing
import Vocabulary

@testable import Transcode

@Suite struct StoryboardPlanTests {
    @Test(arguments: [(0.4, 1, 0.4), (10.0, 10, 1.0), (99.5, 100, 0.995), (3600.0, 100, 36.0)])
    func aTileStandsForASecondUntilThereWouldBeTooMany(_ duration: Double, _ tiles: Int, _ interval: Double) {
        let plan = StoryboardPlan(duration: duration, display: (1920, 1080))
        #expect(plan.tileCount == tiles && abs(plan.interval - interval) < 1e-9)
        #expect(plan.tileWidth == 160 && plan.tileHeight == 90)
    }

    @Test func tilesStandInRowsOfTenAndTheLastRowMayBeShort() {
        let plan = StoryboardPlan(duration: 12, display: (1080, 1920))
        #expect(plan.place(of: 11).x == 90 && plan.place(of: 11).y == 160)
        #expect(plan.size(for: 12) == (900, 320) && plan.size(for: 3) == (270, 160))
    }

    @Test func theIndexNamesAPartOfThePictureForEveryStretch() {
        let plan = StoryboardPlan(duration: 2, display: (320, 180))
        #expect(
            plan.index(count: 2, end: 2.5, link: "a%20b.jpg") == """
                WEBVTT

                00:00:00.000 --> 00:00:01.000
                a%20b.jpg#xywh=0,0,160,90

                00:00:01.000 --> 00:00:02.500
                a%20b.jpg#xywh=160,0,160,90

                """)
    }
}

@Suite struct PosterSharpnessTests {
    @Test func aSharpPictureComesBeforeABlurredOneInABetterPlace() {
        let sharp = PosterPolicy.Look(mean: 110, deviation: 40, sharpness: 0.1)
        let blurred = PosterPolicy.Look(mean: 110, deviation: 40, sharpness: 0.005)
        #expect(PosterPolicy.score(sharp, place: 0.6) > PosterPolicy.score(blurred, place: 0.1))
    }
    @Test func aBlackPictureIsTheLastChoice() {
        let black = PosterPolicy.Look(mean: 16, deviation: 1, sharpness: 1)
        let dull = PosterPolicy.Look(mean: 60, deviation: 14, sharpness: 0.01)
        #expect(PosterPolicy.score(dull, place: 1) > PosterPolicy.score(black, place: 0.1))
    }
}

@Suite struct ThreadPlanTests {
    @Test(arguments: [(1, 1, 1), (2, 1, 2), (8, 4, 8), (64, 8, 16)])
    func decodingGetsHalfOfTheCores(_ cores: Int, _ decoder: Int, _ encoder: Int) {
        let plan = ThreadPlan(requested: 0, cores: cores)
        #expect(plan.decoder == decoder && plan.encoder == encoder)
    }
}

@Suite struct SideOutputTests {
    /// Frame `n` of 25 a second is as bright as `GeneratedVideo.luma(n)` says.
    private let clip = GeneratedVideo(times: (0..<100).map { $0 * 40 }, soundLength: 4)
    private let stills: [OutputName] = [.poster, .storyboard, .storyboardIndex]

    private func run(_ file: TemporaryFile, _ sink: MemorySink, _ outputs: [OutputName]) throws -> TranscodeReport {
        let settings = TranscodeSettings(outputs: outputs, preset: "ultrafast", storyboardLink: "s.jpg", threads: 1)
        return try file.use {
            try Transcode.run($0, file: "clip", settings: settings, limits: MediaLimits(), sink: sink)
        }
    }
    private func image(_ sink: MemorySink, _ name: OutputName) throws -> RGBAImage {
        try sink.file(name).use { try PictureDecoder.decodeFirstFrame($0, pixelCountMax: 1 << 22) }
    }
    /// The brightness, 0 to 255, in the middle of a tile.
    private func brightness(_ board: RGBAImage, tile: Int) -> Int {
        Int(board.pixels[(45 * board.width + tile * 160 + 80) * 4])
    }
    private func expected(frame: Int) -> Int { Int((Double(GeneratedVideo.luma(frame) - 16) * 255 / 219).rounded()) }

    @Test func oneDecodeGivesRenditionsPosterStoryboardColourAndLoudness() throws {
        let sink = MemorySink()
        let outputs = [.rendition1080, .rendition480] + stills
        var large = clip
        (large.width, large.height) = (960, 540)
        let report = try run(large.make(), sink, outputs)
        #expect(report.outcome == .encoded && Set(sink.sealed.keys) == Set(outputs))
        let board = try image(sink, .storyboard)
        #expect(board.width == 640 && board.height == 90)
        for tile in 0..<4 {
            let shown = expected(frame: 12 + 25 * tile)
            #expect(abs(brightness(board, tile: tile) - shown) < 8, "tile \(tile)")
        }
        let text = String(decoding: try sink.file(.storyboardIndex).bytes, as: UTF8.self)
        #expect(text.hasPrefix("WEBVTT\n") && text.contains("s.jpg#xywh=480,0,160,90"))
        #expect(sink.sealed[.storyboardIndex]?.contentType == "text/vtt")
        // A tone of 440 Hz at 0.3 of full scale in both channels (ITU-R BS.1770).
        let loudness = try #require(report.loudness)
        #expect(abs(loudness.integrated + 11.2) < 0.7)
        let color = try #require(report.previewColor)
        #expect(color.count == 7 && color.hasPrefix("#") && color.dropFirst(1).prefix(2) == color.suffix(2))
    }

    @Test func theStillsOfAConformingVideoNeedNoEncoding() throws {
        let sink = MemorySink()
        let report = try run(clip.make(), sink, [.rendition1080] + stills)
        #expect(report.outcome == .remuxed && report.previewColor != nil && report.loudness == nil)
        // Its key frames are two seconds apart, its tiles one: it is short enough to be decoded whole.
        let board = try image(sink, .storyboard)
        for tile in 0..<4 { #expect(abs(brightness(board, tile: tile) - expected(frame: 12 + 25 * tile)) < 8) }
    }

    @Test func theStoryboardOfALongVideoShowsItsKeyFrames() throws {
        // 200 s at one picture a second, a key frame every two seconds: a tile every two seconds.
        var long = GeneratedVideo(width: 160, height: 90, times: (0..<200).map { $0 * 1000 })
        long.keyframeInterval = 2
        let sink = MemorySink()
        let report = try run(long.make(), sink, [.storyboard, .storyboardIndex])
        #expect(report.outcome == .encoded && Set(sink.sealed.keys) == [.storyboard, .storyboardIndex])
        let board = try image(sink, .storyboard)
        #expect(board.width == 1600 && board.height == 900)
        for tile in [0, 1, 5, 9] { #expect(abs(brightness(board, tile: tile) - expected(frame: 2 * tile)) < 8) }
    }

    @Test func aSafestAttemptShowsTheSamePictures() throws {
        let facts = VideoFacts.ordinary { $0.color.matrix = "smpte170m" }
        let chains = [false, true].map {
            PictureChain(facts, size: (320, 180), target: .video, fieldsBecomeFrames: true, isSafest: $0)
        }
        #expect(chains[0].description.contains("zscale") && !chains[1].description.contains("zscale"))
        let source = try Frame.allocate(width: 1920, height: 1080, format: .known("yuv420p"))
        for (plane, value) in [(0, 90), (1, 110), (2, 160)] {
            source.withPlane(plane) { first, stride in
                first.update(repeating: UInt8(value), count: stride * (plane == 0 ? 1080 : 540))
            }
        }
        var found: [[Int]] = []
        for chain in chains {
            let made = try Frame.allocate()
            try StillRenderer.filter(source, chain: chain.description, into: made)
            found.append(
                (0..<3).map { plane in made.withPlane(plane) { first, stride in Int(first[20 * stride + 20]) } ?? 0 })
        }
        for (left, right) in zip(found[0], found[1]) { #expect(abs(left - right) <= 2) }
        #expect(found[0] != [90, 110, 160], "the matrix is converted")
    }
}

@Suite struct OutputCheckTests {
    @Test(arguments: [
        OutputCheck.Expected(width: 322, height: 180, frames: 50, end: 2, isOurs: true),
        OutputCheck.Expected(width: 320, height: 180, frames: 49, end: 2, isOurs: true),
        OutputCheck.Expected(width: 320, height: 180, frames: 50, end: 3, isOurs: true),
        OutputCheck.Expected(width: 320, height: 180, frames: 50, end: 2, soundEnd: 2, isOurs: true),
    ])
    func whatIsNotAsMeantDoesNotCount(_ expected: OutputCheck.Expected) throws {
        let file = try GeneratedVideo().make()
        try file.use {
            try OutputCheck.verify(
                $0, OutputCheck.Expected(width: 320, height: 180, frames: 50, end: 2, isOurs: true))
        }
        #expect { try file.use { try OutputCheck.verify($0, expected) } } throws: {
            ($0 as? Failure)?.code == .outputInvalid
        }
    }

    @Test func soundThatEndsEarlyDoesNotCount() throws {
        let file = try GeneratedVideo(soundLength: 1).make()
        let good = OutputCheck.Expected(width: 320, height: 180, frames: 50, end: 2, soundEnd: 1, isOurs: true)
        try file.use { try OutputCheck.verify($0, good) }
        var bad = good
        bad.soundEnd = 2
        #expect { try file.use { try OutputCheck.verify($0, bad) } } throws: {
            ($0 as? Failure)?.code == .outputInvalid
        }
    }
}
