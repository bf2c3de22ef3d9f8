import FFmpeg
import Glibc
import Vocabulary

/// Makes JPEGs of decoded frames.
enum StillRenderer {
    /// Pixels along each side of the thumbnail by which a frame is judged.
    private static let lookSide = 32

    static func look(_ frame: borrowing Frame) throws(Failure) -> PosterPolicy.Look {
        guard let gray = PixelFormat(named: "gray") else { preconditionFailure("libavutil has always had gray") }
        let small = try Scaler.make(from: frame, width: lookSide, height: lookSide, format: gray).scale(frame)
        let luma = small.withPlane(0) { first, stride in
            (0..<lookSide).flatMap { row in (0..<lookSide).map { Double(first[row * stride + $0]) } }
        }
        guard let luma else { return PosterPolicy.Look(mean: 0, deviation: 0) }
        let mean = luma.reduce(0, +) / Double(luma.count)
        let variance = luma.reduce(0) { $0 + ($1 - mean) * ($1 - mean) } / Double(luma.count)
        return PosterPolicy.Look(mean: mean, deviation: variance.squareRoot())
    }

    /// - Returns: the JPEG's size.
    static func write(
        _ frame: borrowing Frame, of facts: VideoFacts, longSide: Int, quality: Int, threads: Int, name: OutputName,
        role: FileRole,
        sink: any OutputSink
    ) throws(Failure) -> (width: Int, height: Int) {
        let display = facts.displaySize
        let size = stillSize(display.width, display.height, longSide: longSide)
        let chain = PictureChain(facts, size: size, target: .still, fieldsBecomeFrames: false)
        let source = try frame.reference()
        source.pts = 0
        let graph = try FilterGraph.video(
            like: source, timeBase: Rational(1, 25), rate: Rational(25, 1), chain: chain.description, threads: threads)
        try graph.push(source)
        try graph.finish()
        let still = try Frame.allocate()
        guard try graph.pull(into: still) else {
            throw Failure(.internalError, "The still could not be made.", detail: chain.description)
        }
        let bytes = try JPEGStill.encode(still, quality: quality)
        try write(bytes, to: try sink.open(name))
        try sink.seal(
            name, role: role, contentType: "image/jpeg", width: size.width, height: size.height, duration: nil)
        return size
    }

    private static func write(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                pwrite(descriptor, buffer.baseAddress.map { $0 + done }, bytes.count - done, done)
            }
            if count < 0 {
                if errno == EINTR { continue }
                let detail = String(cString: strerror(errno))
                throw errno == ENOSPC
                    ? Failure(.diskFull, "There is no space left for the output; free some.", detail: detail)
                    : Failure(.ioError, "The output could not be written; check the disk.", detail: detail)
            }
            done += count
        }
    }
}
