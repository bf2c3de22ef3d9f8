import Vocabulary

/// Which thumbnails a picture gets, decided from its header alone.
struct ThumbPlan: Equatable {
    struct Output: Equatable {
        var name: OutputName
        /// Upright.
        var size: PixelSize
    }

    /// Largest first; one for each size that was asked for.
    var outputs: [Output]

    init(upright: PixelSize, settings: ThumbSettings) {
        let sizes = Set(settings.sizes.filter { $0 > 0 }).sorted(by: >)
        outputs = sizes.map { Output(name: ThumbSettings.name(of: $0), size: upright.fitting(longSide: $0)) }
    }
}

/// At which of TurboJPEG's fast scales a JPEG is decoded.
struct JPEGScalePlan: Equatable {
    /// How much more than the wanted side has to be decoded, so that the filter after it decides the quality (measured: 1.5 loses
    /// less than 0.3 dB against filtering the full picture; a little below it, 24 megapixels still make 2048 at half scale).
    static let headroom = 1.45

    /// 1, 2, 4 or 8. The scales between have no SIMD code and are slower than the next larger one.
    var denominator: Int
    var decoded: PixelSize

    init(stored: PixelSize, longSide: Int) {
        let wanted = Double(longSide) * Self.headroom
        denominator =
            [8, 4, 2].first { Double((stored.longSide + $0 - 1) / $0) >= wanted } ?? 1
        let by = denominator
        // TJSCALED rounds up.
        decoded = PixelSize(width: (stored.width + by - 1) / by, height: (stored.height + by - 1) / by)
    }
}
