import CTIFF

/// How the samples of a TIFF's rows are written, and the raster's samples of 8 or 16 bits that they become.
final class TIFFSamples {
    /// Of one sample.
    let bits: Int
    /// IEEE 754; else whole numbers.
    let isFloat: Bool
    /// Counted from the least number: the least is black, the greatest white.
    private let isSigned: Bool
    /// What of floats is nothing, and what is all.
    private var range: ClosedRange<Float> = 0...1
    private var seen: ClosedRange<Float>?

    /// - Returns: nil for complex numbers and odd sizes.
    init?(bits: Int, format: Int) {
        isFloat = format == Int(SAMPLEFORMAT_IEEEFP)
        isSigned = format == Int(SAMPLEFORMAT_INT)
        let isUnsigned = format == Int(SAMPLEFORMAT_UINT) || format == Int(SAMPLEFORMAT_VOID)
        let sizes =
            isFloat ? [16, 32, 64] : isSigned ? [8, 16, 32] : isUnsigned ? Array(1...16) + [32] : []
        guard sizes.contains(bits) else { return nil }
        self.bits = bits
    }

    var depth: Int { bits <= 8 ? 8 : 16 }
    /// The raster's are the same.
    var isPlain: Bool { !isFloat && !isSigned && (bits == 8 || bits == 16) }

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
            let samples = row.assumingMemoryBound(to: UInt32.self), sign: UInt32 = isSigned ? 1 << 31 : 0
            for index in 0..<count { words[index] = UInt16((samples[index] ^ sign) >> 16) }
        } else if isSigned {
            // The sign is the highest bit.
            if bits == 16 {
                let samples = row.assumingMemoryBound(to: UInt16.self)
                for index in 0..<count { words[index] = samples[index] ^ 0x8000 }
            } else {
                let (samples, octets) = (
                    row.assumingMemoryBound(to: UInt8.self), target.assumingMemoryBound(to: UInt8.self)
                )
                for index in 0..<count { octets[index] = samples[index] ^ 0x80 }
            }
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
