import FFmpeg
import Vocabulary

/// The storyboard's picture while its tiles are filled, in order.
final class Sprite {
    private static let quality = 75

    private let board: StoryboardPlan
    private let canvas: Frame
    private var scaler: Scaler?
    private var scaledShape: FrameShape?
    /// Tiles before it are filled.
    private(set) var tiles = 0

    private init(_ board: StoryboardPlan, _ canvas: consuming Frame) {
        self.board = board
        self.canvas = canvas
    }

    static func open(_ board: StoryboardPlan) throws(Failure) -> Sprite {
        let size = board.size(for: board.tileCount)
        let canvas = try Frame.allocate(width: size.width, height: size.height, format: .rgb24)
        canvas.withPlane(0) { first, stride in first.update(repeating: 0, count: stride * size.height) }
        return Sprite(board, canvas)
    }

    /// Whether the next tile stands for a moment before this one, in seconds.
    func wantsTile(before time: Double) -> Bool { tiles < board.tileCount && board.time(of: tiles) < time }

    /// - Parameter picture: in BT.709.
    func fillTile(with picture: borrowing Frame) throws(Failure) {
        let shape = FrameShape(picture)
        if scaledShape != shape {
            scaler = try Scaler.make(
                from: picture, width: board.tileWidth, height: board.tileHeight, format: .rgb24, matrix: "bt709")
            scaledShape = shape
        }
        guard let tile = try scaler?.scale(picture) else { return }
        let place = board.place(of: tiles), rowBytes = board.tileWidth * 3, rows = board.tileHeight
        tile.withPlane(0) { source, sourceStride in
            _ = canvas.withPlane(0) { target, targetStride in
                for row in 0..<rows {
                    (target + (place.y + row) * targetStride + place.x * 3).update(
                        from: source + row * sourceStride, count: rowBytes)
                }
            }
        }
        tiles += 1
    }

    /// As far as it is filled.
    func jpeg() throws(Failure) -> (bytes: [UInt8], width: Int, height: Int) {
        let filled = board.size(for: tiles)
        let crop = "crop=\(filled.width):\(filled.height):0:0:exact=1"
        let chain = PictureChain(filters: [crop] + PictureChain.still(ofRGB: filled).filters)
        let bytes = try StillRenderer.jpeg(canvas, chain: chain.description, quality: Self.quality)
        return (bytes, filled.width, filled.height)
    }

    /// - Parameter end: seconds at which the last tile's stretch stops.
    func index(end: Double, link: String) -> String { board.index(count: tiles, end: end, link: link) }
}
