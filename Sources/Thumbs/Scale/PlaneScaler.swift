import CPlanes
import Foundation
import Vocabulary

/// Makes a plane of samples smaller (or larger) by Lanczos of three lobes, in fixed point, from rows that come a few at a time.
final class PlaneScaler {
    /// Of a plane that rows come of.
    struct Source {
        var size: PixelSize
        /// What of it is picture, in samples.
        var extent: (width: Double, height: Double)
        /// Where in the first sample that begins.
        var origin: (x: Double, y: Double) = (0, 0)
        /// Samples that a row has room for.
        var rowSamples: Int
        var rowsAtATime: Int

        func hasShape(of other: Source) -> Bool {
            size == other.size && extent == other.extent && origin == other.origin
        }
    }

    /// What 1 is in the weights.
    private static let one = 16384

    let result: Plane
    private let source: Source
    private let across: Filter
    private let down: Filter
    /// The last rows that came, as many as one row of the result can need beside those that are to come: row n at n modulo its length.
    private let ring: [UnsafeMutablePointer<UInt8>]
    private let ringStore: UnsafeMutablePointer<UInt8>
    private let line: UnsafeMutablePointer<Int16>
    private var taps: [UnsafePointer<UInt8>?]
    private var arrived = 0
    private var written = 0

    /// - Parameters:
    ///   - extent: what of the target is picture; nil means all of it.
    ///   - other: its weights are taken where both planes are of the same shape, as those of chroma mostly are.
    init(
        _ source: Source, to target: PixelSize, extent: (width: Double, height: Double)? = nil,
        sharing other: PlaneScaler? = nil,
        budget: MemoryBudget
    ) throws(Failure) {
        let covered = extent ?? (Double(target.width), Double(target.height))
        self.source = source
        let alike = other.flatMap {
            $0.source.hasShape(of: source) && $0.result.size == target && $0.result.extent == covered ? $0 : nil
        }
        across =
            alike?.across
            ?? Filter(
                extent: source.extent.width, origin: source.origin.x, count: source.size.width, target: target.width,
                covered: covered.width)
        down =
            alike?.down
            ?? Filter(
                extent: source.extent.height, origin: source.origin.y, count: source.size.height, target: target.height,
                covered: covered.height)
        let rowBytes = (source.rowSamples + 31) / 16 * 16
        let rowCount = down.stride + source.rowsAtATime
        try budget.admit(product(rowBytes, rowCount))
        result = try Plane(target, extent: covered, budget: budget)
        let store = UnsafeMutablePointer<UInt8>.allocate(capacity: rowBytes * rowCount)
        ringStore = store
        ring = (0..<rowCount).map { store + $0 * rowBytes }
        // Behind a row there is room for the last sample's zeros.
        line = UnsafeMutablePointer<Int16>.allocate(capacity: source.size.width + across.stride)
        line.update(repeating: 0, count: source.size.width + across.stride)
        taps = [UnsafePointer<UInt8>?](repeating: nil, count: down.stride)
    }
    deinit {
        ringStore.deallocate()
        line.deallocate()
    }

    /// Where the next rows are to be written.
    var next: [UnsafeMutablePointer<UInt8>?] {
        (0..<source.rowsAtATime).map { ring[(arrived + $0) % ring.count] }
    }

    /// The next rows have been written; those behind the plane's last are not looked at.
    func advance() {
        arrived = min(arrived + source.rowsAtATime, source.size.height)
        while written < result.size.height, down.end(of: written) <= arrived {
            let first = Int(down.first[written])
            let count = down.counts[written]
            for tap in 0..<count { taps[tap] = UnsafePointer(ring[(first + tap) % ring.count]) }
            filter(count)
        }
    }

    /// A plane that is there already.
    static func scale(
        _ plane: Plane, to target: PixelSize, extent: (width: Double, height: Double)? = nil, budget: MemoryBudget
    ) throws(Failure) -> Plane {
        if plane.size == target, plane.extent == extent ?? (Double(target.width), Double(target.height)),
            plane.origin == (0, 0)
        {
            return plane
        }
        return try scaledCopy(of: plane, to: target, extent: extent, budget: budget)
    }

    /// Of samples that will be gone.
    static func scaledCopy(
        of plane: Plane, to target: PixelSize, extent: (width: Double, height: Double)? = nil, budget: MemoryBudget
    ) throws(Failure) -> Plane {
        let scaler = try PlaneScaler(
            Source(size: plane.size, extent: plane.extent, origin: plane.origin, rowSamples: 0, rowsAtATime: 0),
            to: target, extent: extent,
            budget: budget)
        while scaler.written < target.height {
            let first = Int(scaler.down.first[scaler.written])
            let count = scaler.down.counts[scaler.written]
            for tap in 0..<count { scaler.taps[tap] = UnsafePointer(plane.row(first + tap)) }
            scaler.filter(count)
        }
        return scaler.result
    }

    /// The next row of the result, from the rows in `taps`.
    private func filter(_ count: Int) {
        down.weights.withUnsafeBufferPointer { weights in
            guard let weights = weights.baseAddress else { return }
            rushes_planes_down(
                &taps, weights + written * down.stride, Int32(count), line, Int32(source.size.width))
        }
        rushes_planes_across(
            line, across.first, across.weights, Int32(across.stride), result.row(written), Int32(result.size.width))
        written += 1
    }

    /// The weights of one side.
    private struct Filter {
        var first: [Int32]
        /// How many weights there are for each output sample.
        var counts: [Int]
        /// Of all outputs, each filled with zeros to `stride`.
        var weights: [Int16]
        var stride: Int

        /// - Parameters:
        ///   - extent: the source's length in samples, with its fraction.
        ///   - origin: where in the first sample that begins.
        ///   - count: samples there are.
        ///   - covered: the target's length, with its fraction.
        init(extent: Double, origin: Double, count: Int, target: Int, covered: Double) {
            let runs = Resampler.runs(extent: extent, origin: origin, count: count, target: target, covered: covered)
            first = runs.map { Int32($0.first) }
            counts = runs.map(\.weights.count)
            stride = ((counts.max() ?? 1) + 7) / 8 * 8
            weights = [Int16](repeating: 0, count: stride * target)
            for (index, run) in runs.enumerated() {
                var left = PlaneScaler.one
                var largest = 0
                for (tap, weight) in run.weights.enumerated() {
                    let fixed = Int((weight * Float(PlaneScaler.one)).rounded())
                    weights[index * stride + tap] = Int16(clamping: fixed)
                    left -= fixed
                    if weight > run.weights[largest] { largest = tap }
                }
                // What rounding left over, so that an even area keeps its value.
                weights[index * stride + largest] += Int16(clamping: left)
            }
        }

        /// The row behind the last that an output needs.
        func end(of output: Int) -> Int { Int(first[output]) + counts[output] }
    }
}
