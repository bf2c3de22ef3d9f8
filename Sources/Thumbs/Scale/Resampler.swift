import Foundation
import Vocabulary

/// Makes a picture smaller, from rows that come one after the other: whole blocks averaged down to between two and four times the size (beyond
/// 512-fold to more), then Lanczos of three lobes. Takes memory for a few rows only.
final class Resampler {
    /// The weights of one output sample: a run of input samples.
    struct Run {
        var first: Int
        var weights: [Float]
    }

    let result: Raster
    private let source: PixelSize
    private let target: PixelSize
    private let channels: Int
    /// Source pixels averaged along each side before the filter.
    private let block: Int
    /// After averaging; the last block of a row may be a part of one.
    private let reduced: PixelSize
    private let across: [Run]
    private let down: [Run]

    private let line: UnsafeMutablePointer<SIMD4<Float>>
    private let sums: UnsafeMutablePointer<UInt32>
    private let total: UnsafeMutablePointer<SIMD4<Float>>
    /// Rows already filtered across, as many as one output row can need.
    private let ring: UnsafeMutablePointer<SIMD4<Float>>
    private let depth: Int
    /// Rows that have come into the block that is being averaged.
    private var rowsInBlock = 0
    private var rowsLeft: Int
    /// Rows filtered across, and rows of the result.
    private var ready = 0
    private var written = 0

    /// Of so many pixels along each side, sums of 16 bits fit into 32.
    private static let blockMax = 256

    /// - Parameter layout: without alpha, of which nothing could be averaged.
    init(source: PixelSize, target: PixelSize, layout: Raster.Layout, depth bits: Int, budget: MemoryBudget)
        throws(Failure)
    {
        self.source = source
        self.target = target
        channels = layout.channelCount
        let reduction = min(source.width / max(target.width, 1), source.height / max(target.height, 1))
        let block = min(max(1, reduction / 2), Self.blockMax)
        self.block = block
        reduced = PixelSize(width: (source.width + block - 1) / block, height: (source.height + block - 1) / block)
        // About six weights for each sample.
        try budget.admit(product(reduced.width + reduced.height, 6 * MemoryLayout<Float>.size))
        across = Self.runs(extent: Double(source.width) / Double(block), count: reduced.width, target: target.width)
        down = Self.runs(extent: Double(source.height) / Double(block), count: reduced.height, target: target.height)
        depth = (down.map(\.weights.count).max() ?? 1) + 1
        rowsLeft = source.height
        try budget.admit(
            sum(
                product(reduced.width, 16), product(reduced.width, channels, 4), product(target.width, depth + 1, 16),
                Raster.byteCount(target, layout: layout, depth: bits)))
        result = try Raster(size: target, layout: layout, depth: bits, budget: budget)
        line = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: reduced.width)
        sums = UnsafeMutablePointer<UInt32>.allocate(capacity: reduced.width * channels)
        total = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: target.width)
        ring = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: target.width * depth)
        sums.update(repeating: 0, count: reduced.width * channels)
    }

    deinit {
        line.deallocate()
        sums.deallocate()
        total.deallocate()
        ring.deallocate()
    }

    /// A raster that is there already.
    static func run(_ raster: Raster, to target: PixelSize, budget: MemoryBudget) throws(Failure) -> Raster {
        guard raster.size != target else { return raster }
        let resampler = try Resampler(
            source: raster.size, target: target, layout: raster.layout, depth: raster.depth, budget: budget)
        for y in 0..<raster.size.height { resampler.take(raster.row(y)) }
        return resampler.result
    }

    /// - Parameters:
    ///   - extent: the source's length in averaged samples, with its fraction.
    ///   - origin: where in the first of them that begins.
    ///   - count: averaged samples there are.
    ///   - covered: the target's length in samples, with its fraction; nil means all of it.
    static func runs(
        extent: Double, origin: Double = 0, count: Int, target: Int, covered: Double? = nil
    ) -> [Run] {
        let scale = extent / (covered ?? Double(target))
        let stretch = max(scale, 1)
        let support = 3 * stretch
        return (0..<target).map { index in
            let center = origin + (Double(index) + 0.5) * scale - 0.5
            let first = max(0, Int((center - support).rounded(.up)))
            let last = min(count - 1, Int((center + support).rounded(.down)))
            // Beyond the samples the lobes add up to nothing.
            guard first <= last, center > -1, center < Double(count) else {
                return Run(first: min(max(Int(center.rounded()), 0), count - 1), weights: [1])
            }
            let raw = (first...last).map { lanczos((Double($0) - center) / stretch) }
            let total = raw.reduce(0, +)
            return Run(first: first, weights: raw.map { Float($0 / total) })
        }
    }

    private static func lanczos(_ x: Double) -> Double {
        let place = abs(x) * Double(lobeSteps)
        let index = Int(place)
        guard index + 1 < lobes.count else { return 0 }
        return lobes[index] + (lobes[index + 1] - lobes[index]) * (place - Double(index))
    }

    /// The filter's three lobes, looked up since sines cost more than the pixels that they weigh.
    private static let lobes = (0...3 * lobeSteps).map { step in
        let angle = Double.pi * Double(step) / Double(lobeSteps)
        return step == 0 ? 1 : 3 * sin(angle) * sin(angle / 3) / (angle * angle)
    }
    private static let lobeSteps = 1024

    /// The next row of the source. Rows behind the last are not looked at.
    func take(_ row: UnsafeMutableRawPointer) {
        if result.depth == 8 { take(row, UInt8.self) } else { take(row, UInt16.self) }
    }

    private func take<Sample: FixedWidthInteger & UnsignedInteger>(_ row: UnsafeMutableRawPointer, _: Sample.Type) {
        guard rowsLeft > 0 else { return }
        rowsLeft -= 1
        let samples = row.assumingMemoryBound(to: Sample.self)
        if block == 1 {
            spread(samples)
        } else {
            gather(samples)
            rowsInBlock += 1
            guard rowsInBlock == block || rowsLeft == 0 else { return }
            average()
            rowsInBlock = 0
        }
        filterAcross()
        ready += 1
        while written < target.height, down[written].first + down[written].weights.count <= ready {
            filterDown(Sample.self)
            written += 1
        }
    }

    private func spread<Sample: FixedWidthInteger & UnsignedInteger>(_ samples: UnsafeMutablePointer<Sample>) {
        if channels == 3 {
            for x in 0..<source.width {
                let pixel = samples + x * 3
                line[x] = SIMD4(Float(pixel[0]), Float(pixel[1]), Float(pixel[2]), 0)
            }
            return
        }
        for x in 0..<source.width {
            var value = SIMD4<Float>.zero
            for channel in 0..<channels { value[channel] = Float(samples[x * channels + channel]) }
            line[x] = value
        }
    }

    private func gather<Sample: FixedWidthInteger & UnsignedInteger>(_ samples: UnsafeMutablePointer<Sample>) {
        var (x, left) = (0, block)
        for start in stride(from: 0, to: source.width * channels, by: channels) {
            for channel in 0..<channels {
                sums[x * channels + channel] &+= UInt32(truncatingIfNeeded: samples[start + channel])
            }
            left -= 1
            if left == 0 { (x, left) = (x + 1, block) }
        }
    }

    private func average() {
        for x in 0..<reduced.width {
            let columns = min(block, source.width - x * block)
            let scale = 1 / Float(columns * rowsInBlock)
            var value = SIMD4<Float>.zero
            for channel in 0..<channels { value[channel] = Float(sums[x * channels + channel]) * scale }
            line[x] = value
        }
        sums.update(repeating: 0, count: reduced.width * channels)
    }

    private func filterAcross() {
        let row = ring + (ready % depth) * target.width
        for (x, run) in across.enumerated() {
            let from = line + run.first
            let value = run.weights.withUnsafeBufferPointer { weights in
                var value = SIMD4<Float>.zero
                for tap in 0..<weights.count { value += from[tap] * weights[tap] }
                return value
            }
            row[x] = value
        }
    }

    private func filterDown<Sample: FixedWidthInteger & UnsignedInteger>(_: Sample.Type) {
        let run = down[written]
        // Row by row, so that the innermost loop runs along memory. The half rounds.
        total.update(repeating: SIMD4(repeating: 0.5), count: target.width)
        for (tap, weight) in run.weights.enumerated() {
            let row = ring + ((run.first + tap) % depth) * target.width
            for x in 0..<target.width { total[x] += row[x] * weight }
        }
        let limit = SIMD4(repeating: Float(Sample.max))
        let output = result.row(written).assumingMemoryBound(to: Sample.self)
        for x in 0..<target.width {
            let value = total[x].clamped(lowerBound: .zero, upperBound: limit)
            for channel in 0..<channels { output[x * channels + channel] = Sample(value[channel]) }
        }
    }
}
