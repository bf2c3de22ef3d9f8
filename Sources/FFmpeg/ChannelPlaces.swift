import CFFmpeg

/// Where the channels of a stretch of sound are meant to stand.
package struct ChannelPlaces: Sendable, Equatable {
    package var count: Int
    /// More than libswresample takes; the names of so many come from damaged headers.
    private static let namedMax = 64
    /// FFmpeg's names in the order of the channels (`FL`, `LFE`); nil where the channels have none.
    package var names: [String]?
    /// The channels are a sound field, of which the first is the omnidirectional part.
    package var isAmbisonic: Bool

    package init(count: Int, names: [String]?, isAmbisonic: Bool = false) {
        self.count = count
        self.names = names
        self.isAmbisonic = isAmbisonic
    }

    init(_ layout: AVChannelLayout) {
        var layout = layout
        count = Int(layout.nb_channels)
        isAmbisonic = layout.order == AV_CHANNEL_ORDER_AMBISONIC
        names =
            layout.order == AV_CHANNEL_ORDER_UNSPEC || count > Self.namedMax
            ? nil
            : (0..<count).map { index in
                var text = [CChar](repeating: 0, count: 32)
                av_channel_name(&text, text.count, av_channel_layout_channel_from_index(&layout, UInt32(index)))
                return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            }
    }
}

extension Frame {
    package var places: ChannelPlaces { ChannelPlaces(pointer.pointee.ch_layout) }
    /// Whether libswresample mixes the channels for two loudspeakers; there are layouts that it refuses.
    package var hasStereoMix: Bool {
        let rate = pointer.pointee.sample_rate
        var stereo = AVChannelLayout()
        av_channel_layout_default(&stereo, 2)
        var context: OpaquePointer?
        defer { swr_free(&context) }
        let made = swr_alloc_set_opts2(
            &context, &stereo, AV_SAMPLE_FMT_FLTP, rate, &pointer.pointee.ch_layout, AV_SAMPLE_FMT_FLTP, rate, 0, nil)
        return made >= 0 && swr_init(context) >= 0
    }
    /// Gives the channels the names that their number has by custom; without any, where it has none.
    package func nameChannelsByNumber() {
        av_channel_layout_default(&pointer.pointee.ch_layout, pointer.pointee.ch_layout.nb_channels)
    }
    package func forgetChannelNames() {
        let count = pointer.pointee.ch_layout.nb_channels
        av_channel_layout_uninit(&pointer.pointee.ch_layout)
        pointer.pointee.ch_layout.nb_channels = count
    }
}
