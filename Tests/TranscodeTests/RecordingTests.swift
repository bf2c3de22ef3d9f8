import FFmpeg
import Foundation
import Testing
import Vocabulary

@testable import Transcode

/// Whole recordings as cameras, phones and other programs write them.
@Suite struct RecordingTests {
    private func picture(_ seconds: Double = 1, _ source: String = "testsrc2=size=160x120:rate=25") -> [String] {
        ["-f", "lavfi", "-i", "\(source):duration=\(seconds)"]
    }
    private static let tone = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=1"]
    private static let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]

    // MARK: - Protection

    @Test func wordsOfATitleAreNoSignOfProtection() throws {
        let file = try TemporaryFile.made(
            by: picture() + Self.h264 + ["-metadata", "title=encantada encv sinf pssh", "-movflags", "faststart"],
            ending: "mp4")
        #expect(try file.probed().reason == nil)
    }

    @Test func samplesThatAreEncryptedAre() throws {
        let key = ["-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "76a6c65c5ea762046bd749a2e632ccbb"]
        let file = try TemporaryFile.made(
            by: picture() + Self.h264 + key + ["-encryption_kid", "a7e61c373e219033c21091fa607bf3b8"], ending: "mp4")
        #expect(try file.probed().reason?.code == .encrypted)
        #expect(try file.use { try ISOBoxes.read(SourceBytes($0)) }.isProtected)
    }

    // MARK: - Tracks and times

    @Test func aTrackOfTwoPicturesIsNotTheVideoWhereAnotherHasMany() throws {
        let still = picture(2, "color=magenta:size=640x480:rate=1")
        for disposition in ["default", "0"] {
            let file = try TemporaryFile.made(
                by: still + picture() + ["-map", "0:v", "-map", "1:v"] + Self.h264
                    + ["-disposition:v:0", disposition, "-disposition:v:1", "0"], ending: "mp4")
            let facts = try #require(try file.probed().facts)
            #expect(facts.width == 160 && facts.frames == 25)
        }
    }

    @Test func theTracksDateStandsWhereTheMoviesIsUnset() throws {
        let file = try TemporaryFile.made(
            by: picture() + Self.h264 + ["-metadata", "creation_time=2022-02-03T04:05:06Z"], ending: "mp4")
        for unset: UInt32 in [0, 2_082_844_800] {
            let facts = try #require(try file.with(unset, at: 8, from: "mvhd").probed().facts)
            #expect(facts.takenAt == "2022-02-03T04:05:06Z", "\(unset)")
        }
    }

    @Test func anEditOfNoLengthMeansTheRest() throws {
        let file = try TemporaryFile.made(by: picture() + Self.h264 + ["-bf", "2"], ending: "mp4")
            .with(0, at: 12, from: "elst")
        let report = try file.probed()
        #expect(report.reason == nil && report.facts?.frames == 25)
        #expect(try file.transcoded().report.frames == 25)
    }

    /// Half a second of nothing, then one second from the middle of four.
    @Test func aTrimmedTrackBehindAnEmptyEditKeepsItsRateAndItsEnd() throws {
        let sound = ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=4"]
        let whole = try TemporaryFile.made(
            by: ["-itsoffset", "0.5"] + picture(4) + sound + Self.h264
                + ["-bf", "0", "-g", "5", "-c:a", "aac", "-fps_mode", "passthrough"], ending: "mp4")
        // Of the second entry: its length in thousandths, and where it begins in the track's 12 800.
        let file = try whole.with(1000, at: 24, from: "elst").with(12_800, at: 28, from: "elst")
        let facts = try #require(try file.probed().facts)
        #expect(facts.frames == 25 && facts.averageFPS == 25, "\(facts)")
        let read = try ReadVideo(file.transcoded().output)
        #expect(read.pictures.count == 25)
        let video = read.video
        let end = video.timeBase.seconds((video.start ?? 0) + (video.duration ?? 0))
        #expect(abs(end - 1.5) < 0.05, "\(end)")
    }

    @Test func aLongLastPictureIsNoDamage() throws {
        let plain = try TemporaryFile.made(by: picture() + Self.h264 + ["-bf", "2"], ending: "mp4").bytes
        let moov = try #require(try TemporaryFile(plain).use { try ISOBoxes.read(SourceBytes($0)) }.first("moov"))
        var index = Array(plain[Int(moov.offset)...])
        // One run of 25 pictures of 512 ticks becomes two, of which the second is one picture of six seconds.
        for box in ["moov", "trak", "mdia", "minf", "stbl", "stts"] {
            let place = try #require(index.firstIndex(of: Array(box.utf8))) - 4
            let size = UInt32(index.bigEndian(place, bytes: 4))
            index.replaceSubrange(place..<(place + 4), with: WrittenMP4.be(size + 8))
        }
        let runs = try #require(index.firstIndex(of: Array("stts".utf8))) + 8
        #expect(index.bigEndian(runs, bytes: 4) == 1 && index.bigEndian(runs + 4, bytes: 4) == 25)
        index.replaceSubrange(runs..<(runs + 12), with: [2, 24, 512, 1, 76_800].flatMap { WrittenMP4.be($0) })
        let file = try TemporaryFile(plain[..<Int(moov.offset)] + index)
            .with(24 * 512 + 76_800, at: 20, from: "mdhd").with(6960, at: 12, from: "elst")
            .with(6960, at: 20, from: "mvhd")
        let (report, output) = try file.transcoded()
        #expect(report.warnings.isEmpty && report.outcome == .remuxed)
        #expect(abs(try ReadVideo(output).duration - 6.96) < 0.1)
    }

    @Test(arguments: ["vob", "mpg"])
    func programStreamsOfAConstantRateAreConstant(_ ending: String) throws {
        let coded = ending == "vob" ? ["-target", "pal-dvd", "-bf", "2"] : ["-c:v", "mpeg2video", "-bf", "2"]
        let file = try TemporaryFile.made(by: picture(4, "testsrc2=size=720x576:rate=25") + coded, ending: ending)
        let facts = try #require(try file.probed().facts)
        #expect(facts.hasVariableFrameRate == false && facts.frames == 100 && facts.averageFPS == 25, "\(facts)")
        #expect(abs((facts.duration ?? 0) - 4) < 0.05)
        #expect(try file.transcoded().report.frames == 100)
    }

    @Test func aBareStreamOfPicturesKeepsThemAll() throws {
        let file = try TemporaryFile.made(by: picture(2) + ["-c:v", "mpeg2video", "-bf", "2"], ending: "m2v")
        let facts = try #require(try file.probed().facts)
        #expect(facts.hasVariableFrameRate == false && facts.frames == 50 && facts.duration == 2)
        #expect(try file.transcoded().report.frames == 50)
    }

    /// FFmpeg's own MXF gives pictures that are reordered the times of their decoding.
    @Test func picturesWhoseTimesAreOutOfOrderAllComeOut() throws {
        let file = try TemporaryFile.made(
            by: picture(2, "testsrc2=size=320x240:rate=25") + ["-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p"],
            ending: "mxf")
        let (report, output) = try file.transcoded()
        #expect(report.frames == 50 && report.warnings.isEmpty)
        let times = try ReadVideo(output).pictures.map(\.time)
        for (number, time) in times.enumerated() { #expect(abs(time - Double(number) * 0.04) < 0.002) }
    }

    @Test func aVariableRateAboveSixtyIsThinnedByTimeAlone() throws {
        // A second at 240 pictures a second among three at 30.
        var times = (0..<30).map { Double($0) / 30 }
        times += (0..<240).map { 1 + Double($0) / 240 } + (0..<60).map { 2 + Double($0) / 30 }
        let video = GeneratedVideo(times: times.map { Int64(($0 * 1000).rounded()) })
        let pictures = try ReadVideo(video.make().transcoded().output).pictures
        let counts = [0.0, 1, 2, 3].map { second in pictures.count { (second..<(second + 1)).contains($0.time + 0.002) }
        }
        #expect(counts[0] == 30 && (58...61).contains(counts[1]) && counts[2] == 30 && counts[3] == 30, "\(counts)")
    }

    @Test func picturesThatDoNotComeOutAreToldOf() throws {
        // Of two seconds of 25, half a second in the middle is unreadable to the decoder.
        let whole = try TemporaryFile.made(
            by: picture(2, "testsrc2=size=320x240:rate=25") + ["-c:v", "png"], ending: "mov")
        var bytes = whole.bytes
        var place = 0, number = 0
        let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47]
        while place + 4 < bytes.count {
            if bytes[place] == 0x89, bytes[place..<(place + 4)].elementsEqual(signature) {
                number += 1
                if (20..<32).contains(number) {
                    bytes.replaceSubrange(place..<(place + 8), with: [1, 1, 1, 1, 1, 1, 1, 1])
                }
            }
            place += 1
        }
        let report = try TemporaryFile(bytes).transcoded().report
        #expect(report.frames == 38)
        #expect(
            report.warnings.contains { $0.code == "frames-missing" && $0.message.contains("12 of 50") },
            "\(report.warnings)")
    }

    /// - Parameter showBit: in the first byte of a coded picture.
    @Test(arguments: [("libvpx", UInt8(0x10)), ("libvpx-vp9", 0x02)])
    func picturesThatAreNeverShownDoNotCount(_ codec: String, _ showBit: UInt8) throws {
        let coded = ["-c:v", codec, "-b:v", "200k", "-deadline", "realtime"]
        var bytes = try TemporaryFile.made(by: picture() + coded, ending: "ivf").bytes
        // A header, then of each picture its length, its time and itself.
        var place = 32, number = 0
        let hidden = [10, 15, 20]
        while place + 12 < bytes.count {
            if hidden.contains(number) {
                #expect(bytes[place + 12] & showBit != 0)
                bytes[place + 12] &= ~showBit
            }
            place += 12 + Int(bytes.littleEndian(place, bytes: 4))
            number += 1
        }
        #expect(number == 25)
        let file = try TemporaryFile(bytes)
        #expect(try file.probed().facts?.frames == 22)
        // Of VP9 the other bits would have to change, too.
        guard codec == "libvpx" else { return }
        let report = try file.transcoded().report
        #expect(report.frames == 22 && report.warnings.isEmpty)
    }

    /// Another encoder's settings from the fourth picture on, as where a recording was continued.
    @Test func aTrackOfTwoDescriptionsIsNotCopied() throws {
        let file = try TemporaryFile.made(by: picture() + Self.h264 + ["-movflags", "faststart"], ending: "mp4")
        #expect(try file.probed().facts?.delivery == .original)
        // Both descriptions are the same here: only their number is looked at.
        var bytes = file.bytes
        let description = try #require(bytes.firstIndex(of: Array("stsd".utf8))) + 12
        let length = Int(bytes.bigEndian(description, bytes: 4))
        let moov = try #require(bytes.firstIndex(of: Array("moov".utf8))) - 4
        let end = moov + Int(bytes.bigEndian(moov, bytes: 4))
        let second = Array(bytes[description..<(description + length)])
        // What lies behind the index moves by the length of the copy.
        let offsets = try #require(bytes.firstIndex(of: Array("stco".utf8))) + 12
        for number in 0..<Int(bytes.bigEndian(offsets - 4, bytes: 4)) {
            let place = offsets + 4 * number
            let moved = UInt32(Int(bytes.bigEndian(place, bytes: 4)) + length)
            bytes.replaceSubrange(place..<(place + 4), with: WrittenMP4.be(moved))
        }
        for box in ["moov", "trak", "mdia", "minf", "stbl", "stsd"] {
            let place = try #require(bytes.firstIndex(of: Array(box.utf8))) - 4
            let size = UInt32(Int(bytes.bigEndian(place, bytes: 4)) + length)
            bytes.replaceSubrange(place..<(place + 4), with: WrittenMP4.be(size))
        }
        bytes.replaceSubrange((description - 4)..<description, with: WrittenMP4.be(2))
        #expect(end < bytes.count)
        bytes.insert(contentsOf: second, at: description)
        let report = try TemporaryFile(bytes).probed()
        #expect(report.facts?.delivery == .encode && report.facts?.frames == 25)
        #expect(try TemporaryFile(bytes).transcoded().report.outcome == .encoded)
    }

    /// The first group's key frame is lost, as at the beginning of a stream that was cut.
    @Test func picturesBeforeTheFirstKeyFrameOfAnIndexDoNotCount() throws {
        let file = try TemporaryFile.made(by: picture(2) + Self.h264 + ["-g", "10", "-bf", "0"], ending: "mp4")
        var bytes = file.bytes
        let table = try #require(bytes.firstIndex(of: Array("stsz".utf8)))
        let length = Int(bytes.bigEndian(table + 16, bytes: 4))
        let chunks = try #require(bytes.firstIndex(of: Array("stco".utf8)))
        let start = Int(bytes.bigEndian(chunks + 12, bytes: 4))
        // The picture's slice, behind the encoder's words about itself, becomes filler.
        var unit = start
        while bytes[unit + 4] & 0x1F != 5, unit < start + length { unit += 4 + Int(bytes.bigEndian(unit, bytes: 4)) }
        #expect(bytes[unit + 4] & 0x1F == 5)
        bytes[unit + 4] = 0x6C
        let report = try TemporaryFile(bytes).probed()
        #expect(report.facts?.frames == 40, "\(String(describing: report.facts))")
    }

    @Test func aPacketOfNothingIsNotTheEnd() throws {
        let file = try TemporaryFile.made(by: picture() + ["-c:v", "mjpeg"], ending: "mov")
        try file.use { descriptor in
            let demuxer = try Demuxer.open(descriptor)
            let decoder = try Decoder.open(demuxer, stream: 0, threads: 1, pixelCountMax: 1 << 20)
            let packet = try Packet.allocate(), nothing = try Packet.allocate(), frame = try Frame.allocate()
            var frames = 0
            while try demuxer.read(into: packet) {
                #expect(try decoder.send(nothing) == .accepted)
                #expect(try decoder.send(packet) == .accepted)
                packet.unreference()
                while case .frame = try decoder.receive(into: frame) { frames += 1 }
            }
            #expect(frames == 25)
        }
    }

    @Test func aDepthMapIsNotTheVideoThoughItStandsFirst() throws {
        let file = try TemporaryFile.made(
            by: picture(1, "testsrc2=size=320x240:rate=25") + picture() + ["-map", "0", "-map", "1"] + Self.h264,
            ending: "mp4")
        #expect(try file.probed().facts?.width == 320)
        let auxiliary = UInt32(bigEndian: Array("auxv".utf8).withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
        #expect(try file.with(auxiliary, at: 12, from: "hdlr").probed().facts?.width == 160)
    }

    /// Live recordings follow the network and the turns of the telephone.
    @Test(arguments: [("320x60", "yuv420p", 16), ("640x480", "yuv420p", 200), ("161x121", "yuv444p", 200)])
    func picturesOfAnotherShapeKeepTheirOwn(_ size: String, _ format: String, _ edge: Int) throws {
        func stream(_ size: String, _ format: String) throws -> [UInt8] {
            let source = ["-f", "lavfi", "-i", "color=0xE0E0E0:size=\(size):rate=25:duration=1"]
            let coded = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", format]
            return try TemporaryFile.made(by: source + coded, ending: "h264").bytes
        }
        let file = try TemporaryFile(stream("160x120", "yuv420p") + stream(size, format))
        let (report, output) = try file.transcoded()
        #expect(report.frames == 50 && report.warnings.isEmpty)
        let pictures = try ReadVideo(output).pictures
        #expect(pictures.count == 50 && pictures[10].top > 190)
        #expect(abs(pictures[40].top - edge) < 10, "\(pictures[40])")
        let sink = MemorySink()
        let stills = TranscodeSettings(outputs: [.storyboard, .poster])
        _ = try file.use { try Transcode.run($0, file: "clip", settings: stills, limits: MediaLimits(), sink: sink) }
        #expect(sink.sealed.keys.contains(.storyboard))
    }

    @Test func aFileThatEndsInsideAPictureKeepsTheOthers() throws {
        let source = picture(1, "testsrc2=size=176x144:rate=25")
        let bytes = try TemporaryFile.made(by: source + ["-c:v", "rv20", "-g", "5"], ending: "rm").bytes
        let file = try TemporaryFile(bytes[..<(bytes.count / 2)])
        let report = try file.probed()
        let frames = report.facts?.frames ?? 0
        #expect(report.reason == nil && (5..<25).contains(frames), "\(report)")
        #expect(try file.transcoded().report.frames == frames)
    }

    @Test func anIndexThatEndsBeforeItsFirstTrackIsTruncated() throws {
        let file = try TemporaryFile.made(by: picture() + Self.h264 + ["-movflags", "faststart"], ending: "mp4")
        let bytes = file.bytes
        let track = try #require(bytes.firstIndex(of: Array("trak".utf8))) - 4
        #expect(try TemporaryFile(bytes[..<track]).probed().reason?.code == .truncated)
    }

    @Test func aFileThatEndsBeforeItsFooterIsTruncated() throws {
        let file = try TemporaryFile.made(by: picture(2) + ["-c:v", "mpeg2video", "-g", "5"], ending: "mxf")
        #expect(try file.probed().reason == nil)
        let bytes = file.bytes
        #expect(try TemporaryFile(bytes[..<(bytes.count / 2)]).probed().reason?.code == .truncated)
    }

    // MARK: - Stills

    @Test(arguments: ["libx265", "libx264"])
    func aStillOfATransportStreamShowsAPicture(_ codec: String) throws {
        let quiet = codec == "libx265" ? ["-x265-params", "log-level=none"] : []
        let file = try TemporaryFile.made(
            by: picture(6, "color=red:size=320x240:rate=25") + ["-c:v", codec, "-g", "50", "-pix_fmt", "yuv420p"]
                + quiet,
            ending: "ts")
        let sink = MemorySink()
        let report = try file.use {
            try Poster.make($0, file: "clip", settings: ThumbSettings(sizes: [64]), limits: MediaLimits(), sink: sink)
        }
        #expect(report.outcome == .made)
        let image = try sink.file(OutputName("64")).use {
            try PictureDecoder.decodeFirstFrame($0, pixelCountMax: 1 << 20)
        }
        let middle = Array(image.pixels[(24 * image.width + 32) * 4..<((24 * image.width + 32) * 4 + 3)])
        #expect(middle[0] > 200 && middle[1] < 40 && middle[2] < 40, "\(middle)")
    }

    @Test func aRungThatIsNoSmallerIsLeftOut() throws {
        let sink = MemorySink()
        let names: [OutputName] = [.rendition1080, .rendition720, .rendition480]
        _ = try GeneratedVideo(width: 1000, height: 600, times: [0, 40, 80]).make().transcoded(to: names, sink)
        #expect(Set(sink.sealed.keys) == [.rendition1080, .rendition480])
        let small = MemorySink()
        let report = try GeneratedVideo().make().transcoded(to: names, small).report
        #expect(Set(small.sealed.keys) == [.rendition1080] && report.outcome == .remuxed)
    }
}

@Suite struct SoundLayoutTests {
    private static let picture = ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=1"]

    /// - Parameter gains: of each channel in the order of the layout, for one tone of 440 Hz.
    private func recording(
        _ layout: String, _ gains: [Double], codec: String, ending: String, _ more: [String] = []
    ) throws -> TemporaryFile {
        let tone = "aevalsrc=exprs=sin(440*2*PI*t):sample_rate=48000:duration=1"
        let mix = gains.enumerated().map { "c\($0)=\($1)*c0" }.joined(separator: "|")
        return try TemporaryFile.made(
            by: Self.picture + ["-f", "lavfi", "-i", tone, "-filter_complex", "[1:a]pan=\(layout)|\(mix)[a]"]
                + ["-map", "0:v", "-map", "[a]", "-c:v", "mpeg2video", "-c:a", codec, "-strict", "-2"] + more,
            ending: ending)
    }
    private func peaks(_ file: TemporaryFile) throws -> [Float] {
        let (report, output) = try file.transcoded()
        #expect(report.warnings.isEmpty)
        return try ReadSound(output).peaks
    }

    /// MPEG-4 has no number for these layouts, so that the coded channels have no names.
    @Test(arguments: [("6.1", 7), ("7.1(wide)", 8)])
    func theCentreOfACompressedTrackWithoutNamesIsHeard(_ layout: String, _ count: Int) throws {
        let gains = (0..<count).map { $0 == 2 ? 0.5 : 0 }
        let found = try peaks(recording(layout, gains, codec: "aac", ending: "mp4"))
        #expect(found.count == 2 && found.allSatisfy { $0 > 0.2 }, "\(found)")
    }

    /// Layouts that libswresample refuses to mix: their front pair is what is heard, or everything where there is none.
    @Test(arguments: [
        ("FL+FR+BL", [0.5, 0.25, 0]), ("FL+LFE", [0.5, 0.25]), ("BL+BR", [0.5, 0.25]),
        ("FL+FR+FC+LFE+TFC", [0.5, 0.25, 0, 0, 0]),
        ("hexadecagonal", [0.5, 0.25] + [Double](repeating: 0, count: 14)),
    ])
    func aLayoutThatCannotBeMixedDoesNotKillTheVideo(_ layout: String, _ gains: [Double]) throws {
        let found = try peaks(recording(layout, gains, codec: "pcm_s16le", ending: "mov"))
        #expect(found.count == 2 && found[0] > 0.3, "\(found)")
    }

    @Test func ofAmbisonicSoundTheOmnidirectionalPartIsHeard() throws {
        let family = ["-mapping_family", "255"]
        var bytes = try recording("4c", [0.5, 0, 0, 0], codec: "libopus", ending: "mkv", family).bytes
        // Four channels of no meaning become ambisonic ones (RFC 8486, 3.1).
        let head = try #require(bytes.firstIndex(of: Array("OpusHead".utf8)))
        #expect(bytes[head + 18] == 255)
        bytes[head + 18] = 2
        let file = try TemporaryFile(bytes)
        let found = try peaks(file)
        #expect(found.count == 2 && found.allSatisfy { abs($0 - 0.5) < 0.1 }, "\(found)")
    }

    @Test func aMixOfLoudChannelsDoesNotClip() throws {
        let found = try peaks(recording("5.1", [0.9, 0.9, 0.9, 0, 0.9, 0.9], codec: "aac", ending: "mp4"))
        #expect(found.allSatisfy { (0.8...1.0).contains($0) }, "\(found)")
    }

    @Test func aMixThatDoesNotClipKeepsItsLevel() throws {
        let found = try peaks(recording("5.1", [0, 0, 0.25, 0, 0, 0], codec: "pcm_s16le", ending: "mov"))
        #expect(found.allSatisfy { abs($0 - 0.177) < 0.01 }, "\(found)")
    }

    @Test func soundThatStartsLateInATransportStreamIsHeard() throws {
        let late = ["-itsoffset", "12", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000:duration=3"]
        for (ending, codec) in [("ts", "aac"), ("mpg", "mp2")] {
            let file = try TemporaryFile.made(
                by: ["-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=15"] + late
                    + ["-c:v", "mpeg2video", "-c:a", codec], ending: ending)
            let (report, output) = try file.transcoded()
            #expect(report.warnings.isEmpty && report.frames == 375, "\(ending): \(report.warnings)")
            let sound = try #require(try ReadVideo(output).audio)
            let end = sound.timeBase.seconds((sound.start ?? 0) + (sound.duration ?? 0))
            #expect(abs(end - 15) < 0.2, "\(ending): \(end)")
        }
    }
}
