import Foundation
import Vocabulary

/// BMP, whose rows lie in the file as they are, or packed in runs.
struct BMPFile: PictureFile {
    let header: PictureHeader
    private let bytes: ByteView
    private let structure: BMPStructure

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = BMPStructure(bytes) else {
            throw bytes.count < 54 ? .truncated("no header") : .corrupt("no header that is known")
        }
        self.bytes = bytes
        self.structure = structure
        header = PictureHeader(
            size: structure.size, codec: "bmp", pixelFormat: structure.pixelFormat,
            encoding: structure.profile.map { .profile($0) } ?? .plain)
        try header.admit(limits)
        // A picture of another format in it tells its bits itself.
        if case .unsupported(let code) = structure.compression { throw .unsupported("BMP of compression \(code)") }
        guard [1, 2, 4, 8, 16, 24, 32].contains(structure.bits) else { throw .corrupt("\(structure.bits) bits") }
        guard case .none = structure.compression else { return }
        guard let rowBytes = structure.rowBytes, let needed = product(rowBytes, structure.size.height),
            let end = sum(structure.pixelOffset, needed)
        else { throw .corrupt("row length") }
        // Some writers leave out the padding of the last row.
        if end - 3 > bytes.count { throw .truncated("\(needed) bytes of pixels") }
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        guard let picture = try decodeRows(header.size, budget: budget) else { throw .corrupt("BMP") }
        return picture
    }

    func decodeRows(_ target: PixelSize, budget: MemoryBudget) throws(Failure) -> DecodedPicture? {
        let alpha = shownAlpha
        let layout: Raster.Layout = alpha == nil ? .rgb : .rgba
        let line = try Raster(
            size: PixelSize(width: header.size.width, height: 1), layout: layout, depth: 8, budget: budget)
        let resampler = try Resampler(
            source: header.size, target: target, layout: .rgb, depth: 8, budget: budget)
        let runs: BMPRuns?
        if case .none = structure.compression {
            runs = nil
        } else {
            runs = try BMPRuns(bytes, structure, budget: budget)
        }
        let colors = palette
        for y in 0..<header.size.height {
            // Stored from the bottom up.
            let stored = structure.isTopDown ? y : header.size.height - 1 - y
            line.reuse(as: layout)
            let output = line.row(0).assumingMemoryBound(to: UInt8.self)
            if let runs {
                let row = runs.row(stored)
                for x in 0..<header.size.width { place(colors[Int(row[x])], at: x, output) }
            } else {
                read(stored, colors, alpha, into: output)
            }
            line.flattenOnWhite()
            resampler.take(line.row(0))
        }
        return DecodedPicture(raster: resampler.result, encoding: header.encoding)
    }

    /// 256 colours; those that the file does not have are black. Without room for any they are greys.
    private var palette: [(UInt8, UInt8, UInt8)] {
        if structure.isGrey { return (0..<256).map { (UInt8($0), UInt8($0), UInt8($0)) } }
        let table = structure.palette, step = structure.paletteEntryBytes
        return (0..<256).map { index in
            guard let entry = table.slice(at: index * step, count: 3)?.bytes else { return (0, 0, 0) }
            return (entry[2], entry[1], entry[0])
        }
    }

    private func place(_ color: (UInt8, UInt8, UInt8), at x: Int, _ output: UnsafeMutablePointer<UInt8>) {
        (output[x * 3], output[x * 3 + 1], output[x * 3 + 2]) = color
    }

    /// Nil also where no pixel would be seen: whoever names a mask and leaves it empty means the colours.
    private var shownAlpha: BMPStructure.Mask? {
        guard let alpha = structure.alpha else { return nil }
        for stored in 0..<header.size.height {
            let row = row(stored)
            for x in 0..<header.size.width where alpha.value(pixel(x, of: row)) > 0 { return alpha }
        }
        return nil
    }

    private func row(_ stored: Int) -> UnsafeRawBufferPointer {
        let rowBytes = structure.rowBytes ?? 0
        return bytes.clamped(at: structure.pixelOffset + stored * rowBytes, count: rowBytes).bytes
    }

    private func pixel(_ x: Int, of row: UnsafeRawBufferPointer) -> UInt32 {
        var value: UInt32 = 0
        for byte in 0..<(structure.bits / 8) {
            let index = x * structure.bits / 8 + byte
            value |= UInt32(index < row.count ? row[index] : 0) << UInt32(8 * byte)
        }
        return value
    }

    private func read(
        _ stored: Int, _ colors: [(UInt8, UInt8, UInt8)], _ alpha: BMPStructure.Mask?,
        into output: UnsafeMutablePointer<UInt8>
    ) {
        let row = row(stored), width = header.size.width, bits = structure.bits
        if bits <= 8 {
            let perByte = 8 / bits, last = UInt8(truncatingIfNeeded: (1 << bits) - 1)
            for x in 0..<width {
                let byte = x / perByte < row.count ? row[x / perByte] : 0
                place(colors[Int(byte >> UInt8(8 - bits - x % perByte * bits) & last)], at: x, output)
            }
        } else if bits == 24, row.count >= width * 3 {
            for x in 0..<width { place((row[x * 3 + 2], row[x * 3 + 1], row[x * 3]), at: x, output) }
        } else {
            let channels = alpha == nil ? 3 : 4
            for x in 0..<width {
                let value = pixel(x, of: row)
                for channel in 0..<3 { output[x * channels + channel] = structure.masks[channel]?.value(value) ?? 0 }
                if let alpha { output[x * 4 + 3] = alpha.value(value) }
            }
        }
    }
}

/// The indices of a picture in runs (RLE8, RLE4), unpacked in one go: rows come from the bottom, and pixels that are jumped over stay 0.
private final class BMPRuns {
    private let width: Int
    private let indices: UnsafeMutableBufferPointer<UInt8>

    /// - Throws: `over-budget`, `truncated` where the end of the bitmap is missing, `corrupt`.
    init(_ bytes: ByteView, _ structure: BMPStructure, budget: MemoryBudget) throws(Failure) {
        let size = structure.size
        let count = product(size.width, size.height)
        try budget.admit(count)
        guard let count else { throw .corrupt("size") }
        width = size.width
        indices = .allocate(capacity: count)
        indices.initialize(repeating: 0)
        let coded = bytes.suffix(from: structure.pixelOffset)
        guard unpack(coded, bits: structure.bits, size) else { throw .truncated("no end of the bitmap") }
    }
    deinit { indices.deallocate() }

    func row(_ y: Int) -> UnsafeMutablePointer<UInt8> { indices.baseAddress.unsafelyUnwrapped + y * width }

    /// - Returns: false where the bytes end before the bitmap does.
    private func unpack(_ coded: ByteView, bits: Int, _ size: PixelSize) -> Bool {
        let all = coded.bytes
        var (offset, x, y) = (0, 0, 0)
        func put(_ index: UInt8) {
            if x < size.width, y < size.height { indices[y * size.width + x] = index }
            x += 1
        }
        while offset + 1 < all.count {
            let (count, value) = (Int(all[offset]), all[offset + 1])
            offset += 2
            if count > 0 {
                for index in 0..<count { put(bits == 8 ? value : index & 1 == 0 ? value >> 4 : value & 15) }
                continue
            }
            switch value {
            case 0: (x, y) = (0, y + 1)
            case 1: return true
            case 2:
                guard offset + 1 < all.count else { return false }
                x += Int(all[offset])
                y += Int(all[offset + 1])
                offset += 2
            default:
                let length = bits == 8 ? Int(value) : (Int(value) + 1) / 2
                guard offset + length <= all.count else { return false }
                for index in 0..<Int(value) {
                    let byte = all[offset + (bits == 8 ? index : index / 2)]
                    put(bits == 8 ? byte : index & 1 == 0 ? byte >> 4 : byte & 15)
                }
                offset += (length + 1) / 2 * 2
            }
        }
        // The mark of the end is left out by some, behind the last row.
        return y >= size.height || y == size.height - 1 && x >= size.width
    }
}
