import Vocabulary

/// Photoshop's merged picture, of 8 or 16 bits: grey, indexed, RGB, CMYK, Lab.
struct PSDFile: PictureFile {
    let header: PictureHeader
    private let bytes: ByteView
    private let structure: PSDStructure
    private let layout: Raster.Layout
    private let pictureOffset: Int

    init(_ bytes: ByteView, limits: MediaLimits) throws(Failure) {
        guard let structure = PSDStructure(bytes) else {
            throw bytes.count < 26 ? .truncated("header") : .corrupt("header")
        }
        self.bytes = bytes
        self.structure = structure
        let metadata = PhotoMetadata(exif: structure.exif.map { [$0] } ?? [], xmp: structure.xmp, iptc: structure.iptc)
        header = PictureHeader(
            size: structure.size, orientation: metadata.orientation ?? .upright, codec: "psd",
            pixelFormat: structure.pixelFormat, encoding: structure.profile.map { .profile($0) } ?? .plain,
            metadata: metadata)
        try header.admit(limits)
        guard structure.depth == 8 || structure.depth == 16 else {
            throw .unsupported("PSD of \(structure.depth) bits a channel")
        }
        guard !structure.lacksMergedPicture else {
            throw .unsupported("PSD without a merged picture; save it with maximum compatibility")
        }
        let needed: Int
        switch structure.mode {
        case 1, 8: (layout, needed) = (.grey, 1)
        case 2: (layout, needed) = (.rgb, 1)
        case 3: (layout, needed) = (.rgb, 3)
        case 4: (layout, needed) = (.cmyk, 4)
        case 9: (layout, needed) = (.lab, 3)
        default: throw .unsupported("PSD of mode \(structure.mode)")
        }
        guard structure.channels >= needed, structure.channels <= 56, structure.mode != 2 || structure.depth == 8 else {
            throw .corrupt("\(structure.channels) channels")
        }
        guard let offset = structure.pictureOffset else { throw .truncated("no merged picture") }
        pictureOffset = offset
    }

    func decode(longSide: Int, budget: MemoryBudget) throws(Failure) -> DecodedPicture {
        let size = structure.size
        let raster = try Raster(size: size, layout: layout, depth: structure.depth, budget: budget)
        guard let compression = bytes.u16(at: pictureOffset), let rowBytes = product(size.width, structure.depth / 8)
        else {
            throw .truncated("no merged picture")
        }
        let planes = structure.mode == 2 ? 1 : layout.channelCount
        var rows: PSDRows
        switch compression {
        case 0: rows = PSDRows(plain: bytes, at: pictureOffset + 2, rowBytes: rowBytes)
        case 1:
            rows = try PSDRows(
                packed: bytes, at: pictureOffset + 2, rowBytes: rowBytes,
                rowCount: product(size.height, structure.channels),
                lengthBytes: structure.isLarge ? 4 : 2)
        default: throw .unsupported("PSD of compression \(compression)")
        }
        var line = [UInt8](repeating: 0, count: rowBytes)
        for plane in 0..<planes {
            for y in 0..<size.height {
                guard rows.next(into: &line) else { throw .truncated("row \(y) of channel \(plane)") }
                place(line, in: raster, row: y, plane: plane)
            }
        }
        return DecodedPicture(raster: raster, encoding: layout == .lab ? .plain : header.encoding)
    }

    private func place(_ line: [UInt8], in raster: Raster, row: Int, plane: Int) {
        let channels = raster.layout.channelCount
        // Photoshop stores ink upside down.
        let flip: UInt8 = layout == .cmyk ? 255 : 0
        if structure.mode == 2 {
            let output = raster.row(row).assumingMemoryBound(to: UInt8.self)
            for (x, index) in line.enumerated() {
                for channel in 0..<3 {
                    output[x * 3 + channel] = structure.palette.byte(at: channel * 256 + Int(index)) ?? 0
                }
            }
        } else if structure.depth == 8 {
            let output = raster.row(row).assumingMemoryBound(to: UInt8.self)
            for (x, value) in line.enumerated() { output[x * channels + plane] = value ^ flip }
        } else {
            let output = raster.row(row).assumingMemoryBound(to: UInt16.self)
            for x in 0..<raster.size.width {
                output[x * channels + plane] = UInt16(line[x * 2] ^ flip) << 8 | UInt16(line[x * 2 + 1] ^ flip)
            }
        }
    }
}

/// The rows of all planes, one after the other, plain or by PackBits.
private struct PSDRows {
    /// Two bytes stand for 128 at most.
    private static let bytesPerPackedByteMax = 64

    private let bytes: ByteView
    private let rowBytes: Int
    private var offset: Int
    /// Where the packed rows' lengths are, and how wide each is; 0 for plain rows.
    private var lengthOffset = 0
    private var lengthBytes = 0

    init(plain bytes: ByteView, at offset: Int, rowBytes: Int) {
        self.bytes = bytes
        self.rowBytes = rowBytes
        self.offset = offset
    }

    init(packed bytes: ByteView, at offset: Int, rowBytes: Int, rowCount: Int?, lengthBytes: Int) throws(Failure) {
        self.bytes = bytes
        self.rowBytes = rowBytes
        self.lengthBytes = lengthBytes
        lengthOffset = offset
        guard let rowCount, let table = product(rowCount, lengthBytes), let start = sum(offset, table) else {
            throw .corrupt("row table")
        }
        self.offset = start
        guard let lengths = bytes.slice(at: offset, count: table) else { throw .truncated("row table") }
        var packed = 0
        for row in 0..<rowCount {
            let place = row * lengthBytes
            packed += lengthBytes == 2 ? Int(lengths.u16(at: place) ?? 0) : Int(lengths.u32(at: place) ?? 0)
        }
        // Found before any row is unpacked.
        guard let least = product(rowCount, rowBytes), packed >= least / Self.bytesPerPackedByteMax else {
            throw .corrupt("\(packed) bytes of packed rows for \(rowCount) of \(rowBytes) bytes")
        }
    }

    /// - Returns: false where the file ends.
    mutating func next(into line: inout [UInt8]) -> Bool {
        guard lengthBytes > 0 else {
            guard let row = bytes.slice(at: offset, count: rowBytes) else { return false }
            line.withUnsafeMutableBytes { $0.copyMemory(from: row.bytes) }
            offset += rowBytes
            return true
        }
        let length =
            lengthBytes == 2 ? bytes.u16(at: lengthOffset).map(Int.init) : bytes.u32(at: lengthOffset).map(Int.init)
        lengthOffset += lengthBytes
        guard let length, let packed = bytes.slice(at: offset, count: length) else { return false }
        offset += length
        unpack(packed, into: &line)
        return true
    }

    /// PackBits: a count below 128 copies, above it repeats; a row that is short stays black at its end.
    private func unpack(_ packed: ByteView, into line: inout [UInt8]) {
        var (from, to) = (0, 0)
        while from < packed.count, to < line.count {
            let head = Int(packed.bytes[from])
            from += 1
            if head < 128 {
                let count = min(head + 1, packed.count - from, line.count - to)
                for index in 0..<count { line[to + index] = packed.bytes[from + index] }
                (from, to) = (from + head + 1, to + count)
            } else if head > 128, from < packed.count {
                let count = min(257 - head, line.count - to)
                for index in 0..<count { line[to + index] = packed.bytes[from] }
                (from, to) = (from + 1, to + count)
            }
        }
        while to < line.count {
            line[to] = 0
            to += 1
        }
    }
}
