import Vocabulary

/// How luma and chroma were made of RGB (ITU-T H.273, matrix coefficients and range).
struct YCbCrCoding: Equatable {
    /// Luma's shares of red and blue.
    private let red: Double
    private let blue: Double
    let isFullRange: Bool

    /// BT.601 in the full range (JFIF 1.02).
    static let jpeg = YCbCrCoding(red: 0.299, blue: 0.114, isFullRange: true)

    private init(red: Double, blue: Double, isFullRange: Bool) {
        (self.red, self.blue, self.isFullRange) = (red, blue, isFullRange)
    }

    /// - Returns: nil for what is not made of luma and two differences.
    init?(matrix: Int, isFullRange: Bool) {
        switch matrix {
        case 1: self.init(red: 0.2126, blue: 0.0722, isFullRange: isFullRange)
        case 2, 5, 6: self.init(red: 0.299, blue: 0.114, isFullRange: isFullRange)
        case 4: self.init(red: 0.30, blue: 0.11, isFullRange: isFullRange)
        case 7: self.init(red: 0.212, blue: 0.087, isFullRange: isFullRange)
        case 9: self.init(red: 0.2627, blue: 0.0593, isFullRange: isFullRange)
        default: return nil
        }
    }

    /// The planes can be written as they are.
    func isJPEGs(isGrey: Bool) -> Bool { isGrey ? isFullRange : self == .jpeg }

    /// - Parameter planes: in 4:2:0 of this coding, or grey.
    func raster(_ planes: Planes, budget: MemoryBudget) throws(Failure) -> Raster {
        if isJPEGs(isGrey: planes.isGrey) { return try planes.raster(budget: budget) }
        let size = planes.size
        let raster = try Raster(size: size, layout: planes.isGrey ? .grey : .rgb, depth: 8, budget: budget)
        // In 65536ths. Of 256 steps luma has 219 in the limited range, chroma 224 (BT.601, 2.5.3).
        let one = 65536.0
        let lumaScale = Int((isFullRange ? one : one * 255 / 219).rounded())
        let chromaScale = isFullRange ? one : one * 255 / 224
        let green = 1 - red - blue
        let fromCr = Int((2 * (1 - red) * chromaScale).rounded())
        let fromCb = Int((2 * (1 - blue) * chromaScale).rounded())
        let greenFromCr = Int((2 * (1 - red) * red / green * chromaScale).rounded())
        let greenFromCb = Int((2 * (1 - blue) * blue / green * chromaScale).rounded())
        let black = isFullRange ? 0 : 16
        func clamped(_ value: Int) -> UInt8 { UInt8(truncatingIfNeeded: min(max((value + 32768) >> 16, 0), 255)) }
        for y in 0..<size.height {
            let luma = planes.components[0].row(y)
            let output = raster.row(y).assumingMemoryBound(to: UInt8.self)
            guard !planes.isGrey else {
                for x in 0..<size.width { output[x] = clamped((Int(luma[x]) - black) * lumaScale) }
                continue
            }
            let (cbs, crs) = (planes.components[1].row(y / 2), planes.components[2].row(y / 2))
            for x in 0..<size.width {
                let light = (Int(luma[x]) - black) * lumaScale
                let (cb, cr) = (Int(cbs[x / 2]) - 128, Int(crs[x / 2]) - 128)
                output[x * 3] = clamped(light + cr * fromCr)
                output[x * 3 + 1] = clamped(light - cr * greenFromCr - cb * greenFromCb)
                output[x * 3 + 2] = clamped(light + cb * fromCb)
            }
        }
        return raster
    }
}
