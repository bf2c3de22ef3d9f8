import CTurboJPEG
import Vocabulary

/// One component of a picture: 8 bits a sample.
final class Plane {
    let size: PixelSize
    /// What of the samples is picture: the last row and column may cover only a part of one.
    let extent: (width: Double, height: Double)
    /// Where in the first sample the picture begins: after a turn the sample that is covered in part may be the first.
    let origin: (x: Double, y: Double)
    /// Bytes from one row to the next. A row and a column more than `size` can be read and written.
    let rowBytes: Int
    let samples: UnsafeMutablePointer<UInt8>
    private let isOwner: Bool

    /// Not cleared.
    init(
        _ size: PixelSize, extent: (width: Double, height: Double)? = nil, origin: (x: Double, y: Double) = (0, 0),
        budget: MemoryBudget
    ) throws(Failure) {
        let count = Self.byteCount(size)
        try budget.admit(count)
        guard let count, count > 0, size.width > 0, size.height > 0 else {
            throw Failure(.corrupt, "The picture has no pixels.")
        }
        self.size = size
        self.extent = extent ?? (Double(size.width), Double(size.height))
        self.origin = origin
        rowBytes = Self.rowBytes(size.width)
        samples = UnsafeMutablePointer<UInt8>.allocate(capacity: count)
        isOwner = true
    }
    /// Samples of somebody else, to be read while that one lives.
    init(
        borrowing samples: UnsafePointer<UInt8>, rowBytes: Int, _ size: PixelSize,
        extent: (width: Double, height: Double)? = nil
    ) {
        self.size = size
        self.extent = extent ?? (Double(size.width), Double(size.height))
        origin = (0, 0)
        self.rowBytes = rowBytes
        self.samples = UnsafeMutablePointer(mutating: samples)
        isOwner = false
    }
    deinit { if isOwner { samples.deallocate() } }

    private static func rowBytes(_ width: Int) -> Int { (width + 1 + 15) / 16 * 16 }
    /// Nil when it does not fit.
    static func byteCount(_ size: PixelSize) -> Int? { product(rowBytes(size.width), size.height + 1) }

    func row(_ y: Int) -> UnsafeMutablePointer<UInt8> { samples + y * rowBytes }

    /// The last column and row once more beside themselves: an encoder reads an even number.
    func repeatEdges() {
        for y in 0..<size.height { row(y)[size.width] = row(y)[size.width - 1] }
        row(size.height).update(from: row(size.height - 1), count: size.width + 1)
    }
}

/// A picture as JPEG keeps it: luma alone, or luma and two planes of chroma, in full-range BT.601 of whatever primaries.
struct Planes {
    /// One or three.
    var components: [Plane]

    var size: PixelSize { components[0].size }
    var isGrey: Bool { components.count == 1 }
    /// Of one plane of chroma in 4:2:0.
    static func chromaSize(_ size: PixelSize) -> PixelSize {
        PixelSize(width: (size.width + 1) / 2, height: (size.height + 1) / 2)
    }
    /// Of a picture in 4:2:0, as it is kept for writing; nil when it does not fit.
    static func byteCount(_ size: PixelSize) -> Int? {
        sum(Plane.byteCount(size), Plane.byteCount(chromaSize(size)), Plane.byteCount(chromaSize(size)))
    }

    /// In the size given. In 4:2:0, as all planes are kept once they have their size.
    func scaled(to target: PixelSize, budget: MemoryBudget) throws(Failure) -> Planes {
        var result: [Plane] = []
        for (index, plane) in components.enumerated() {
            let (size, extent) = Self.shape(index, of: target)
            result.append(try PlaneScaler.scale(plane, to: size, extent: extent, budget: budget))
        }
        return Planes(components: result)
    }

    /// Of one component in 4:2:0. A chroma sample covers two columns of luma, of which the last may lie outside.
    static func shape(_ component: Int, of size: PixelSize) -> (PixelSize, (width: Double, height: Double)) {
        let part = component == 0 ? 1.0 : 2.0
        return (
            component == 0 ? size : chromaSize(size), (Double(size.width) / part, Double(size.height) / part)
        )
    }

    /// Turned upright. In 4:2:0 each plane turns like the picture, and then the samples of chroma cover pairs of columns and rows from the first
    /// on again.
    func turned(_ orientation: Orientation, budget: MemoryBudget) throws(Failure) -> Planes {
        guard orientation != .upright else { return self }
        var result: [Plane] = []
        for plane in components {
            let turned = try plane.turned(orientation, budget: budget)
            result.append(
                try PlaneScaler.scale(turned, to: turned.size, extent: turned.extent, budget: budget))
        }
        return Planes(components: result)
    }
}

// MARK: - RGB

extension Planes {
    /// From 8-bit grey or RGB.
    init(_ raster: Raster, budget: MemoryBudget) throws(Failure) {
        let luma = try Plane(raster.size, budget: budget)
        guard raster.layout == .rgb, raster.depth == 8 else {
            guard raster.layout == .grey, raster.depth == 8 else {
                throw Failure(.internalError, "The picture could not be written.", detail: "layout \(raster.layout)")
            }
            for y in 0..<raster.size.height {
                luma.row(y).update(
                    from: raster.row(y).assumingMemoryBound(to: UInt8.self), count: raster.size.width)
            }
            self.init(components: [luma])
            return
        }
        let (chroma, extent) = Self.shape(1, of: raster.size)
        self.init(components: [
            luma, try Plane(chroma, extent: extent, budget: budget), try Plane(chroma, extent: extent, budget: budget),
        ])
        let encoder = try TurboJPEG.compressor()
        var planes = components.map { Optional($0.samples) }
        var strides = components.map { Int32($0.rowBytes) }
        let status = tjEncodeYUVPlanes(
            encoder.pointer, raster.pixels.bindMemory(to: UInt8.self).baseAddress, Int32(raster.size.width), 0,
            Int32(raster.size.height), Int32(TJPF_RGB.rawValue), &planes, &strides, Int32(TJSAMP_420.rawValue), 0)
        guard status == 0 else { throw encoder.failure() }
    }

    /// In 4:2:0 of JPEG's coding.
    func raster(budget: MemoryBudget) throws(Failure) -> Raster {
        let raster = try Raster(size: size, layout: isGrey ? .grey : .rgb, depth: 8, budget: budget)
        guard !isGrey else {
            for y in 0..<size.height {
                raster.row(y).copyMemory(from: components[0].row(y), byteCount: size.width)
            }
            return raster
        }
        let decoder = try TurboJPEG.decompressor()
        for plane in components { plane.repeatEdges() }
        var planes = components.map { Optional(UnsafePointer($0.samples)) }
        var strides = components.map { Int32($0.rowBytes) }
        let status = tjDecodeYUVPlanes(
            decoder.pointer, &planes, &strides, Int32(TJSAMP_420.rawValue),
            raster.pixels.bindMemory(to: UInt8.self).baseAddress, Int32(size.width), 0, Int32(size.height),
            Int32(TJPF_RGB.rawValue), 0)
        guard status == 0 else { throw decoder.failure() }
        return raster
    }
}

/// A handle of TurboJPEG's.
final class TurboJPEG {
    let pointer: tjhandle

    private init(owning pointer: tjhandle?) throws(Failure) {
        guard let pointer else { throw Failure(.internalError, "TurboJPEG could not be started.") }
        self.pointer = pointer
    }
    deinit { tjDestroy(pointer) }

    static func compressor() throws(Failure) -> TurboJPEG { try TurboJPEG(owning: tjInitCompress()) }
    static func decompressor() throws(Failure) -> TurboJPEG { try TurboJPEG(owning: tjInitDecompress()) }

    var words: String { String(cString: tjGetErrorStr2(pointer)) }
    /// What went wrong was damage in the bytes that the decoder could go on behind.
    var wasOnlyWarning: Bool { tjGetErrorCode(pointer) == Int32(TJERR_WARNING.rawValue) }
    func failure() -> Failure { Failure(.internalError, "The picture could not be converted.", detail: words) }
}
