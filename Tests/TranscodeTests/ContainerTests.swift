import FFmpeg
import Foundation
import Testing
import Vocabulary

@testable import Transcode

/// What only the container says of pictures and sound.
@Suite struct ContainerTests {
    private static let picture = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=1"]

    private func made(from file: TemporaryFile) throws -> (report: TranscodeReport, output: TemporaryFile) {
        let sink = MemorySink()
        let settings = TranscodeSettings(outputs: [.rendition1080], preset: "ultrafast", threads: 1)
        let report = try file.use {
            try Transcode.run($0, file: "clip", settings: settings, limits: MediaLimits(), sink: sink)
        }
        return (report, try sink.file(.rendition1080))
    }

    /// How often each channel's sound crosses zero upwards in its middle half second, as a frequency.
    private func frequencies(_ file: TemporaryFile) throws -> [Double] {
        try ReadSound(file).channels.map { samples in
            let middle = samples[(samples.count / 4)..<(samples.count * 3 / 4)].map { abs($0) < 0.01 ? 0 : $0 }
            let rises = zip(middle, middle.dropFirst()).count { $0 <= 0 && $1 > 0 }
            return Double(rises) / (Double(middle.count) / 48_000)
        }
    }

    private func recording(tones: [Int], codec: String, ending: String, _ more: [String] = []) throws -> TemporaryFile {
        let sounds = tones.flatMap { ["-f", "lavfi", "-i", "sine=frequency=\($0):sample_rate=48000:duration=1"] }
        let maps = (0...tones.count).flatMap { ["-map", "\($0)"] }
        let coded = ["-c:v", "mpeg2video", "-c:a", codec, "-ac", "1"]
        return try TemporaryFile.made(by: Self.picture + sounds + maps + coded + more, ending: ending)
    }

    @Test(arguments: [("pcm_s16le", "mov"), ("pcm_s24le", "mov"), ("pcm_s16le", "mxf"), ("pcm_s16le", "mkv")])
    func uncompressedTracksOfOneChannelAreLeftAndRight(_ codec: String, _ ending: String) throws {
        let (report, output) = try made(from: recording(tones: [400, 1000, 3000, 4000], codec: codec, ending: ending))
        #expect(report.outcome == .encoded && report.warnings.isEmpty)
        let found = try frequencies(output)
        #expect(found.count == 2)
        #expect(zip(found, [400.0, 1000]).allSatisfy { abs($0 - $1) < 30 }, "\(found)")
        let sound = try #require(try ReadVideo(output).audio)
        #expect(abs(sound.timeBase.seconds(sound.duration ?? 0) - 1) < 0.05)
    }

    /// Left is 400 Hz, right 1000, centre 3000.
    @Test(arguments: [["FR", "FL"], ["FL", "FC", "FR"], ["FC", "FL", "FR"], ["FC", "FR", "FL"]])
    func channelsThatAreNamedLeftAndRightAreSoWhereverTheyStand(_ channels: [String]) throws {
        let tones = ["FL": 400, "FR": 1000, "FC": 3000]
        let sounds = channels.flatMap {
            ["-f", "lavfi", "-i", "sine=frequency=\(tones[$0] ?? 0):sample_rate=48000:duration=1"]
        }
        let named = channels.enumerated().map { "[\($0 + 1)]channelmap=0-\($1):channel_layout=\($1)[\($1)]" }
        let maps = ["-map", "0"] + channels.flatMap { ["-map", "[\($0)]"] }
        let coded = ["-c:v", "mpeg2video", "-c:a", "pcm_s16le"]
        let file = try TemporaryFile.made(
            by: Self.picture + sounds + ["-filter_complex", named.joined(separator: ";")] + maps + coded, ending: "mov")
        let found = try frequencies(made(from: file).output)
        #expect(found.count == 2 && zip(found, [400.0, 1000]).allSatisfy { abs($0 - $1) < 30 }, "\(found)")
    }

    @Test func compressedTracksOfOneChannelAreAChoice() throws {
        let found = try frequencies(made(from: recording(tones: [400, 1000], codec: "aac", ending: "mov")).output)
        #expect(found.count == 1 && abs((found.first ?? 0) - 400) < 30, "\(found)")
    }

    @Test func tracksInTwoLanguagesAreAChoice() throws {
        let languages = ["-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=fra"]
        let file = try recording(tones: [400, 1000], codec: "pcm_s16le", ending: "mov", languages)
        #expect(try frequencies(made(from: file).output).count == 1)
    }

    @Test(arguments: [("mjpeg", "mov"), ("ffv1", "mkv"), ("huffyuv", "mkv")])
    func picturesThatOnlyTheirContainerCallsInterlacedAreDeinterlaced(_ codec: String, _ ending: String) throws {
        for order in ["tt", "bb"] {
            var arguments = ["-c:v", codec, "-pix_fmt", codec == "mjpeg" ? "yuvj422p" : "yuv422p"]
            // The first version of FFV1 knows nothing of fields, and its decoder asks the container itself.
            if codec == "ffv1" { arguments += ["-level", "3"] }
            let file = try TemporaryFile.made(
                by: Self.picture + arguments + ["-field_order", order], ending: ending)
            let outcome = try file.use { try Survey.make($0, limits: MediaLimits()) }
            guard case .surveyed(let survey) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            let video = try #require(survey.video)
            #expect(video.isInterlaced && video.fieldOrder == (order == "tt" ? .topFirst : .bottomFirst))
            let chain = PictureChain(video, size: (160, 120), target: .video, fieldsBecomeFrames: true)
            #expect(chain.description.contains("parity=\(order == "tt" ? "tff" : "bff")"))
        }
    }

    @Test func picturesWithDecodingTimesAloneAreAllCounted() throws {
        let arguments = ["-f", "lavfi", "-i", "testsrc2=size=720x576:rate=25:duration=1", "-c:v", "mpeg2video"]
        let file = try TemporaryFile.made(by: arguments, ending: "gxf")
        let facts = try file.use { try VideoProbe.probe($0, file: "a.gxf", limits: MediaLimits()).facts }
        #expect(facts?.frames == 25)
        #expect(try made(from: file).report.frames == 25)
    }
}

@Suite struct StereoJoinTests {
    private struct Joined: Equatable {
        var left: [Float]
        var right: [Float]
        var pts: Int64?
    }

    private func take(_ join: StereoJoin, _ value: Float, count: Int = 4, isRight: Bool) throws -> Joined? {
        let frame = try Frame.allocate(samples: count, channels: 1, sampleRate: 48_000)
        frame.withPlane(0) { first, _ in
            first.withMemoryRebound(to: Float.self, capacity: count) { $0.update(repeating: value, count: count) }
        }
        guard let joined = try join.take(frame, isRight: isRight) else { return nil }
        return values(joined)
    }
    private func rest(_ join: StereoJoin) throws -> Joined? {
        guard let joined = try join.rest() else { return nil }
        return values(joined)
    }
    private func values(_ frame: borrowing Frame) -> Joined {
        let count = frame.samples
        let channels = (0..<2).map { channel in
            frame.withPlane(channel) { first, _ in
                first.withMemoryRebound(to: Float.self, capacity: count) {
                    Array(UnsafeBufferPointer(start: $0, count: count))
                }
            } ?? []
        }
        return Joined(left: channels[0], right: channels[1], pts: frame.pts)
    }
    private func four(_ value: Float) -> [Float] { [value, value, value, value] }

    @Test func framesOfTheSameNumberMeetWhicheverTrackComesFirst() throws {
        let join = StereoJoin(sampleRate: 48_000)
        #expect(try take(join, 0.5, isRight: false) == nil)
        #expect(try take(join, 0.25, isRight: true) == Joined(left: four(0.5), right: four(0.25), pts: 0))
        #expect(try take(join, 0.5, isRight: true) == nil)
        #expect(try take(join, 0.25, isRight: false) == Joined(left: four(0.25), right: four(0.5), pts: 4))
    }

    @Test func theShorterTrackEndsInSilence() throws {
        let join = StereoJoin(sampleRate: 48_000)
        #expect(try take(join, 0.5, isRight: true) == nil)
        #expect(try take(join, 0.75, isRight: true) == nil)
        let joined = try take(join, 0.25, count: 2, isRight: false)
        #expect(joined == Joined(left: [0.25, 0.25, 0, 0], right: four(0.5), pts: 0))
        #expect(try rest(join) == Joined(left: four(0), right: four(0.75), pts: 4))
        #expect(try rest(join) == nil)
    }

    @Test func aTrackThatComesTooLateIsSilentThereAndInStepAfterwards() throws {
        let join = StereoJoin(sampleRate: 48_000)
        var silent = 0
        for _ in 0..<(StereoJoin.aheadMax + 2) {
            guard let joined = try take(join, 0.5, isRight: false) else { continue }
            #expect(joined.right == four(0))
            silent += 1
        }
        #expect(silent == 2)
        for _ in 0..<2 { #expect(try take(join, 0.25, isRight: true) == nil) }
        #expect(try take(join, 0.75, isRight: true) == Joined(left: four(0.5), right: four(0.75), pts: 8))
    }
}
