import FFmpeg
import Vocabulary

/// Makes JPEGs of decoded frames.
enum StillRenderer {
    /// Pixels along each side of the thumbnail by which a frame is judged.
    private static let lookSide = 32
    /// Pixels along the long side of the picture by which sharpness is judged.
    private static let sharpnessSide = 640

    static func look(_ frame: borrowing Frame) throws(Failure) -> PosterPolicy.Look {
        let near = stillSize(frame.width, frame.height, longSide: sharpnessSide)
        let gray = try Scaler.make(from: frame, width: near.width, height: near.height, format: .gray).scale(frame)
        let small = try Scaler.make(from: gray, width: lookSide, height: lookSide, format: .gray).scale(gray)
        let luma = small.withPlane(0) { first, stride in
            (0..<lookSide).flatMap { row in (0..<lookSide).map { Double(first[row * stride + $0]) } }
        }
        guard let luma else { return PosterPolicy.Look(mean: 0, deviation: 0) }
        let mean = luma.reduce(0, +) / Double(luma.count)
        let variance = luma.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(luma.count)
        let deviation = variance.squareRoot()
        return PosterPolicy.Look(
            mean: mean, deviation: deviation, sharpness: contrastOfNeighbours(gray) / max(deviation, 1))
    }

    /// Mean absolute Laplacian over four: how much a point differs from the mean of its neighbours.
    private static func contrastOfNeighbours(_ gray: borrowing Frame) -> Double {
        let width = gray.width, height = gray.height
        guard width > 2, height > 2 else { return 0 }
        let total = gray.withPlane(0) { first, stride in
            var total = 0
            for row in 1..<(height - 1) {
                let line = first + row * stride
                for column in 1..<(width - 1) {
                    let around =
                        Int(line[column - 1]) + Int(line[column + 1]) + Int(line[column - stride])
                        + Int(line[column + stride])
                    total += abs(4 * Int(line[column]) - around)
                }
            }
            return total
        }
        return Double(total ?? 0) / Double(4 * (width - 2) * (height - 2))
    }

    /// `#rrggbb`.
    /// - Parameter frame: in BT.709.
    static func meanColor(_ frame: borrowing Frame) throws(Failure) -> String? {
        let small = try Scaler.make(
            from: frame, width: lookSide, height: lookSide, format: .rgb24, matrix: "bt709"
        ).scale(frame)
        let sums = small.withPlane(0) { first, stride in
            (0..<3).map { channel in
                (0..<lookSide).reduce(0) { sum, row in
                    (0..<lookSide).reduce(sum) { $0 + Int(first[row * stride + $1 * 3 + channel]) }
                }
            }
        }
        let count = lookSide * lookSide
        return sums.map { sums in
            "#"
                + sums.map { sum in
                    let text = String((sum + count / 2) / count, radix: 16)
                    return text.count == 1 ? "0" + text : text
                }.joined()
        }
    }

    /// - Returns: the JPEG's size.
    static func write(
        _ frame: borrowing Frame, of facts: VideoFacts, longSide: Int, quality: Int, name: OutputName, role: FileRole,
        sink: any OutputSink
    ) throws(Failure) -> (width: Int, height: Int) {
        let display = facts.displaySize
        let size = stillSize(display.width, display.height, longSide: longSide)
        let chain = PictureChain(
            facts, shape: FrameShape(frame), size: size, target: .still, fieldsBecomeFrames: false)
        let bytes = try jpeg(frame, chain: chain.description, quality: quality)
        try writeAll(bytes, to: try sink.open(name))
        try sink.seal(
            name, role: role, contentType: "image/jpeg", width: size.width, height: size.height, duration: nil)
        return size
    }

    static func jpeg(_ frame: borrowing Frame, chain: String, quality: Int) throws(Failure) -> [UInt8] {
        let still = try Frame.allocate()
        try filter(frame, chain: chain, into: still)
        return try JPEGStill.encode(still, quality: quality)
    }

    /// One picture through a chain of its own.
    static func filter(_ frame: borrowing Frame, chain: String, into result: borrowing Frame) throws(Failure) {
        let source = try frame.reference()
        source.pts = 0
        let graph = try FilterGraph.video(
            like: source, timeBase: Rational(1, 25), rate: Rational(25, 1), chain: chain, threads: 1)
        try graph.push(source)
        try graph.finish()
        guard try graph.pull(into: result) else {
            throw Failure(.internalError, "The still could not be made.", detail: chain)
        }
    }
}
