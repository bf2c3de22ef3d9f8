import FFmpeg

/// What a filter graph is made for; a picture of another shape needs another graph.
struct FrameShape: Equatable {
    var width: Int
    var height: Int
    var format: PixelFormat

    init(width: Int, height: Int, format: PixelFormat) {
        self.width = width
        self.height = height
        self.format = format
    }
    init(_ frame: borrowing Frame) {
        self.init(width: frame.width, height: frame.height, format: frame.pixelFormat)
    }
}
