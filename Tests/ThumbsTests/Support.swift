import Foundation
import Testing
import Vocabulary

@testable import Thumbs

/// Bytes written in order, for files made in a test.
struct ByteWriter {
    var bytes: [UInt8] = []
    var bigEndian = true
    mutating func text(_ text: String) { bytes += Array(text.utf8) }
    mutating func u8(_ values: Int...) { bytes += values.map { UInt8(truncatingIfNeeded: $0) } }
    mutating func u16(_ values: Int...) { for value in values { number(value, width: 2) } }
    mutating func u32(_ values: Int...) { for value in values { number(value, width: 4) } }
    mutating func number(_ value: Int, width: Int) {
        let parts = (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        bytes += bigEndian ? parts.reversed() : parts
    }
}

/// A file without a name that holds the bytes.
final class Scratch {
    let descriptor: Int32
    init(_ bytes: [UInt8] = []) {
        var template = Array("/tmp/rushes-thumbs-XXXXXX".utf8CString)
        descriptor = mkstemp(&template)
        unlink(template)
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }
    deinit { close(descriptor) }

    var bytes: [UInt8] {
        let count = Int(lseek(descriptor, 0, SEEK_END))
        var result = [UInt8](repeating: 0, count: count)
        _ = pread(descriptor, &result, count, 0)
        return result
    }
}

/// Keeps what a job asked for and sealed.
final class RecordingSink: OutputSink {
    private(set) var opened: [String] = []
    private(set) var sealed: [String] = []
    private(set) var files: [String: Scratch] = [:]

    func open(_ name: OutputName) throws(Failure) -> Int32 {
        opened.append(name.rawValue)
        let file = Scratch()
        files[name.rawValue] = file
        return file.descriptor
    }
    func seal(_ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?)
        throws(Failure)
    {
        sealed.append("\(name) \(role) \(contentType) \(width ?? 0)x\(height ?? 0)")
    }
    func progress(_ progress: MediaProgress) throws(Failure) {}
}

/// A decoded picture that a test can ask for its colours.
struct Pixels {
    let raster: Raster
    init(jpeg bytes: [UInt8]) throws {
        raster = try JPEGFile(ByteView(bytes), limits: MediaLimits()).decode(
            longSide: 1 << 20, budget: MemoryBudget(bytes: 1 << 30)
        ).raster
    }
    subscript(x: Int, y: Int) -> [Int] {
        let channels = raster.layout.channelCount
        let samples = raster.row(y).assumingMemoryBound(to: UInt8.self)
        let values = (0..<channels).map { Int(samples[x * channels + $0]) }
        return channels == 1 ? [values[0], values[0], values[0]] : values
    }
    func isNear(_ color: [Int], x: Int, y: Int, within tolerance: Int = 12) -> Bool {
        zip(self[x, y], color).allSatisfy { abs($0 - $1) <= tolerance }
    }
}

enum Pictures {
    static let roomy = MemoryBudget(bytes: 1 << 30)

    /// What is made of a photo, at most `size` long.
    static func thumbnail(
        _ bytes: [UInt8], _ format: MediaFormat, size: Int = 16, quality: Int = 82
    ) throws -> Pixels {
        let (file, sink) = (Scratch(bytes), RecordingSink())
        let report = try Thumb.make(
            file.descriptor, format: format, file: "x", settings: ThumbSettings(sizes: [size], quality: quality),
            limits: MediaLimits(), sink: sink)
        #expect(report.outcome == .made, "\(report.reason?.message ?? "")")
        return try Pixels(jpeg: #require(sink.files[String(size)]).bytes)
    }

    /// Red, green, blue, white in the quarters: left above, right above, left below, right below.
    static let quarters = [[220, 30, 30], [30, 200, 30], [30, 30, 220], [240, 240, 240]]

    static func color(x: Int, y: Int, of size: PixelSize) -> [Int] {
        quarters[(y * 2 / size.height) * 2 + x * 2 / size.width]
    }

    static func raster(_ size: PixelSize) throws -> Raster {
        let raster = try Raster(size: size, layout: .rgb, depth: 8, budget: roomy)
        for y in 0..<size.height {
            for x in 0..<size.width {
                for (channel, value) in color(x: x, y: y, of: size).enumerated() {
                    raster.pixels[(y * size.width + x) * 3 + channel] = UInt8(value)
                }
            }
        }
        return raster
    }

    /// - Parameter exif: a block from the TIFF header on.
    static func jpeg(_ size: PixelSize, exif: [UInt8]? = nil) throws -> [UInt8] {
        let file = Scratch()
        try StillEncoder.write(
            Planes(raster(size), budget: roomy), ThumbSettings(sizes: [], quality: 95), to: file.descriptor,
            limits: MediaLimits(), budget: roomy)
        var bytes = file.bytes
        if let exif {
            var segment = ByteWriter()
            segment.u16(0xFFE1, exif.count + 8)
            segment.text("Exif\0\0")
            bytes.insert(contentsOf: segment.bytes + exif, at: 2)
        }
        return bytes
    }

    /// An EXIF block whose first directory says only this.
    static func exif(orientation: Int) -> [UInt8] {
        TIFFBuilder(bigEndian: false).directory([.short(0x0112, orientation)])
    }

    /// An ICC profile of RGB with a plain power for its curves.
    /// - Parameter primaries: X, Y and Z of red, green and blue under D50; sRGB's, where nothing is said.
    static func profile(
        primaries: [[Double]] = [[0.4361, 0.2225, 0.0139], [0.3851, 0.7169, 0.0971], [0.1431, 0.0606, 0.7141]],
        gamma: Double
    ) -> [UInt8] {
        func fixed(_ value: Double) -> Int { Int((value * 65536).rounded()) }
        var tags: [(String, [UInt8])] = []
        for (name, xyz) in zip(["wtpt", "rXYZ", "gXYZ", "bXYZ"], [[0.9642, 1, 0.8249]] + primaries) {
            var tag = ByteWriter()
            tag.text("XYZ ")
            tag.u32(0, fixed(xyz[0]), fixed(xyz[1]), fixed(xyz[2]))
            tags.append((name, tag.bytes))
        }
        var curve = ByteWriter()
        curve.text("curv")
        curve.u32(0, 1)
        curve.u16(Int((gamma * 256).rounded()), 0)
        tags += ["rTRC", "gTRC", "bTRC"].map { ($0, curve.bytes) }
        let start = 128 + 4 + 12 * tags.count
        var (table, body) = (ByteWriter(), [UInt8]())
        table.u32(tags.count)
        for (name, tag) in tags {
            table.text(name)
            table.u32(start + body.count, tag.count)
            body += tag
        }
        var head = ByteWriter()
        head.u32(start + body.count, 0, 0x0210_0000)
        head.text("mntrRGB XYZ ")
        head.u32(0, 0, 0)
        head.text("acsp")
        head.u32(0, 0, 0, 0, 0, 0, 0)
        head.u32(fixed(0.9642), fixed(1), fixed(0.8249))
        return head.bytes + [UInt8](repeating: 0, count: 128 - head.bytes.count) + table.bytes + body
    }

    /// A PNG of unpacked deflate blocks.
    /// - Parameter rows: unfiltered.
    static func png(
        _ size: PixelSize, depth: Int, colorType: Int, rows: [[UInt8]], before: [(String, [UInt8])] = [],
        after: [(String, [UInt8])] = []
    ) -> [UInt8] {
        var header = ByteWriter()
        header.u32(size.width, size.height)
        header.u8(depth, colorType, 0, 0, 0)
        let pixels = zlib(rows.flatMap { [0] + $0 })
        var file = ByteWriter(bytes: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])
        for (type, body) in [("IHDR", header.bytes)] + before + [("IDAT", pixels)] + after + [
            ("IEND", [])
        ] {
            file.u32(body.count)
            file.text(type)
            file.bytes += body
            file.u32(Int(crc(Array(type.utf8) + body)))
        }
        return file.bytes
    }

    /// A zlib stream of blocks that are only stored.
    static func zlib(_ raw: [UInt8]) -> [UInt8] {
        var deflate: [UInt8] = [0x78, 0x01]
        var position = 0
        repeat {
            let count = min(65535, raw.count - position)
            var block = ByteWriter(bigEndian: false)
            block.u8(position + count == raw.count ? 1 : 0)
            block.u16(count, count ^ 0xFFFF)
            deflate += block.bytes + raw[position..<(position + count)]
            position += count
        } while position < raw.count
        var (a, b) = (1, 0)
        for byte in raw { (a, b) = ((a + Int(byte)) % 65521, (b + a + Int(byte)) % 65521) }
        var check = ByteWriter()
        check.u32(b << 16 | a)
        return deflate + check.bytes
    }

    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        var value = UInt32.max
        for byte in bytes {
            value ^= UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xEDB8_8320 }
        }
        return ~value
    }
}

/// Writes the tag structure of TIFF and EXIF.
struct TIFFBuilder {
    struct Entry {
        var tag: Int
        var type: Int
        var count: Int
        var value: [UInt8]
        /// Directories that the tag points to.
        var child: [Entry]?

        static func short(_ tag: Int, _ values: Int...) -> Entry {
            Entry(tag: tag, type: 3, count: values.count, numbers: values, width: 2)
        }
        static func long(_ tag: Int, _ values: Int...) -> Entry {
            Entry(tag: tag, type: 4, count: values.count, numbers: values, width: 4)
        }
        static func text(_ tag: Int, _ text: String) -> Entry {
            Entry(tag: tag, type: 2, count: text.utf8.count + 1, value: Array(text.utf8) + [0])
        }
        static func rational(_ tag: Int, _ pairs: (Int, Int)...) -> Entry {
            Entry(tag: tag, type: 5, count: pairs.count, numbers: pairs.flatMap { [$0.0, $0.1] }, width: 4)
        }
        static func bytes(_ tag: Int, _ bytes: [UInt8]) -> Entry {
            Entry(tag: tag, type: 7, count: bytes.count, value: bytes)
        }
        static func directory(_ tag: Int, _ entries: [Entry]) -> Entry {
            Entry(tag: tag, type: 4, count: 1, value: [], child: entries)
        }
        private var numbers: [Int] = []
        private var width = 0
        init(tag: Int, type: Int, count: Int, numbers: [Int], width: Int) {
            (self.tag, self.type, self.count, self.value) = (tag, type, count, [])
            (self.numbers, self.width) = (numbers, width)
        }
        init(tag: Int, type: Int, count: Int, value: [UInt8], child: [Entry]? = nil) {
            (self.tag, self.type, self.count, self.value, self.child) = (tag, type, count, value, child)
        }
        func encoded(bigEndian: Bool) -> [UInt8] {
            guard width > 0 else { return value }
            var writer = ByteWriter(bigEndian: bigEndian)
            for number in numbers { writer.number(number, width: width) }
            return writer.bytes
        }
    }

    var bigEndian: Bool

    /// A whole block: header, directory, values, child directories.
    func directory(_ entries: [Entry]) -> [UInt8] {
        var header = ByteWriter(bigEndian: bigEndian)
        header.text(bigEndian ? "MM" : "II")
        header.u16(42)
        header.u32(8)
        return header.bytes + body(entries, at: 8)
    }

    private func body(_ entries: [Entry], at start: Int) -> [UInt8] {
        let sorted = entries.sorted { $0.tag < $1.tag }
        var head = ByteWriter(bigEndian: bigEndian)
        var tail: [UInt8] = []
        let tailStart = start + 2 + sorted.count * 12 + 4
        head.u16(sorted.count)
        for entry in sorted {
            head.u16(entry.tag, entry.type)
            head.u32(entry.count)
            if let child = entry.child {
                head.u32(tailStart + tail.count)
                tail += body(child, at: tailStart + tail.count)
                continue
            }
            let value = entry.encoded(bigEndian: bigEndian)
            if value.count <= 4 {
                head.bytes += value + [UInt8](repeating: 0, count: 4 - value.count)
            } else {
                head.u32(tailStart + tail.count)
                tail += value + [UInt8](repeating: 0, count: value.count & 1)
            }
        }
        head.u32(0)
        return head.bytes + tail
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
