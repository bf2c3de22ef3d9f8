import FFmpeg
import Foundation
import Testing
import Vocabulary

@testable import Transcode

private func decode(_ file: TemporaryFile, pixelCountMax: Int = 1 << 20) throws -> RGBAImage {
    try file.use { try PictureDecoder.decodeFirstFrame($0, pixelCountMax: pixelCountMax) }
}

@Suite struct ProbeTests {
    private func probe(_ file: TemporaryFile, limits: MediaLimits = MediaLimits()) throws -> ProbeReport {
        try file.use { try VideoProbe.probe($0, file: "clip", limits: limits) }
    }

    @Test func aPlainRecordingIsItsOwnRendition() throws {
        let report = try probe(GeneratedVideo(soundLength: 2).make())
        let facts = try #require(report.facts)
        #expect(report.reason == nil && report.warnings.isEmpty)
        #expect(facts.kind == .video && facts.width == 320 && facts.height == 180 && facts.frames == 50)
        #expect(abs((facts.duration ?? 0) - 2) < 0.06 && facts.averageFPS == 25 && facts.hasVariableFrameRate == false)
        #expect(facts.audio.map(\.channels) == [2] && facts.delivery == .original && facts.rotationClockwise == 0)
    }

    @Test func aVariableRateIsSeen() throws {
        let times = (0..<40).map { Int64($0 * 30 + ($0 > 20 ? 90 : 0)) }
        #expect(try probe(GeneratedVideo(times: times).make()).facts?.hasVariableFrameRate == true)
    }

    @Test func anEmptyFileIsEmptyAndTextIsNotMedia() throws {
        #expect(try probe(TemporaryFile([])).reason?.code == .empty)
        #expect(
            try probe(TemporaryFile(Array(String(repeating: "call sheet\n", count: 200).utf8))).reason?.code
                == .notMedia)
    }

    @Test func aPlaylistIsNotFollowed() throws {
        let text = "#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\nhttp://127.0.0.1:1/x.ts\n#EXT-X-ENDLIST\n"
        #expect(try probe(TemporaryFile(Array(text.utf8))).reason?.code == .notMedia)
    }

    @Test func anIndexThatPointsPastTheEndIsTruncated() throws {
        let whole = try GeneratedVideo().make().bytes
        #expect(try probe(TemporaryFile(whole.dropLast(200))).reason?.code == .truncated)
        #expect(try probe(TemporaryFile(whole.dropLast(whole.count / 2))).reason?.code == .truncated)
    }

    @Test func aTailOfZerosIsTruncatedThoughTheLengthIsRight() throws {
        var bytes = try GeneratedVideo().make().bytes
        let hole = bytes.count * 3 / 4
        bytes.replaceSubrange(hole..., with: [UInt8](repeating: 0, count: bytes.count - hole))
        #expect(try probe(TemporaryFile(bytes)).reason?.code == .truncated)
    }

    @Test func moreThanTheBoundsAllowIsAVerdict() throws {
        let file = try GeneratedVideo().make()
        #expect(try probe(file, limits: MediaLimits(pixelCountMax: 1000)).reason?.code == .tooLarge)
        #expect(try probe(file, limits: MediaLimits(durationMax: 1)).reason?.code == .tooLong)
    }

    @Test func theDescriptorsPositionIsNotMoved() throws {
        let file = try GeneratedVideo().make()
        _ = file.use { lseek($0, 7, SEEK_SET) }
        _ = try probe(file)
        #expect(file.use { lseek($0, 0, SEEK_CUR) } == 7)
    }
}

@Suite struct TranscodeTests {
    private func run(
        _ file: TemporaryFile, _ sink: MemorySink, outputs: [OutputName] = [.rendition1080],
        limits: MediaLimits = MediaLimits()
    ) throws -> TranscodeReport {
        let settings = TranscodeSettings(outputs: outputs, preset: "ultrafast", threads: 1)
        return try file.use { try Transcode.run($0, file: "clip", settings: settings, limits: limits, sink: sink) }
    }
    /// Turns a conforming file into one that has to be encoded: a quarter turn clockwise in the track header.
    private func turned(_ file: TemporaryFile) throws -> TemporaryFile {
        var bytes = file.bytes
        let header = try #require(bytes.firstIndex(of: Array("tkhd".utf8)))
        let matrix: [Int32] = [0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30]
        let coded = matrix.flatMap { value in (0..<4).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
        bytes.replaceSubrange((header + 44)..<(header + 44 + 36), with: coded)
        return try TemporaryFile(bytes)
    }

    @Test func aConformingRecordingIsCopied() throws {
        let sink = MemorySink()
        let report = try run(GeneratedVideo(soundLength: 2).make(), sink)
        #expect(report.outcome == .remuxed && report.frames == 50)
        let read = try ReadVideo(sink.file(.rendition1080))
        #expect(read.pictures.count == 50 && read.pictures.first?.time == 0 && read.audio?.codec == "aac")
    }

    @Test func aTurnedRecordingComesOutUprightWithEveryFrameInItsPlace() throws {
        let sink = MemorySink()
        let report = try run(turned(GeneratedVideo(soundLength: 2, isSplit: true).make()), sink)
        #expect(report.outcome == .encoded && report.width == 180 && report.height == 320 && report.frames == 50)
        let read = try ReadVideo(sink.file(.rendition1080))
        #expect(read.video.displayMatrix == nil && read.video.width == 180 && read.video.height == 320)
        #expect(read.video.color == ColorTags(range: .limited, primaries: "bt709", transfer: "bt709", matrix: "bt709"))
        #expect(read.pictures.count == 50)
        // A turn clockwise brings the top to the right: the middle column is where the halves meet, so both its ends are alike.
        for (number, picture) in read.pictures.enumerated() {
            #expect(abs(picture.time - Double(number) * 0.04) < 0.001)
            #expect(abs(picture.top - picture.bottom) < 6)
        }
    }

    @Test func theTimesOfAVariableRateAreKept() throws {
        let times: [Int64] = [0, 33, 66, 200, 233, 400, 433, 466, 900, 933]
        let sink = MemorySink()
        let report = try run(turned(GeneratedVideo(times: times).make()), sink)
        let read = try ReadVideo(sink.file(.rendition1080))
        #expect(report.frames == times.count && read.pictures.count == times.count)
        for (picture, time) in zip(read.pictures, times) { #expect(abs(picture.time - Double(time) / 1000) < 0.0011) }
        for (number, picture) in read.pictures.enumerated() {
            #expect(abs(picture.top - GeneratedVideo.luma(number)) < 6)
        }
    }

    @Test func keyFramesStandEveryTwoSecondsAndTheIndexIsInFront() throws {
        let sink = MemorySink()
        _ = try run(turned(GeneratedVideo(times: (0..<260).map { $0 * 40 }).make()), sink)
        let file = try sink.file(.rendition1080)
        #expect(try file.use { try ISOBoxes.read(SourceBytes($0)) }.isFastStart)
        let keys = try ReadVideo(file).pictures.filter(\.isKey).map { ($0.time * 100).rounded() / 100 }
        #expect(keys == [0, 2, 4, 6, 8, 10])
    }

    @Test func everySecondFrameOfOneHundredAndTwentyGoes() throws {
        let sink = MemorySink()
        let report = try run(
            GeneratedVideo(times: (0..<120).map { Int64((Double($0) * 1000 / 120).rounded()) }).make(), sink)
        #expect(report.outcome == .encoded && report.frames == 60)
        #expect(abs((report.duration ?? 0) - 1) < 0.05)
    }

    @Test func picturesThatBeginLongAfterTheSoundAreMadeAndChecked() throws {
        let late = GeneratedVideo(times: (0..<50).map { 9000 + $0 * 40 }, soundLength: 11)
        let report = try run(turned(late.make()), MemorySink())
        #expect(report.outcome == .encoded && report.frames == 50)
    }

    @Test func soundIsAsLongAsItWas() throws {
        let sink = MemorySink()
        _ = try run(turned(GeneratedVideo(soundLength: 2).make()), sink)
        let audio = try #require(try ReadVideo(sink.file(.rendition1080)).audio)
        #expect(audio.codec == "aac" && audio.channels == 2 && audio.sampleRate == 48_000)
        #expect(abs(audio.timeBase.seconds(audio.duration ?? 0) - 2) < 0.05)
    }

    @Test func theRateOfTheSoundIsOneThatIsKnownEverywhere() throws {
        let file = try GeneratedVideo(soundLength: 1).make()
        var tracks = try file.use { TrackChoice(try Demuxer.open($0).streams) }
        tracks.audio?.channels = 8
        tracks.audio?.sampleRate = 96_000
        let plan = try #require(TranscodePlan.Sound(tracks))
        #expect(plan.channels == 2 && plan.sampleRate == 48_000)
        #expect(plan.chain(from: 480, .byName, channels: 8).contains("first_pts=480"))
    }

    @Test func aShortStretchOfSoundIsLengthenedBySilence() throws {
        let frame = try Frame.allocate(samples: 3, channels: 1, sampleRate: 48_000)
        frame.withPlane(0) { first, _ in
            first.withMemoryRebound(to: Float.self, capacity: 3) { $0.update(repeating: 0.5, count: 3) }
        }
        try frame.padWithSilence(to: 5)
        let samples = frame.withPlane(0) { first, _ in
            first.withMemoryRebound(to: Float.self, capacity: 5) { Array(UnsafeBufferPointer(start: $0, count: 5)) }
        }
        #expect(frame.samples == 5 && samples == [0.5, 0.5, 0.5, 0, 0])
    }

    @Test func aPosterIsNeitherBlackNorTurned() throws {
        let sink = MemorySink()
        _ = try run(
            turned(GeneratedVideo(isSplit: true, darkFrames: 20).make()), sink, outputs: [.rendition1080, .poster])
        #expect(sink.sealed[.poster]?.contentType == "image/jpeg")
        #expect(sink.sealed[.poster]?.width == 180 && sink.sealed[.poster]?.height == 320)
        let image = try decode(sink.file(.poster))
        let left = image.pixels[(160 * 180 + 40) * 4], right = image.pixels[(160 * 180 + 140) * 4]
        #expect(right > 50 && left < right)
    }

    @Test func withoutARenditionAmongTheOutputsNoVideoIsMade() throws {
        let sink = MemorySink()
        let report = try run(turned(GeneratedVideo().make()), sink, outputs: [.poster])
        #expect(report.reason == nil && sink.opened == [.poster] && sink.sealed[.poster] != nil)
    }

    @Test func smallerRenditionsComeFromTheSameDecode() throws {
        let sink = MemorySink()
        let names: [OutputName] = [.rendition1080, OutputName("720p"), OutputName("480p")]
        _ = try run(GeneratedVideo(width: 1920, height: 1080, times: [0, 40, 80]).make(), sink, outputs: names)
        #expect(names.map { sink.sealed[$0]?.height } == [1080, 720, 480])
        for name in names {
            let pictures = try ReadVideo(sink.file(name)).pictures
            #expect(pictures.map { Int(($0.time * 1000).rounded()) } == [0, 40, 80])
            for (number, picture) in pictures.enumerated() {
                #expect(abs(picture.top - GeneratedVideo.luma(number)) < 6)
            }
        }
    }

    @Test func onlyTheSmallerRenditionsFollowMotionLessClosely() throws {
        let names: [OutputName] = [.rendition1080, .rendition720, .rendition480]
        let sink = MemorySink()
        let settings = TranscodeSettings(outputs: names, preset: "veryfast", threads: 1)
        _ = try GeneratedVideo(width: 1920, height: 1080, times: [0, 40]).make().use {
            try Transcode.run($0, file: "clip", settings: settings, limits: MediaLimits(), sink: sink)
        }
        // x264 writes what it was told into the stream.
        for (name, refinement) in zip(names, [2, 1, 1]) {
            #expect(try sink.file(name).bytes.firstIndex(of: Array("subme=\(refinement) ".utf8)) != nil)
        }
    }

    @Test func aRejectedFileOpensNoOutput() throws {
        let sink = MemorySink()
        let whole = try GeneratedVideo().make().bytes
        let report = try run(TemporaryFile(whole.prefix(whole.count / 2)), sink)
        #expect(report.outcome == .reject && report.reason?.code == .truncated && sink.opened.isEmpty)
    }

    @Test func aSampleThatIsAHoleIsNotCopiedOn() throws {
        var bytes = try GeneratedVideo(times: (0..<200).map { $0 * 40 }).make().bytes
        let samples = try #require(bytes.firstIndex(of: Array("mdat".utf8)))
        let hole = samples + (bytes.count - samples) * 15 / 32
        bytes.replaceSubrange(hole..<(hole + 40), with: [UInt8](repeating: 0, count: 40))
        let sink = MemorySink()
        let report = try run(TemporaryFile(bytes), sink)
        #expect(report.outcome == .encoded && report.warnings.contains { $0.code == "damaged-frames" })
        #expect(sink.opened == [.rendition1080])
    }

    @Test func aRequestToStopIsHeeded() throws {
        let sink = MemorySink()
        sink.cancelAfter = 5
        let file = try turned(GeneratedVideo().make())
        #expect { try run(file, sink) } throws: { ($0 as? Failure)?.code == .cancelled }
        #expect(sink.sealed.isEmpty)
    }

    @Test func anOutputOverItsBoundAndADecodeOverItsBudgetAreNoVerdicts() throws {
        let file = try turned(GeneratedVideo().make())
        for limits in [MediaLimits(outputBytesMax: 2000), MediaLimits(memoryBytes: 100_000)] {
            #expect { try run(file, MemorySink(), limits: limits) } throws: { ($0 as? Failure)?.code == .overBudget }
        }
    }

    @Test func progressNeverGoesBack() throws {
        let sink = MemorySink()
        _ = try run(turned(GeneratedVideo().make()), sink)
        #expect(sink.fractions == sink.fractions.sorted() && (sink.fractions.last ?? 0) > 0.9)
    }
}

@Suite struct StillTests {
    @Test func aStillForEverySizeIsFoundWithoutTheBlackBeginning() throws {
        let file = try GeneratedVideo(times: (0..<100).map { $0 * 40 }, isSplit: true, darkFrames: 25).make()
        let sink = MemorySink()
        let settings = ThumbSettings(sizes: [64, 200, 5000])
        let report = try file.use {
            try Poster.make($0, file: "clip", settings: settings, limits: MediaLimits(), sink: sink)
        }
        #expect(report.outcome == .made && report.width == 320 && report.height == 180)
        #expect(
            sink.sealed.mapValues(\.width)
                == ["64": 64, "200": 200, "5000": 320].reduce(into: [:]) { $0[OutputName($1.key)] = $1.value })
        let image = try decode(sink.file(OutputName("200")))
        #expect(image.pixels[(20 * image.width + 100) * 4] > 40)
    }

    @Test func pixelsOfABitmapArriveAsRedGreenBlue() throws {
        var bytes: [UInt8] =
            Array("BM".utf8) + [70, 0, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 1, 0, 24, 0]
        bytes += [UInt8](repeating: 0, count: 24)
        // Rows from the bottom, blue first, padded to four bytes: blue, white; red, green.
        bytes += [255, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 0, 255, 0, 0, 0]
        let image = try decode(TemporaryFile(bytes))
        #expect(image.width == 2 && image.height == 2 && !image.hasAlpha)
        #expect(image.pixels == [255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 255, 255, 255, 255])
    }

    @Test func aPictureOverTheBoundIsNotDecoded() throws {
        let bytes: [UInt8] =
            Array("BM".utf8) + [
                70, 18, 0, 0, 0, 0, 0, 0, 54, 0, 0, 0, 40, 0, 0, 0, 40, 0, 0, 0, 40, 0, 0, 0, 1, 0, 24, 0,
            ] + [UInt8](repeating: 0, count: 24 + 40 * 40 * 3)
        #expect(try decode(TemporaryFile(bytes)).width == 40)
        #expect(throws: Failure.self) { try decode(TemporaryFile(bytes), pixelCountMax: 1599) }
    }
}
