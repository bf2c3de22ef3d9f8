import FFmpeg
import Testing
import Vocabulary

@testable import Transcode

@Suite struct SourceTests {
    /// A ramp of one channel in integers of so many bytes, most significant first.
    private func ramp(bytes: Int, isLittleEndian: Bool) -> [UInt8] {
        (0..<48_000).flatMap { number in
            let value = UInt32(bitPattern: Int32(number % 2000 - 1000) << 20)
            let bigEndian = (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
            return isLittleEndian ? bigEndian.reversed() : bigEndian
        }
    }

    @Test(arguments: [(16, true), (24, false), (24, true), (32, false), (32, true)])
    func theWidthOfUncompressedSoundIsTheOneOfItsOwnBox(_ bits: Int, _ isLittleEndian: Bool) throws {
        let file = try TemporaryFile(
            WrittenMP4(
                soundEntry: WrittenMP4.pcmEntry(bits: UInt8(bits), isLittleEndian: isLittleEndian),
                bytesPerSample: UInt32(bits / 8), samples: ramp(bytes: bits / 8, isLittleEndian: isLittleEndian)
            ).bytes)
        let found = try file.use { descriptor in
            let demuxer = try Demuxer.open(descriptor)
            var bytes: [UInt8] = []
            let packet = try Packet.allocate()
            while try demuxer.read(into: packet) {
                bytes += packet.withBytes { Array($0) }
                packet.unreference()
            }
            return (codec: demuxer.stream(0).codec, bytes: bytes)
        }
        #expect(found.codec == "pcm_s\(bits)\(isLittleEndian ? "le" : "be")")
        #expect(found.bytes == ramp(bytes: bits / 8, isLittleEndian: isLittleEndian))
    }

    @Test(arguments: [1000, 50_000, UInt32.max])
    func aMovieHeaderThatLiesAboutTheLengthIsNotBelieved(_ duration: UInt32) throws {
        let file = try TemporaryFile(
            WrittenMP4(
                duration: duration, soundEntry: WrittenMP4.pcmEntry(bits: 16, isLittleEndian: true), bytesPerSample: 2,
                samples: ramp(bytes: 2, isLittleEndian: true)
            ).bytes)
        let report = try file.use { try VideoProbe.probe($0, file: "a.mp4", limits: MediaLimits()) }
        #expect(report.reason == nil)
        #expect(report.facts?.duration == 1)
    }
}

@Suite struct ContinuousClockTests {
    private static let second: Int64 = 1_000_000

    /// Two tracks of packets of a tenth of a second; the second track comes later in the file.
    private func times(_ recordings: [Int64], length: Int64 = 20, lag: Int = 3) -> [(picture: [Int64], sound: [Int64])]
    {
        var clock = JoinedClock()
        var packets: [(stream: Int, time: Int64)] = []
        let picture = recordings.flatMap { start in (0..<length).map { start * Self.second + $0 * 100_000 } }
        for (number, time) in picture.enumerated() {
            packets.append((0, time))
            if number >= lag { packets.append((1, picture[number - lag])) }
        }
        let made = packets.map {
            ($0.stream, $0.time + clock.offset(stream: $0.stream, time: $0.time, duration: 100_000))
        }
        return [(made.filter { $0.0 == 0 }.map(\.1), made.filter { $0.0 == 1 }.map(\.1))]
    }

    @Test(arguments: [[5, 500], [500, 5], [5, 5], [5, 7], [95_440, 10, 3000]] as [[Int64]])
    func recordingsThatFollowEachOtherHaveOneClock(_ starts: [Int64]) {
        for (picture, sound) in times(starts) {
            let expected = picture.indices.map { starts[0] * Self.second + Int64($0) * 100_000 }
            #expect(picture == expected)
            #expect(sound == Array(expected.prefix(sound.count)))
        }
    }

    @Test func aPauseOfOneTrackIsNoSeam() {
        var clock = JoinedClock()
        for time in 0..<300 { #expect(clock.offset(stream: 0, time: Int64(time) * 100_000, duration: 100_000) == 0) }
        #expect(clock.offset(stream: 1, time: 100_000, duration: 100_000) == 0)
        #expect(clock.offset(stream: 1, time: 29 * Self.second, duration: 100_000) == 0)
        #expect(!clock.hasJumped)
    }

    @Test func oneWrongTimeDoesNotMoveTheRest() {
        var clock = JoinedClock()
        _ = clock.offset(stream: 0, time: 0, duration: 100_000)
        _ = clock.offset(stream: 0, time: 9_000 * Self.second, duration: 100_000)
        #expect(clock.offset(stream: 0, time: 200_000, duration: 100_000) == 0)
    }
}
