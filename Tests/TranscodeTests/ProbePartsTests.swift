import FFmpeg
import Testing
import Vocabulary

@testable import Transcode

@Suite struct CaptureMetadataTests {
    @Test(
        arguments: [
            ("2023-09-22T18:34:05+0200", "2023-09-22T18:34:05+02:00"),
            ("2016-05-31T17:01:35.000000Z", "2016-05-31T17:01:35Z"),
            ("2010:02:16 21:36:28", "2010-02-16T21:36:28"), ("1970-01-01T00:00:00.000000Z", nil),
            ("1904-01-01T00:00:00.000000Z", nil),
            ("2020-08-28", nil), ("2020-13-28T00:00:00Z", nil), ("garbage of nineteen", nil),
        ] as [(String, String?)])
    func timesBecomeISO8601AndUnsetOnesNothing(_ text: String, _ expected: String?) {
        #expect(CaptureTime.normalized(text) == expected)
    }

    @Test(
        arguments: [
            ("+52.4597+013.3220+051.178/", [52.4597, 13.3220]), ("+40.680-074.500/", [40.68, -74.5]),
            ("+00.0000+000.0000/", nil),
            ("+4012.22-07500.25/", [40.20366, -75.00416]), ("+52,4597+013,3220/", [52.4597, 13.3220]),
            ("nonsense", nil), ("+95.0+010.0/", nil),
        ] as [(String, [Double]?)])
    func positionsAreReadAndZeroByZeroIsNone(_ text: String, _ expected: [Double]?) throws {
        let found = CaptureMetadata.location(text)
        guard let expected else {
            #expect(found == nil)
            return
        }
        let position = try #require(found)
        #expect(abs(position[0] - expected[0]) < 0.0001 && abs(position[1] - expected[1]) < 0.0001)
    }

    @Test func theCamerasOwnClockComesBeforeTheMuxers() {
        let metadata = CaptureMetadata(
            container: [
                "creation_time": "2023-09-22T16:34:05.000000Z",
                "com.apple.quicktime.creationdate": "2023-09-22T18:34:05+0200",
                "com.apple.quicktime.make": "Apple", "com.apple.quicktime.model": "iPhone 6",
            ], video: [:])
        #expect(metadata.takenAt == "2023-09-22T18:34:05+02:00")
        #expect(metadata.takenAtSource == "com.apple.quicktime.creationdate")
        #expect(metadata.camera == "Apple iPhone 6")
    }

    @Test func theTimeOfRecordingInMatroskaComesBeforeTheTimeOfWriting() throws {
        let file = try TemporaryFile.made(
            by: [
                "-f", "lavfi", "-i", "color=size=32x32:duration=0.2", "-metadata", "creation_time=2024-05-06T07:08:09Z",
                "-metadata", "DATE_RECORDED=2023-09-22 18:34:05", "-c:v", "ffv1",
            ], ending: "mkv")
        let facts = try file.use { try VideoProbe.probe($0, file: "a.mkv", limits: MediaLimits()).facts }
        #expect(facts?.takenAt == "2023-09-22T18:34:05" && facts?.takenAtSource == "date_recorded")
    }

    @Test(
        arguments: [
            ("Mon Mar 10 15:04:43 2003\n\0", "2003-03-10T15:04:43"),
            ("THU OCT 26 16:46:04 2006", "2006-10-26T16:46:04"),
            ("2005/11/28/ 09:19", "2005-11-28T09:19:00"), ("2001/ 1/27  1:42PM", "2001-01-27T13:42:00"),
            ("2001/ 1/27 12:05AM", "2001-01-27T00:05:00"), ("2001/ 1/27 12:05PM", "2001-01-27T12:05:00"),
            ("2002-12-16  15:35:01\0\0", "2002-12-16T15:35:01"), ("2002-12-16", nil), ("Mon Mar 99 15:04:43 2003", nil),
            ("2003-02-31  15:35:01", nil), ("2004-02-29  15:35:01", "2004-02-29T15:35:01"),
            ("", nil),
        ] as [(String, String?)])
    func aTimeInAVIIsReadInEverySpelling(_ text: String, _ expected: String?) {
        #expect(RIFFDate.normalized(text) == expected)
    }

    @Test func theTimeOfAnAVIIsFoundInsideItsHeaderListAndBesideIt() throws {
        let plain = try TemporaryFile.made(
            by: ["-f", "lavfi", "-i", "color=size=32x32:duration=0.2", "-c:v", "mjpeg", "-bitexact"], ending: "avi"
        ).bytes
        func length(_ count: Int) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: count >> (8 * $0)) } }
        let listAt = 12
        let listLength = Int(plain.littleEndian(listAt + 4, bytes: 4))
        for isInside in [true, false] {
            var bytes = plain
            let content = Array("2005/11/28/ 09:19\0".utf8)
            if isInside {
                bytes.replaceSubrange((listAt + 4)..<(listAt + 8), with: length(listLength + content.count + 8))
            }
            let chunk = Array("IDIT".utf8) + length(content.count) + content
            bytes.insert(contentsOf: chunk, at: listAt + 8 + listLength)
            let facts = try TemporaryFile(bytes).use {
                try VideoProbe.probe($0, file: "a.avi", limits: MediaLimits()).facts
            }
            #expect(facts?.takenAt == "2005-11-28T09:19:00" && facts?.takenAtSource == "avi-idit")
        }
    }

    @Test func aModelThatNamesItsMakerIsNotPrefixedAgain() {
        #expect(CaptureMetadata.camera(make: "Canon", model: "Canon EOS R5") == "Canon EOS R5")
    }

    @Test func aCamcordersRecordIsFoundInsideTheCodedVideo() throws {
        let uuid: [UInt8] = [
            0x17, 0xEE, 0x8C, 0x60, 0xF8, 0x4D, 0x11, 0xD9, 0x8C, 0xD6, 0x08, 0x00, 0x20, 0x0C, 0x9A, 0x66,
        ]
        var packet: [UInt8] = [0, 0, 0, 1, 6, 5, 60] + uuid + Array("MDPM".utf8) + [3]
        packet += [0x18, 0x44, 0x20, 0x19, 0x04] + [0x19, 0x24, 0x22, 0x24, 0x00] + [0xE0, 0x01, 0x08, 0x00, 0x00]
        packet += [UInt8](repeating: 0x80, count: 20)
        let record = try #require(CameraRecords.avchd(packet))
        #expect(record.takenAt == "2019-04-24T22:24:00+02:00")
        #expect(record.camera == "Sony")
    }
}

@Suite struct TimingSurveyTests {
    private func survey(_ times: [Int64]) -> TimingSurvey {
        var survey = TimingSurvey()
        for time in times { survey.add(time, duration: 10) }
        survey.finish()
        return survey
    }

    @Test func reorderedFramesOfAConstantRateAreConstant() {
        let survey = survey([0, 40, 20, 10, 30, 80, 60, 50, 70])
        #expect(!survey.isVariable)
        #expect(survey.frames == 9 && survey.first == 0 && survey.last == 80 && survey.end == 90)
    }
    @Test func oneDroppedFrameMakesTheRateVariable() { #expect(survey([0, 10, 20, 40, 50]).isVariable) }
    @Test func roundingToMillisecondsIsNoVariation() { #expect(!survey([0, 33, 67, 100, 133, 167]).isVariable) }
    @Test func aSingleFrameHasNoRate() { #expect(!survey([5]).isVariable) }
}

@Suite struct DeclaredLengthTests {
    private let matroska: [UInt8] = [
        0x1A, 0x45, 0xDF, 0xA3, 0x80, 0x18, 0x53, 0x80, 0x67, 0x01, 0, 0, 0, 0, 0, 0x10, 0x00,
    ]

    @Test func aSegmentLongerThanTheFileIsCut() {
        #expect(DeclaredLength.bytes(.matroska, head: matroska) == 4113)
        #expect(DeclaredLength.isCut(.matroska, head: matroska, size: 507))
        #expect(!DeclaredLength.isCut(.matroska, head: matroska, size: 4113))
    }
    @Test func aFlashVideoSaysItsLengthAmongItsScriptData() {
        let head =
            Array("FLV\u{1}".utf8) + [5, 0, 0, 0, 9] + Array("filesize".utf8) + [0, 0x40, 0x59, 0, 0, 0, 0, 0, 0]
        #expect(DeclaredLength.bytes(.flv, head: head) == 100)
        #expect(DeclaredLength.bytes(.flv, head: Array(head.dropLast())) == nil)
    }
    @Test func aProtectedWindowsMediaFileSaysSo() {
        let header: [UInt8] = [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11]
        let protection: [UInt8] = [
            0xFB, 0xB3, 0x11, 0x22, 0x23, 0xBD, 0xD2, 0x11, 0xB4, 0xB7, 0x00, 0xA0, 0xC9, 0x55, 0xFC, 0x6E,
        ]
        #expect(DeclaredLength.asfIsProtected(header + protection) && !DeclaredLength.asfIsProtected(header))
    }
    @Test func anUnknownLengthIsNoClaim() {
        var live = matroska
        live.replaceSubrange(9..., with: [0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF])
        #expect(DeclaredLength.bytes(.matroska, head: live) == nil)
        #expect(
            DeclaredLength.bytes(.wav, head: Array("RIFF".utf8) + [0xFF, 0xFF, 0xFF, 0xFF] + Array("WAVE".utf8)) == nil)
    }
    @Test func aRIFFSaysItsLengthLittleEndian() {
        #expect(DeclaredLength.bytes(.avi, head: Array("RIFF".utf8) + [0, 1, 0, 0] + Array("AVI ".utf8)) == 264)
    }
}

@Suite struct OpenVerdictTests {
    private func outline(_ boxes: [(String, UInt32)], tail: Int = 0) throws -> ISOBoxes {
        var bytes: [UInt8] = []
        for (type, size) in boxes {
            bytes += (0..<4).reversed().map { UInt8(truncatingIfNeeded: size >> (8 * $0)) } + Array(type.utf8)
            bytes += [UInt8](repeating: 1, count: min(max(0, Int(size) - 8), 64))
        }
        let file = try TemporaryFile(bytes + [UInt8](repeating: 0, count: tail))
        return try file.use { try ISOBoxes.read(SourceBytes($0)) }
    }
    private func code(_ boxes: ISOBoxes?, _ format: MediaFormat? = .isoMedia, isCut: Bool = false) -> FailureCode {
        OpenVerdict.reason(format: format, boxes: boxes, isCut: isCut).code
    }

    @Test func aRecordingThatWasNeverFinishedIsTruncated() throws {
        #expect(code(try outline([("ftyp", 20), ("free", 8), ("mdat", 5000)])) == .truncated)
    }
    @Test func zerosInPlaceOfTheIndexAreAMissingEnd() throws {
        #expect(code(try outline([("ftyp", 20), ("mdat", 40)], tail: 64)) == .truncated)
    }
    @Test func aBoxThatCannotBeIsCorrupt() throws {
        #expect(code(try outline([("ftyp", 20), ("free", 3)])) == .corrupt)
        #expect(code(try outline([("ftyp", 20)], tail: 64)) == .corrupt)
    }
    @Test func aWholeIndexThatDoesNotOpenIsCorrupt() throws {
        #expect(code(try outline([("ftyp", 20), ("moov", 40), ("mdat", 40)])) == .corrupt)
    }
    @Test func aProtectedIndexIsEncryptedBeforeAnythingElse() throws {
        var boxes = try outline([("ftyp", 20), ("moov", 40)])
        boxes.isProtected = true
        #expect(code(boxes) == .encrypted)
    }
    @Test func unknownBytesAreNotMedia() { #expect(code(nil, nil) == .notMedia) }
    @Test func aShortMatroskaIsTruncated() {
        #expect(code(nil, .matroska, isCut: true) == .truncated)
        #expect(code(nil, .matroska) == .corrupt)
    }
}

@Suite struct SampleTests {
    @Test func aSampleOfWholeNALUnitsIsPlausibleAndAHoleIsNot() {
        func check(_ bytes: [UInt8]) -> Bool {
            bytes.withUnsafeBytes { SampleCheck.isPlausible($0, nalLengthSize: 4, isUncompressed: false) }
        }
        #expect(check([0, 0, 0, 2, 0x65, 1, 0, 0, 0, 1, 0x41]))
        #expect(!check([0, 0, 0, 9, 0x65, 1]))
        #expect(!check([UInt8](repeating: 0, count: 100)))
        #expect(!check([0, 0, 0, 1, 0x80]))
        // The decoders pass over what is too short for another unit.
        for padding in 1...3 {
            #expect(check([0, 0, 0, 2, 0x65, 1] + [UInt8](repeating: 0, count: padding)), "\(padding)")
        }
        #expect(!check([0, 0, 0, 2, 0x65, 1, 0, 0, 0, 0]))
    }

    @Test func aLastSampleThatCannotBeSplitIsDamageAndNoMissingEnd() throws {
        var bytes = try GeneratedVideo().make().bytes
        let file = try TemporaryFile(bytes)
        let entry = try file.use { descriptor in
            let demuxer = try Demuxer.open(descriptor)
            let last = demuxer.indexEntry(stream: 0, demuxer.indexCount(stream: 0) - 1)
            return try #require(last)
        }
        bytes.replaceSubrange(Int(entry.position)..<Int(entry.position) + 4, with: [0, 1, 0, 0])
        let report = try TemporaryFile(bytes).probed()
        #expect(report.reason == nil && report.warnings.contains { $0.code == "damaged-frames" })
    }

    @Test func amrSamplesAreSplitByTheModeOfEachFrame() {
        let frame = { (mode: UInt8, bytes: Int) in [mode << 3] + [UInt8](repeating: 0x55, count: bytes - 1) }
        #expect(AMRFrames.sizes(frame(5, 21) + frame(0, 13) + frame(8, 6), codec: "amr_nb") == [21, 13, 6])
        #expect(AMRFrames.sizes(frame(7, 32), codec: "amr_nb") == nil)
        #expect(AMRFrames.sizes(frame(7, 32) + [7 << 3], codec: "amr_nb") == nil)
        #expect(AMRFrames.sizes(frame(0, 18) + frame(8, 61), codec: "amr_wb") == [18, 61])
        #expect(AMRFrames.sizes(frame(5, 21) + frame(5, 21), codec: "aac") == nil)
    }

    @Test func theBlankingLinesOfD10AreNotPicture() {
        let area = ActiveArea(codec: "mpeg2video", width: 720, height: 608, sampleAspect: Rational(152, 135))
        #expect(
            area == ActiveArea(codec: nil, width: 720, height: 576, sampleAspect: Rational(16, 15))
                || area.cropTop == 32)
        #expect(area.height == 576 && area.cropTop == 32 && area.sampleAspect == Rational(16, 15))
    }
}
