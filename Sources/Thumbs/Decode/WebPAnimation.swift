import CWebP
import FFmpeg
import Vocabulary

/// All pictures of an animated WebP, each on its canvas, by libwebpdemux.
final class WebPAnimation: AnimationSource {
    private let bytes: ByteView
    private let decoder: OpaquePointer
    private let size: PixelSize
    /// Milliseconds.
    private var shownUntil: Int32 = 0

    init(_ bytes: ByteView, size: PixelSize) throws(Failure) {
        self.bytes = bytes
        self.size = size
        decoder = try WebPFile.animation(bytes, size: size)
    }
    deinit { WebPAnimDecoderDelete(decoder) }

    /// - Returns: nil at the end.
    func next() throws(Failure) -> AnimationPicture? {
        guard WebPAnimDecoderHasMoreFrames(decoder) != 0 else { return nil }
        var canvas: UnsafeMutablePointer<UInt8>?
        // Of a frame, libwebp says when it ends.
        var end: Int32 = 0
        guard WebPAnimDecoderGetNext(decoder, &canvas, &end) != 0, let canvas else { throw .corrupt("no frame") }
        let pixels = [UInt8](UnsafeBufferPointer(start: canvas, count: size.width * size.height * 4))
        let milliseconds = max(0, Int(end) - Int(shownUntil))
        shownUntil = max(end, shownUntil)
        return AnimationPicture(
            image: RGBAImage(width: size.width, height: size.height, pixels: pixels, hasAlpha: true),
            duration: AnimationDelay.shown(Double(milliseconds) / 1000))
    }
}
