import Vocabulary

extension Raster {
    /// The picture turned upright.
    func turned(_ orientation: Orientation, budget: MemoryBudget) throws(Failure) -> Raster {
        guard orientation != .upright else { return self }
        let result = try Raster(size: orientation.size(ofStored: size), layout: layout, depth: depth, budget: budget)
        let pixelBytes = layout.channelCount * (depth / 8)
        guard let from = pixels.baseAddress, let to = result.pixels.baseAddress else { return self }
        // Along a row of the result the source moves by one fixed step.
        for y in 0..<result.size.height {
            let start = orientation.source(x: 0, y: y, stored: size)
            let second = orientation.source(x: 1, y: y, stored: size)
            let step = ((second.y - start.y) * size.width + (second.x - start.x)) * pixelBytes
            var read = from + (start.y * size.width + start.x) * pixelBytes
            var write = to + y * result.rowBytes
            for _ in 0..<result.size.width {
                for byte in 0..<pixelBytes {
                    write.storeBytes(
                        of: read.load(fromByteOffset: byte, as: UInt8.self), toByteOffset: byte, as: UInt8.self)
                }
                read += step
                write += pixelBytes
            }
        }
        return result
    }
}
