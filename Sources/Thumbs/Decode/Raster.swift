import Vocabulary

/// Decoded pixels: interleaved, 8 bits a sample or 16 over the full range in this machine's byte order, rows without gaps.
final class Raster {
    enum Layout: Int, Sendable {
        case grey = 1
        case greyAlpha = 2
        case rgb = 3
        case rgba = 4
        /// Ink: 0 is paper.
        case cmyk = 5
        /// CIE L*a*b* in ICC's encoding.
        case lab = 6

        var channelCount: Int {
            switch self {
            case .grey: 1
            case .greyAlpha: 2
            case .rgb, .lab: 3
            case .rgba, .cmyk: 4
            }
        }
        var hasAlpha: Bool { self == .greyAlpha || self == .rgba }
        var withoutAlpha: Layout { self == .greyAlpha ? .grey : self == .rgba ? .rgb : self }
    }

    let size: PixelSize
    private(set) var layout: Layout
    /// 8 or 16.
    let depth: Int
    let pixels: UnsafeMutableRawBufferPointer
    /// True where the colours are already multiplied by alpha.
    var isPremultiplied = false

    /// Not cleared: every decoder fills all of it or clears it first.
    init(size: PixelSize, layout: Layout, depth: Int, budget: MemoryBudget) throws(Failure) {
        let count = Self.byteCount(size, layout: layout, depth: depth)
        try budget.admit(count)
        guard let count, count > 0 else { throw Failure(.corrupt, "The picture has no pixels.") }
        self.size = size
        self.layout = layout
        self.depth = depth
        pixels = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 64)
    }

    deinit { pixels.deallocate() }

    /// Nil when it does not fit.
    static func byteCount(_ size: PixelSize, layout: Layout, depth: Int) -> Int? {
        product(size.width, size.height, layout.channelCount, depth / 8)
    }

    var rowBytes: Int { size.width * layout.channelCount * (depth / 8) }
    func row(_ y: Int) -> UnsafeMutableRawPointer { pixels.baseAddress.unsafelyUnwrapped + y * rowBytes }
    func clear() { pixels.initializeMemory(as: UInt8.self, repeating: 0) }

    /// Grey three times; itself where it is RGB.
    func asRGB(budget: MemoryBudget) throws(Failure) -> Raster {
        guard layout == .grey else { return self }
        let result = try Raster(size: size, layout: .rgb, depth: depth, budget: budget)
        func spread<Sample: FixedWidthInteger>(_: Sample.Type) {
            let (from, to) = (pixels.bindMemory(to: Sample.self), result.pixels.bindMemory(to: Sample.self))
            for index in 0..<(size.width * size.height) {
                for channel in 0..<3 { to[index * 3 + channel] = from[index] }
            }
        }
        if depth == 8 { spread(UInt8.self) } else { spread(UInt16.self) }
        return result
    }

    /// Another picture is about to be read into it, as it was made for.
    func reuse(as layout: Layout) { self.layout = layout }

    /// Lays the picture on white, in place.
    /// - Parameter paper: what white is of the largest value, which it is in every layout that can have alpha but of HDR.
    func flattenOnWhite(paper: Double = 1) {
        guard layout.hasAlpha else { return }
        if depth == 8 { flatten(UInt8.self, UInt32.self, paper) } else { flatten(UInt16.self, UInt64.self, paper) }
        layout = layout.withoutAlpha
    }

    private func flatten<Sample: FixedWidthInteger & UnsignedInteger, Wide: FixedWidthInteger & UnsignedInteger>(
        _: Sample.Type, _: Wide.Type, _ paper: Double
    ) {
        let colors = layout.channelCount - 1
        let samples = pixels.bindMemory(to: Sample.self)
        let white = Wide(Sample.max)
        let sheet = Wide((Double(Sample.max) * paper).rounded())
        let premultiplied = isPremultiplied
        var (from, to) = (0, 0)
        for _ in 0..<(size.width * size.height) {
            let alpha = Wide(samples[from + colors])
            let below = sheet * (white - alpha)
            for channel in 0..<colors {
                let value = Wide(samples[from + channel])
                let above = premultiplied ? min(value, alpha) * white : value * alpha
                samples[to + channel] = Sample(truncatingIfNeeded: (above + below + white / 2) / white)
            }
            from += colors + 1
            to += colors
        }
    }
}

extension Raster {
    /// From TIFF's numbers for L*a*b* to those of ICC's profiles of version 4, in place.
    /// - Parameter hasSignedColors: a* and b* count from -128; else 16 bits are those of version 2.
    func countAsICC(hasSignedColors: Bool) {
        if depth == 8 {
            guard hasSignedColors else { return }
            for index in pixels.indices where index % 3 != 0 { pixels[index] ^= 0x80 }
            return
        }
        let samples = pixels.bindMemory(to: UInt16.self)
        for index in samples.indices {
            let isLightness = index % 3 == 0
            // 256 steps of 8 bits come to 65280, or to 65535; lightness is counted so in the first way only.
            if isLightness, hasSignedColors { continue }
            let value = hasSignedColors ? samples[index] ^ 0x8000 : samples[index]
            samples[index] = UInt16(min(UInt32(value) + UInt32(value >> 8), 65535))
        }
    }
}
