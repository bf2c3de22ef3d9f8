import Foundation
import Vocabulary

/// Makes a picture smaller: whole blocks averaged down to between two and four times the size, then Lanczos of three lobes.
/// One pass over the source, with memory for a few rows only.
struct Resampler {
    /// The weights of one output sample: a run of input samples.
    struct Run {
        var first: Int
        var weights: [Float]
    }

    let source: PixelSize
    let target: PixelSize
    /// Source pixels averaged along each side before the filter.
    let block: Int

    init(source: PixelSize, target: PixelSize) {
        self.source = source
        self.target = target
        let reduction = min(source.width / max(target.width, 1), source.height / max(target.height, 1))
        block = max(1, reduction / 2)
    }

    /// After averaging; the last block of a row may be a part of one.
    var reduced: PixelSize {
        PixelSize(width: (source.width + block - 1) / block, height: (source.height + block - 1) / block)
    }

    func run(_ raster: Raster, budget: MemoryBudget) throws(Failure) -> Raster {
        guard source != target else { return raster }
        let result = try Raster(size: target, layout: raster.layout, depth: raster.depth, budget: budget)
        if raster.depth == 8 {
            filter(raster, into: result, UInt8.self)
        } else {
            filter(raster, into: result, UInt16.self)
        }
        return result
    }

    /// - Parameters:
    ///   - extent: the source's length in averaged samples, with its fraction.
    ///   - count: averaged samples there are.
    ///   - covered: the target's length in samples, with its fraction; nil means all of it.
    static func runs(extent: Double, count: Int, target: Int, covered: Double? = nil) -> [Run] {
        let scale = extent / (covered ?? Double(target))
        let stretch = max(scale, 1)
        let support = 3 * stretch
        return (0..<target).map { index in
            let center = (Double(index) + 0.5) * scale - 0.5
            let first = max(0, Int((center - support).rounded(.up)))
            let last = min(count - 1, Int((center + support).rounded(.down)))
            guard first <= last else { return Run(first: min(max(Int(center.rounded()), 0), count - 1), weights: [1]) }
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

    private func filter<Sample: FixedWidthInteger & UnsignedInteger>(
        _ raster: Raster, into result: Raster, _: Sample.Type
    ) {
        let across = Self.runs(
            extent: Double(source.width) / Double(block), count: reduced.width, target: target.width)
        let down = Self.runs(
            extent: Double(source.height) / Double(block), count: reduced.height, target: target.height)
        let channels = raster.layout.channelCount
        let depth = (down.map(\.weights.count).max() ?? 1) + 1
        let line = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: reduced.width)
        let sums = UnsafeMutablePointer<UInt32>.allocate(capacity: reduced.width * channels)
        // Rows already filtered across, as many as one output row can need.
        let ring = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: target.width * depth)
        let acrossFirst = across.map(\.first)
        let acrossStart = across.reduce(into: [0]) { $0.append($0[$0.count - 1] + $1.weights.count) }
        let acrossWeights = across.flatMap(\.weights)
        defer {
            line.deallocate()
            sums.deallocate()
            ring.deallocate()
        }
        let total = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: target.width)
        defer { total.deallocate() }
        let limit = SIMD4(repeating: Float(Sample.max))
        var ready = 0
        for y in 0..<target.height {
            let run = down[y]
            while ready < run.first + run.weights.count {
                if ready >= run.first {
                    average(raster, row: ready, sums: sums, into: line, Sample.self)
                    Self.filterAcross(
                        line, into: ring + (ready % depth) * target.width, first: acrossFirst, start: acrossStart,
                        weights: acrossWeights)
                }
                ready += 1
            }
            // Row by row, so that the innermost loop runs along memory. The half rounds.
            total.update(repeating: SIMD4(repeating: 0.5), count: target.width)
            for (tap, weight) in run.weights.enumerated() {
                let row = ring + ((run.first + tap) % depth) * target.width
                for x in 0..<target.width { total[x] += row[x] * weight }
            }
            let output = result.row(y).assumingMemoryBound(to: Sample.self)
            for x in 0..<target.width {
                let value = total[x].clamped(lowerBound: .zero, upperBound: limit)
                for channel in 0..<channels { output[x * channels + channel] = Sample(value[channel]) }
            }
        }
    }

    private static func filterAcross(
        _ line: UnsafeMutablePointer<SIMD4<Float>>, into row: UnsafeMutablePointer<SIMD4<Float>>, first: [Int],
        start: [Int],
        weights: [Float]
    ) {
        weights.withUnsafeBufferPointer { weights in
            for x in 0..<first.count {
                var value = SIMD4<Float>.zero
                let from = line + first[x]
                let (begin, end) = (start[x], start[x + 1])
                for tap in begin..<end { value += from[tap - begin] * weights[tap] }
                row[x] = value
            }
        }
    }

    /// One row of averaged blocks, as floats of up to four channels.
    private func average<Sample: FixedWidthInteger & UnsignedInteger>(
        _ raster: Raster, row: Int, sums: UnsafeMutablePointer<UInt32>, into line: UnsafeMutablePointer<SIMD4<Float>>,
        _: Sample.Type
    ) {
        let channels = raster.layout.channelCount
        let rows = (row * block)..<min((row + 1) * block, source.height)
        if block == 1 {
            let samples = raster.row(row).assumingMemoryBound(to: Sample.self)
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
            return
        }
        sums.update(repeating: 0, count: reduced.width * channels)
        for y in rows {
            let samples = raster.row(y).assumingMemoryBound(to: Sample.self)
            var (x, left) = (0, block)
            for start in stride(from: 0, to: source.width * channels, by: channels) {
                for channel in 0..<channels {
                    sums[x * channels + channel] &+= UInt32(truncatingIfNeeded: samples[start + channel])
                }
                left -= 1
                if left == 0 { (x, left) = (x + 1, block) }
            }
        }
        for x in 0..<reduced.width {
            let columns = min(block, source.width - x * block)
            let scale = 1 / Float(columns * rows.count)
            var value = SIMD4<Float>.zero
            for channel in 0..<channels { value[channel] = Float(sums[x * channels + channel]) * scale }
            line[x] = value
        }
    }
}
