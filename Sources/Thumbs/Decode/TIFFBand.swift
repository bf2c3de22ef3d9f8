import CTIFF
import Vocabulary

/// Rows of a page that comes in tiles or in a plane for each sample: as many at a time as a tile or a strip has, with their samples side by side.
final class TIFFBand {
    private let tiff: OpaquePointer
    private let size: PixelSize
    private let samples: Int
    private let coding: TIFFSamples
    /// As they are given out.
    private let sampleBytes: Int
    private let isTiled: Bool
    private let isPlanar: Bool
    /// Of a tile or a strip.
    private let pieceSize: PixelSize
    private let piece: UnsafeMutableRawBufferPointer
    /// The piece as libtiff gives it, where its samples are others.
    private let coded: UnsafeMutableRawBufferPointer?
    private let rows: UnsafeMutableRawBufferPointer
    /// TIFF's own L*a*b* has its grey at 0 of a* and b*.
    private let hasSignedColors: Bool
    private var current = -1
    private var isReadable = false
    /// A tile or strip of what was read so far could not be read: grey stands in its place.
    private(set) var isDamaged = false

    init(_ tiff: OpaquePointer, _ size: PixelSize, rows: TIFFReader.PlainRows, budget: MemoryBudget) throws(Failure) {
        self.tiff = tiff
        self.size = size
        samples = rows.samples
        isPlanar = rows.isPlanar
        hasSignedColors = rows.hasSignedColors
        coding = rows.coding
        sampleBytes = coding.depth / 8
        isTiled = TIFFIsTiled(tiff) != 0
        var (width, height) = (UInt32(0), UInt32(0))
        if isTiled {
            _ = rushes_tiff_get32(tiff, UInt32(TIFFTAG_TILEWIDTH), &width)
            _ = rushes_tiff_get32(tiff, UInt32(TIFFTAG_TILELENGTH), &height)
        } else {
            width = UInt32(size.width)
            _ = rushes_tiff_get32(tiff, UInt32(TIFFTAG_ROWSPERSTRIP), &height)
            height = min(height, UInt32(size.height))
        }
        pieceSize = PixelSize(width: Int(width), height: Int(height))
        let count = product(pieceSize.width, pieceSize.height, isPlanar ? 1 : samples, sampleBytes)
        let codedCount = product(pieceSize.width, isPlanar ? 1 : samples).flatMap(coding.rowBytes).flatMap {
            product($0, Int(height))
        }
        let rowCount = product(size.width, min(pieceSize.height, size.height), samples, sampleBytes)
        try budget.admit(sum(count, coding.isPlain ? 0 : codedCount, rowCount))
        // libtiff's own count, by which it writes.
        guard let count, let codedCount, let rowCount, count > 0,
            Int(isTiled ? TIFFTileSize(tiff) : TIFFStripSize(tiff)) == codedCount
        else { throw .corrupt("tiles of \(width)x\(height)") }
        piece = .allocate(byteCount: count, alignment: 16)
        coded = coding.isPlain ? nil : .allocate(byteCount: codedCount, alignment: 16)
        self.rows = .allocate(byteCount: rowCount, alignment: 16)
    }
    deinit {
        piece.deallocate()
        coded?.deallocate()
        rows.deallocate()
    }

    /// - Returns: nil where no tile or strip of it can be read. Valid until the next call.
    func row(_ y: Int) -> UnsafeMutableRawPointer? {
        let band = y / pieceSize.height
        if band != current {
            current = band
            isReadable = read(from: band * pieceSize.height)
        }
        return isReadable ? rows.baseAddress.unsafelyUnwrapped + (y % pieceSize.height) * rowBytes : nil
    }

    private var rowBytes: Int { size.width * samples * sampleBytes }

    /// - Returns: whether anything could be read.
    private func read(from top: Int) -> Bool {
        var readCount = 0
        for plane in 0..<(isPlanar ? samples : 1) {
            for left in stride(from: 0, to: size.width, by: pieceSize.width) {
                let (x, y, sample) = (UInt32(left), UInt32(top), UInt16(plane))
                let target = (coded ?? piece).baseAddress
                let got =
                    isTiled
                    ? TIFFReadTile(tiff, target, x, y, 0, sample)
                    : TIFFReadEncodedStrip(tiff, TIFFComputeStrip(tiff, y, sample), target, -1)
                if got >= 0 {
                    readCount += 1
                    expand(rowCount: min(pieceSize.height, size.height - top))
                } else {
                    isDamaged = true
                    fillWithGrey(plane: plane)
                }
                place(left: left, rowCount: min(pieceSize.height, size.height - top), plane: plane)
            }
        }
        return readCount > 0
    }

    private func expand(rowCount: Int) {
        guard let coded = coded?.baseAddress, let piece = piece.baseAddress else { return }
        let count = pieceSize.width * (isPlanar ? 1 : samples)
        let codedBytes = coding.rowBytes(count) ?? 0
        for y in 0..<rowCount { coding.expand(coded + y * codedBytes, count, into: piece + y * count * sampleBytes) }
    }

    private func fillWithGrey(plane: Int) {
        for index in piece.indices {
            let sample = isPlanar ? plane : index / sampleBytes % samples
            piece[index] = hasSignedColors && sample > 0 ? 0 : 0x80
        }
    }

    private func place(left: Int, rowCount: Int, plane: Int) {
        let columns = min(pieceSize.width, size.width - left)
        let kept = isPlanar ? sampleBytes : samples * sampleBytes
        for y in 0..<rowCount {
            let source = piece.baseAddress.unsafelyUnwrapped + y * pieceSize.width * kept
            let target =
                rows.baseAddress.unsafelyUnwrapped + y * rowBytes + left * samples * sampleBytes + plane * sampleBytes
            guard isPlanar else {
                target.copyMemory(from: source, byteCount: columns * kept)
                continue
            }
            for x in 0..<columns {
                (target + x * samples * sampleBytes).copyMemory(from: source + x * kept, byteCount: kept)
            }
        }
    }
}
