import Foundation
import Testing
import Vocabulary

@testable import FFmpeg
@testable import Transcode

/// A private file that goes with the test.
final class TemporaryFile {
    private let descriptor: Int32

    init() throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "rushes-test-\(UUID().uuidString)").path
        descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        try #require(descriptor >= 0)
        unlink(path)
    }
    convenience init(_ bytes: some Sequence<UInt8>) throws {
        try self.init()
        let bytes = Array(bytes)
        try #require(bytes.isEmpty || pwrite(descriptor, bytes, bytes.count, 0) == bytes.count)
    }
    deinit { close(descriptor) }

    /// Lends the descriptor; the file stays open as long as the body runs.
    func use<Result>(_ body: (Int32) throws -> Result) rethrows -> Result {
        defer { withExtendedLifetime(self) {} }
        return try body(descriptor)
    }

    var bytes: [UInt8] {
        var status = stat()
        fstat(descriptor, &status)
        var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
        let count = pread(descriptor, &bytes, bytes.count, 0)
        return Array(bytes.prefix(max(0, count)))
    }
}

extension TemporaryFile {
    /// What the ffmpeg of this machine writes with these arguments, to a name with this ending.
    static func made(by arguments: [String], ending: String) throws -> TemporaryFile {
        let path = FileManager.default.temporaryDirectory.appending(path: "rushes-test-\(UUID().uuidString).\(ending)")
        defer { try? FileManager.default.removeItem(at: path) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["ffmpeg", "-nostdin", "-v", "error", "-y"] + arguments + [path.path]
        try process.run()
        process.waitUntilExit()
        try #require(process.terminationStatus == 0)
        return try TemporaryFile(Data(contentsOf: path))
    }
}

/// Holds outputs in private files.
final class MemorySink: OutputSink {
    var files: [OutputName: TemporaryFile] = [:]
    var sealed: [OutputName: (role: FileRole, contentType: String, width: Int?, height: Int?)] = [:]
    var fractions: [Double] = []
    var opened: [OutputName] = []
    /// Progress calls until it asks to stop.
    var cancelAfter = Int.max

    func open(_ name: OutputName) throws(Failure) -> Int32 {
        opened.append(name)
        guard let file = try? TemporaryFile() else { throw Failure(.ioError, "no file") }
        files[name] = file
        return file.use { $0 }
    }
    func seal(
        _ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?
    ) throws(Failure) {
        sealed[name] = (role, contentType, width, height)
    }
    func progress(_ progress: MediaProgress) throws(Failure) {
        fractions.append(progress.fraction)
        if fractions.count > cancelAfter { throw Failure(.cancelled, "Stopped on request.") }
    }
    func file(_ name: OutputName) throws -> TemporaryFile { try #require(files[name]) }
}

/// A video made on the spot: frame n is one flat grey of `luma(n)`, so that every frame can be told from its neighbours.
struct GeneratedVideo {
    var width = 320
    var height = 180
    /// Milliseconds at which each frame begins.
    var times: [Int64] = (0..<50).map { $0 * 40 }
    /// Seconds; 0 for no sound.
    var soundLength = 0.0
    /// Brightness of a frame's top half is `luma`, of its bottom half half of it.
    var isSplit = false
    var darkFrames = 0
    /// In frames; a key frame only at the beginning where it is nil.
    var keyframeInterval: Int?

    static func luma(_ number: Int) -> Int { 60 + number * 37 % 140 }

    func make() throws -> TemporaryFile {
        let file = try TemporaryFile()
        try file.use { try write(to: $0) }
        return file
    }

    private func write(to descriptor: Int32) throws {
        let timeBase = Rational(1, 1000)
        let video = try Encoder.h264(
            Encoder.H264(
                width: width, height: height, timeBase: timeBase, rate: Rational(25, 1), preset: "ultrafast", crf: 12,
                keyframeIntervalMax: 50, threads: 1))
        let muxer = try Muxer.mp4(descriptor, bytesMax: 1 << 30)
        let picture = try muxer.addStream(from: video)
        let audio = try Encoder.aac(sampleRate: 48_000, channels: 2, bitRate: 96_000)
        let sound = soundLength > 0 ? try muxer.addStream(from: audio) : nil
        try muxer.writeHeader()
        let packet = try Packet.allocate()
        let last = times.count - 1
        func drainVideo() throws {
            while try video.receive(into: packet) {
                if let pts = packet.pts, let index = times.firstIndex(of: pts) {
                    packet.duration = index < last ? times[index + 1] - pts : pts - times[max(0, index - 1)]
                }
                try muxer.write(packet, stream: picture, timeBase: timeBase)
            }
        }
        for (number, time) in times.enumerated() {
            let frame = try Frame.allocate(
                width: width, height: height, format: #require(PixelFormat(named: "yuv420p")))
            fill(frame, number < darkFrames ? 16 : Self.luma(number))
            frame.pts = time
            frame.set(forcesKeyframe: number == 0 || keyframeInterval.map { number.isMultiple(of: $0) } ?? false)
            try video.send(frame)
            try drainVideo()
        }
        try video.finish()
        try drainVideo()
        if let sound { try writeSound(audio, muxer, sound) }
        try muxer.finish()
    }

    private func fill(_ frame: borrowing Frame, _ luma: Int) {
        for plane in 0..<3 {
            let rows = plane == 0 ? height : (height + 1) / 2, columns = plane == 0 ? width : (width + 1) / 2
            frame.withPlane(plane) { first, stride in
                for row in 0..<rows {
                    let value = plane > 0 ? 128 : isSplit && row >= rows / 2 ? luma / 2 : luma
                    (first + row * stride).update(repeating: UInt8(value), count: columns)
                }
            }
        }
    }

    private func writeSound(_ encoder: borrowing Encoder, _ muxer: borrowing Muxer, _ stream: Int) throws {
        let packet = try Packet.allocate()
        func drain() throws {
            while try encoder.receive(into: packet) {
                try muxer.write(packet, stream: stream, timeBase: Rational(1, 48_000))
            }
        }
        var position = 0
        while Double(position) < soundLength * 48_000 {
            let frame = try Frame.allocate(samples: encoder.frameSamples, channels: 2, sampleRate: 48_000)
            for channel in 0..<2 {
                frame.withPlane(channel) { first, _ in
                    first.withMemoryRebound(to: Float.self, capacity: encoder.frameSamples) { samples in
                        for index in 0..<encoder.frameSamples {
                            samples[index] = 0.3 * Float(sin(Double(position + index) * 2 * .pi * 440 / 48_000))
                        }
                    }
                }
            }
            frame.pts = Int64(position)
            try encoder.send(frame)
            try drain()
            position += encoder.frameSamples
        }
        try encoder.finish()
        try drain()
    }
}

/// What a player would hear: samples by channel.
struct ReadSound {
    var channels: [[Float]] = []

    init(_ file: TemporaryFile) throws {
        channels = try file.use { descriptor in
            let demuxer = try Demuxer.open(descriptor)
            let stream = try #require(demuxer.streams.first { $0.kind == .audio })
            let decoder = try Decoder.open(demuxer, stream: stream.index, threads: 1, pixelCountMax: 1)
            let packet = try Packet.allocate(), frame = try Frame.allocate()
            var channels = [[Float]](repeating: [], count: stream.channels)
            while try demuxer.read(into: packet) {
                if packet.stream == stream.index { _ = try decoder.send(packet) }
                packet.unreference()
                while case .frame = try decoder.receive(into: frame) {
                    for channel in channels.indices {
                        frame.withPlane(channel) { first, _ in
                            first.withMemoryRebound(to: Float.self, capacity: frame.samples) {
                                channels[channel] += UnsafeBufferPointer(start: $0, count: frame.samples)
                            }
                        }
                    }
                }
            }
            return channels
        }
    }

    /// The loudest sample of each channel in its middle half.
    var peaks: [Float] {
        channels.map { samples in
            samples[(samples.count / 4)..<(samples.count * 3 / 4)].reduce(0) { max($0, abs($1)) }
        }
    }
}

extension TemporaryFile {
    func probed() throws -> ProbeReport {
        try use { try VideoProbe.probe($0, file: "clip", limits: MediaLimits()) }
    }
    func transcoded(to outputs: [OutputName] = [.rendition1080], _ sink: MemorySink = MemorySink()) throws
        -> (report: TranscodeReport, output: TemporaryFile)
    {
        let settings = TranscodeSettings(outputs: outputs, preset: "ultrafast", threads: 1)
        let report = try use {
            try Transcode.run($0, file: "clip", settings: settings, limits: MediaLimits(), sink: sink)
        }
        return (report, try sink.file(.rendition1080))
    }

    /// The same file with a big-endian number of four bytes written over another.
    /// - Parameter offset: from the beginning of the name of the box.
    func with(_ number: UInt32, at offset: Int, from box: String, occurrence: Int = 0) throws -> TemporaryFile {
        var bytes = self.bytes
        var place = try #require(bytes.firstIndex(of: Array(box.utf8)))
        for _ in 0..<occurrence {
            let after = place + 4
            let next = try #require(Array(bytes[after...]).firstIndex(of: Array(box.utf8)))
            place = after + next
        }
        bytes.replaceSubrange((place + offset)..<(place + offset + 4), with: WrittenMP4.be(number))
        return try TemporaryFile(bytes)
    }
}

/// What a player would show.
struct ReadVideo {
    struct Picture {
        /// Seconds.
        var time: Double
        /// Luma of the top and bottom halves.
        var top: Int
        var bottom: Int
        var isKey: Bool
    }
    var pictures: [Picture] = []
    var video: StreamDescription
    var audio: StreamDescription?
    var duration: Double

    init(_ file: TemporaryFile) throws {
        self = try file.use { try ReadVideo(descriptor: $0) }
    }
    private init(descriptor: Int32) throws {
        let demuxer = try Demuxer.open(descriptor)
        video = try #require(demuxer.streams.first { $0.kind == .video })
        audio = demuxer.streams.first { $0.kind == .audio }
        duration = demuxer.duration ?? 0
        let decoder = try Decoder.open(demuxer, stream: video.index, threads: 1, pixelCountMax: 1 << 24)
        let packet = try Packet.allocate(), frame = try Frame.allocate()
        var isFinished = false
        var keys: Set<Int64?> = []
        while !isFinished {
            if try demuxer.read(into: packet) {
                if packet.stream == video.index, packet.isKey { keys.insert(packet.pts) }
                if packet.stream == video.index { #expect(try decoder.send(packet) == .accepted) }
                packet.unreference()
            } else {
                try decoder.finish()
                isFinished = true
            }
            while case .frame = try decoder.receive(into: frame) {
                let middle = frame.width / 2, height = frame.height
                let halves = frame.withPlane(0) { first, stride in
                    (Int(first[height / 4 * stride + middle]), Int(first[height * 3 / 4 * stride + middle]))
                }
                let (top, bottom) = try #require(halves)
                let time = video.timeBase.seconds(frame.bestTimestamp ?? -1)
                pictures.append(
                    Picture(time: time, top: top, bottom: bottom, isKey: keys.contains(frame.bestTimestamp)))
                frame.unreference()
            }
        }
    }
}

extension VideoFacts {
    /// An ordinary 1080p recording, to be varied.
    static func ordinary(_ change: (inout VideoFacts) -> Void = { _ in }) -> VideoFacts {
        guard let format = PixelFormat(named: "yuv420p") else { preconditionFailure("libavutil has yuv420p") }
        var facts = VideoFacts(
            stream: 0, codec: "h264", profile: 100, width: 1920, height: 1080, cropTop: 0, sampleAspect: Rational(1, 1),
            orientation: .upright, pixelFormat: format,
            color: ColorTags(range: .limited, primaries: "bt709", transfer: "bt709", matrix: "bt709"), hdr: nil,
            hasAlpha: false, isInterlaced: false, timeBase: Rational(1, 30_000), frames: 300, averageRate: 30,
            hasVariableRate: false, start: 0, end: 10, keyframeIntervalMax: 2, hasEdits: false)
        change(&facts)
        return facts
    }
}

extension PixelFormat {
    init?(named name: String) {
        let numberMax: Int32 = 1000
        guard let found = (0..<numberMax).lazy.map({ PixelFormat($0) }).first(where: { $0.name == name }) else {
            return nil
        }
        self = found
    }
    static func known(_ name: String) throws -> PixelFormat { try #require(PixelFormat(named: name)) }
}
