import Vocabulary

/// Which moments of a video are shown in its storyboard, and where in the picture each of them stands.
struct StoryboardPlan: Equatable {
    static let tileCountMax = 100
    static let columnMax = 10
    /// Seconds; a tile for less would show what its neighbours show.
    static let intervalMin = 1.0
    /// Pixels of a tile's long side.
    static let tileSide = 160

    var tileCount: Int
    /// Seconds from tile to tile.
    var interval: Double
    var tileWidth: Int
    var tileHeight: Int

    /// - Parameters:
    ///   - duration: of the picture, in seconds.
    ///   - display: the upright size.
    init(duration: Double, display: (width: Int, height: Int)) {
        let length = max(duration, 0.001)
        tileCount = max(1, min(Self.tileCountMax, Int((length / Self.intervalMin).rounded(.up))))
        interval = length / Double(tileCount)
        let bounds = PictureBounds(long: Self.tileSide, short: Self.tileSide)
        (tileWidth, tileHeight) = bounds.fit(display.width, display.height)
    }

    /// Seconds: the middle of the stretch for which the tile stands.
    func time(of tile: Int) -> Double { (Double(tile) + 0.5) * interval }

    func place(of tile: Int) -> (x: Int, y: Int) {
        (tile % Self.columnMax * tileWidth, tile / Self.columnMax * tileHeight)
    }

    /// - Parameter count: tiles that were filled.
    func size(for count: Int) -> (width: Int, height: Int) {
        let columns = min(count, Self.columnMax), rows = (count + Self.columnMax - 1) / Self.columnMax
        return (columns * tileWidth, rows * tileHeight)
    }

    /// WebVTT whose cues name a part of the picture as a media fragment (W3C Media Fragments, 4.2.2).
    /// - Parameters:
    ///   - count: tiles that were filled.
    ///   - end: seconds at which the last one stops.
    func index(count: Int, end: Double, link: String) -> String {
        var text = "WEBVTT\n"
        for tile in 0..<count {
            let from = Double(tile) * interval
            let to = tile == count - 1 ? max(end, from + 0.001) : from + interval
            let (x, y) = place(of: tile)
            text += "\n\(Self.timestamp(from)) --> \(Self.timestamp(to))\n"
            text += "\(link)#xywh=\(x),\(y),\(tileWidth),\(tileHeight)\n"
        }
        return text
    }

    /// `HH:MM:SS.mmm`.
    private static func timestamp(_ seconds: Double) -> String {
        let total = Int((seconds * 1000).rounded())
        func digits(_ number: Int, _ count: Int) -> String {
            let text = String(number)
            return String(repeating: "0", count: max(0, count - text.count)) + text
        }
        return
            "\(digits(total / 3_600_000, 2)):\(digits(total / 60_000 % 60, 2)):\(digits(total / 1000 % 60, 2)).\(digits(total % 1000, 3))"
    }
}
