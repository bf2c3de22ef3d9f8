import Foundation

@testable import Thumbs

/// JPEG of blocks of one value each, coded by the simplest tables, with components sampled in any way: encoders make few of these.
enum CodedBlocks {
    typealias Sampling = [Int]

    /// Each of three components once, twice or four times as fine as another, as far as a row of blocks may have ten (ITU-T T.81, B.2.3).
    static let samplings: [[Sampling]] = {
        let factors = [[1, 1], [2, 1], [1, 2], [2, 2]]
        var all: [[Sampling]] = []
        for luma in factors {
            for blue in factors {
                for red in factors where [luma, blue, red].reduce(0, { $0 + $1[0] * $1[1] }) <= 10 {
                    all.append([luma, blue, red])
                }
            }
        }
        return all + [
            [[4, 1], [2, 1], [1, 1]], [[1, 4], [1, 1], [1, 2]], [[1, 1], [1, 1], [4, 1]], [[1, 1], [1, 4], [1, 1]],
        ]
    }()

    /// The quarters of each component: left above, right above, left below, right below.
    private static let values = [[80, 150, 110, 200], [90, 170, 128, 100], [180, 100, 140, 90]]

    /// - Parameter sampling: horizontal and vertical, of each component.
    static func jpeg(_ sampling: [Sampling], size: PixelSize) -> [UInt8] {
        var file = ByteWriter()
        file.u16(0xFFD8, 0xFFDB, 67)
        // Coefficients in steps of 8, so that a step of DC is one of the samples.
        file.u8(0)
        file.bytes += [UInt8](repeating: 8, count: 64)
        file.u16(0xFFC0, 8 + 3 * sampling.count)
        file.u8(8)
        file.u16(size.height, size.width)
        file.u8(sampling.count)
        for (index, factors) in sampling.enumerated() { file.u8(index + 1, factors[0] << 4 | factors[1], 0) }
        // Sizes 0 to 11 of DC in four bits each; of AC only the end of the block, in one.
        file.u16(0xFFC4, 31)
        file.u8(0, 0, 0, 0, 12)
        file.bytes += [UInt8](repeating: 0, count: 12) + (0..<12)
        file.u16(0xFFC4, 20)
        file.u8(0x10, 1)
        file.bytes += [UInt8](repeating: 0, count: 16)
        file.u16(0xFFDA, 6 + 2 * sampling.count)
        file.u8(sampling.count)
        for index in sampling.indices { file.u8(index + 1, 0) }
        file.u8(0, 63, 0)
        file.bytes += scan(sampling, size: size)
        file.u16(0xFFD9)
        return file.bytes
    }

    private static func scan(_ sampling: [Sampling], size: PixelSize) -> [UInt8] {
        var bits: [UInt8] = []
        func write(_ value: Int, _ count: Int) {
            for bit in (0..<count).reversed() { bits.append(UInt8(value >> bit & 1)) }
        }
        let (across, down) = (sampling.map { $0[0] }.max() ?? 1, sampling.map { $0[1] }.max() ?? 1)
        let (columns, rows) = ((size.width + 8 * across - 1) / (8 * across), (size.height + 8 * down - 1) / (8 * down))
        var last = [Int](repeating: 0, count: sampling.count)
        for row in 0..<rows {
            for column in 0..<columns {
                for (index, factors) in sampling.enumerated() {
                    for block in 0..<(factors[0] * factors[1]) {
                        let x = column * factors[0] + block % factors[0]
                        let y = row * factors[1] + block / factors[0]
                        let quarter = (2 * y / (rows * factors[1])) * 2 + 2 * x / (columns * factors[0])
                        let value = values[index][quarter] - 128
                        let difference = value - last[index]
                        last[index] = value
                        let length = Int.bitWidth - abs(difference).leadingZeroBitCount
                        write(length, 4)
                        write(difference < 0 ? difference + (1 << length) - 1 : difference, length)
                        write(0, 1)
                    }
                }
            }
        }
        while bits.count % 8 != 0 { bits.append(1) }
        return stride(from: 0, to: bits.count, by: 8).flatMap { start -> [UInt8] in
            let byte = bits[start..<(start + 8)].reduce(UInt8(0)) { $0 << 1 | $1 }
            return byte == 0xFF ? [0xFF, 0] : [byte]
        }
    }
}
