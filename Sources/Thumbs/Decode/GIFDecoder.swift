import Vocabulary

/// LZW of variable code size, as GIF packs its colour indices.
struct GIFDecoder {
    private static let codeSizeMax = 12
    private let image: GIFStructure.Image

    init(_ image: GIFStructure.Image) { self.image = image }

    /// - Returns: as many indices as the image has pixels, fewer where the data ends or breaks.
    func indices() -> [UInt8] {
        guard (1...8).contains(image.minimumCodeSize), let wanted = image.size.area else { return [] }
        let (clear, end) = (1 << image.minimumCodeSize, 1 << image.minimumCodeSize + 1)
        var output: [UInt8] = []
        output.reserveCapacity(wanted)
        var prefix = [UInt16](repeating: 0, count: 1 << Self.codeSizeMax)
        var suffix = [UInt8](repeating: 0, count: 1 << Self.codeSizeMax)
        var stack = [UInt8](repeating: 0, count: 1 << Self.codeSizeMax)
        for index in 0..<clear { suffix[index] = UInt8(truncatingIfNeeded: index) }
        var (codeSize, next, previous, firstByte) = (image.minimumCodeSize + 1, clear + 2, -1, UInt8(0))
        var (bits, bitCount) = (0, 0)

        for block in image.blocks {
            for byte in block.bytes {
                bits |= Int(byte) << bitCount
                bitCount += 8
                while bitCount >= codeSize {
                    let code = bits & ((1 << codeSize) - 1)
                    bits >>= codeSize
                    bitCount -= codeSize
                    if code == clear {
                        (codeSize, next, previous) = (image.minimumCodeSize + 1, clear + 2, -1)
                        continue
                    }
                    if code == end { return output }
                    if previous < 0 {
                        guard code < clear else { return output }
                        output.append(suffix[code])
                        (previous, firstByte) = (code, suffix[code])
                    } else {
                        // The one code that may be used before it is complete is the next one.
                        guard code <= next, code != next || next < 1 << Self.codeSizeMax else { return output }
                        var depth = 0
                        var walk = code
                        if code == next {
                            stack[0] = firstByte
                            depth = 1
                            walk = previous
                        }
                        while walk >= clear, depth < stack.count {
                            stack[depth] = suffix[walk]
                            depth += 1
                            walk = Int(prefix[walk])
                        }
                        guard depth < stack.count else { return output }
                        firstByte = suffix[walk]
                        output.append(firstByte)
                        while depth > 0 {
                            depth -= 1
                            output.append(stack[depth])
                        }
                        if next < 1 << Self.codeSizeMax {
                            prefix[next] = UInt16(truncatingIfNeeded: previous)
                            suffix[next] = firstByte
                            next += 1
                            if next == 1 << codeSize, codeSize < Self.codeSizeMax { codeSize += 1 }
                        }
                        previous = code
                    }
                    if output.count >= wanted { return output }
                }
            }
        }
        return output
    }

    /// Draws the image on a canvas that is transparent where it draws nothing.
    /// - Returns: how many of its pixels there were, and how many of them fell on the canvas.
    func draw(on canvas: Raster) -> (decoded: Int, drawn: Int) {
        canvas.clear()
        let found = indices()
        let colors = image.palette
        let order = rowOrder()
        var drawn = 0
        for (index, value) in found.enumerated() {
            let (column, line) = (index % max(image.size.width, 1), index / max(image.size.width, 1))
            guard line < order.count else { break }
            let (x, y) = (image.left + column, image.top + order[line])
            guard x < canvas.size.width, y < canvas.size.height else { continue }
            drawn += 1
            if value == image.transparentIndex { continue }
            let place = (y * canvas.size.width + x) * 4
            for channel in 0..<3 { canvas.pixels[place + channel] = colors.byte(at: Int(value) * 3 + channel) ?? 0 }
            canvas.pixels[place + 3] = 255
        }
        return (found.count, drawn)
    }

    /// Interlaced rows come as every 8th, every 8th from 4, every 4th from 2, every 2nd from 1.
    private func rowOrder() -> [Int] {
        guard image.isInterlaced else { return Array(0..<image.size.height) }
        return [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0.0, to: image.size.height, by: $0.1)) }
    }
}
