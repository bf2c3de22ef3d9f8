import CTIFF

/// How the samples of a TIFF's rows are written, and the raster's samples of 8 or 16 bits that they become.
final class TIFFSamples {
    /// Of one sample.
    let bits: Int
    /// IEEE 754; else unsigned.
    let isFloat: Bool
    /// What of floats is nothing, and what is all.
    private var range: ClosedRange<Float> = 0...1
    private var seen: ClosedRange<Float>?

    /// - Returns: nil for what has no meaning as light or ink: numbers with a sign, complex ones, odd sizes.
    init?(bits: Int, format: Int) {
        isFloat = format == Int(SAMPLEFORMAT_IEEEFP)
        let isUnsigned = format == Int(SAMPLEFORMAT_UINT) || format == Int(SAMPLEFORMAT_VOID)
        guard isFloat ? [16, 32, 64].contains(bits) : isUnsigned && ((1...16).contains(bits) || bits == 32) else {
            return nil
        }
        self.bits = bits
    }

    var depth: Int { bits <= 8 ? 8 : 16 }
    /// The raster's are the same.
    var isPlain: Bool { !isFloat && (bits == 8 || bits == 16) }

    /// Of a row of so many samples; nil when it does not fit.
    func rowBytes(_ count: Int) -> Int? { product(count, bits).map { ($0 + 7) / 8 } }

    /// A row of so many samples, as libtiff gives them: in this machine's byte order, bits from the highest on.
    func expand(_ row: UnsafeRawPointer, _ count: Int, into target: UnsafeMutableRawPointer) {
        let words = target.assumingMemoryBound(to: UInt16.self)
        if isFloat {
            let scale = 65535 / (range.upperBound - range.lowerBound)
            for index in 0..<count {
                let value = float(row, index)
                if value.isFinite {
                    seen = min(seen?.lowerBound ?? value, value)...max(seen?.upperBound ?? value, value)
                }
                // What is no number is black.
                let step = (value - range.lowerBound) * scale
                words[index] = step > 0 ? UInt16(min(step, 65535) + 0.5) : 0
            }
        } else if bits == 32 {
            let samples = row.assumingMemoryBound(to: UInt32.self)
            for index in 0..<count { words[index] = UInt16(samples[index] >> 16) }
        } else {
            unpack(row.assumingMemoryBound(to: UInt8.self), count, into: target)
        }
    }

    /// - Returns: false where all floats so far lie in their range.
    func showAllThatWasSeen() -> Bool {
        guard let seen, seen.lowerBound < 0 || seen.upperBound > 1, seen.lowerBound < seen.upperBound else {
            return false
        }
        range = seen
        return true
    }

    private func float(_ row: UnsafeRawPointer, _ index: Int) -> Float {
        switch bits {
        case 16: Float(row.load(fromByteOffset: index * 2, as: Float16.self))
        case 32: row.load(fromByteOffset: index * 4, as: Float.self)
        default: Float(row.load(fromByteOffset: index * 8, as: Double.self))
        }
    }

    private func unpack(_ bytes: UnsafePointer<UInt8>, _ count: Int, into target: UnsafeMutableRawPointer) {
        let last = UInt32(1) << UInt32(bits) - 1, most: UInt32 = depth == 8 ? 255 : 65535
        let octets = target.assumingMemoryBound(to: UInt8.self), words = target.assumingMemoryBound(to: UInt16.self)
        var (held, heldBits, next) = (UInt32(0), 0, 0)
        for index in 0..<count {
            while heldBits < bits {
                held = held << 8 | UInt32(bytes[next])
                (heldBits, next) = (heldBits + 8, next + 1)
            }
            heldBits -= bits
            let value = ((held >> UInt32(heldBits) & last) * most + last / 2) / last
            if depth == 8 { octets[index] = UInt8(value) } else { words[index] = UInt16(value) }
        }
    }
}
