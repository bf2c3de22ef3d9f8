import CFFmpeg

/// What a container says of one of its streams, as plain values.
package struct StreamDescription: Sendable, Equatable {
    package enum Kind: Sendable { case video, audio, subtitle, data, attachment, unknown }

    package var index: Int
    package var kind: Kind
    /// FFmpeg's name; nil where the container names no codec that FFmpeg knows of.
    package var codec: String?
    /// The container's four characters, e.g. `avc1`.
    package var tag: String
    package var profile: Int
    package var hasDecoder: Bool
    package var timeBase: Rational
    /// In `timeBase`.
    package var start: Int64?
    package var duration: Int64?
    /// Seconds on the container's clock.
    package var end: Double? { duration.map { timeBase.seconds((start ?? 0) + $0) } }
    /// As the container claims it; 0 where it does not.
    package var frameCount: Int
    package var averageRate: Rational
    package var metadata: [String: String]
    package var isDefault: Bool
    /// A cover, not moving pictures.
    package var isAttachedPicture: Bool
    package var isTimedThumbnails: Bool
    /// An enhancement layer, which shows nothing alone.
    package var isDependent: Bool
    /// Goes with another track's pictures: how far away things are, how transparent.
    package var isAuxiliary = false
    /// Its decoder has to be set up anew on the way.
    package var isManifold = false
    package var isEncrypted: Bool

    // Pictures
    package var width: Int
    package var height: Int
    package var sampleAspect: Rational
    package var pixelFormat: PixelFormat
    package var color: ColorTags
    package var isInterlaced: Bool
    /// Of interlaced pictures.
    package var isBottomFieldFirst: Bool
    package var displayMatrix: [Int32]?
    package var dolbyVisionProfile: Int?
    /// 0: the base layer needs Dolby Vision's own processing. 1 HDR10, 2 SDR, 4 HLG.
    package var dolbyVisionCompatibility: Int?
    package var reorderDelay: Int
    /// Bytes of the lengths inside samples of H.264 and HEVC as MP4 stores them; nil elsewhere.
    package var nalLengthSize: Int?

    // Sound
    package var channels: Int
    /// `stereo`, `5.1(side)`; nil for channels without places.
    package var layout: String?
    package var sampleRate: Int

    init(_ stream: UnsafeMutablePointer<AVStream>, of format: UnsafeMutablePointer<AVFormatContext>) {
        let parameters = stream.pointee.codecpar.pointee
        index = Int(stream.pointee.index)
        kind =
            switch parameters.codec_type {
            case AVMEDIA_TYPE_VIDEO: .video
            case AVMEDIA_TYPE_AUDIO: .audio
            case AVMEDIA_TYPE_SUBTITLE: .subtitle
            case AVMEDIA_TYPE_DATA: .data
            case AVMEDIA_TYPE_ATTACHMENT: .attachment
            default: .unknown
            }
        codec = parameters.codec_id == AV_CODEC_ID_NONE ? nil : String(cString: avcodec_get_name(parameters.codec_id))
        tag = Self.fourCharacters(parameters.codec_tag)
        profile = Int(parameters.profile)
        hasDecoder = parameters.codec_id != AV_CODEC_ID_NONE && avcodec_find_decoder(parameters.codec_id) != nil
        timeBase = Rational(stream.pointee.time_base)
        start = timestamp(stream.pointee.start_time)
        duration = timestamp(stream.pointee.duration).flatMap { $0 > 0 ? $0 : nil }
        frameCount = Int(stream.pointee.nb_frames)
        averageRate = Rational(stream.pointee.avg_frame_rate)
        metadata = metadataDictionary(stream.pointee.metadata)
        isDefault = stream.pointee.disposition & AV_DISPOSITION_DEFAULT != 0
        isAttachedPicture = stream.pointee.disposition & AV_DISPOSITION_ATTACHED_PIC != 0
        isTimedThumbnails = stream.pointee.disposition & AV_DISPOSITION_TIMED_THUMBNAILS != 0
        isDependent = stream.pointee.disposition & AV_DISPOSITION_DEPENDENT != 0
        isEncrypted =
            av_stream_get_side_data(stream, AV_PKT_DATA_ENCRYPTION_INIT_INFO, nil) != nil
            // The name that FFmpeg gives the key of a Matroska track.
            || metadata["enc_key_id"] != nil || ["encv", "enca", "drmi", "drms"].contains(tag)

        width = Int(parameters.width)
        height = Int(parameters.height)
        sampleAspect = Rational(av_guess_sample_aspect_ratio(format, stream, nil))
        pixelFormat = PixelFormat(parameters.format)
        color = ColorTags(
            range: parameters.color_range, primaries: parameters.color_primaries, transfer: parameters.color_trc,
            matrix: parameters.color_space)
        isInterlaced = ![AV_FIELD_UNKNOWN, AV_FIELD_PROGRESSIVE].contains(parameters.field_order)
        // FFmpeg's two middle values follow QuickTime's 9 and 14, where the first word is the order of showing after all.
        isBottomFieldFirst = [AV_FIELD_BB, AV_FIELD_BT].contains(parameters.field_order)
        displayMatrix = Self.sideData(AV_PKT_DATA_DISPLAYMATRIX, of: stream, count: 9, as: Int32.self)
        reorderDelay = Int(parameters.video_delay)
        nalLengthSize = Self.nalLengthSize(parameters)
        let dolby = Self.sideData(
            AV_PKT_DATA_DOVI_CONF, of: stream, count: 1, as: AVDOVIDecoderConfigurationRecord.self)?.first
        dolbyVisionProfile = dolby.map { Int($0.dv_profile) }
        dolbyVisionCompatibility = dolby.map { Int($0.dv_bl_signal_compatibility_id) }

        channels = Int(parameters.ch_layout.nb_channels)
        sampleRate = Int(parameters.sample_rate)
        layout = describe(parameters.ch_layout)
    }

    private static func sideData<Value>(
        _ type: AVPacketSideDataType, of stream: UnsafeMutablePointer<AVStream>, count: Int, as: Value.Type
    ) -> [Value]? {
        var size = 0
        guard let bytes = av_stream_get_side_data(stream, type, &size), size >= count * MemoryLayout<Value>.stride
        else { return nil }
        return bytes.withMemoryRebound(to: Value.self, capacity: count) {
            Array(UnsafeBufferPointer(start: $0, count: count))
        }
    }

    /// From the decoder configuration record (ISO/IEC 14496-15, 5.3.3.1 and 8.3.3.1).
    private static func nalLengthSize(_ parameters: AVCodecParameters) -> Int? {
        guard let record = parameters.extradata, parameters.extradata_size > 22, record[0] == 1 else { return nil }
        switch parameters.codec_id {
        case AV_CODEC_ID_H264: return Int(record[4] & 3) + 1
        case AV_CODEC_ID_HEVC: return Int(record[21] & 3) + 1
        default: return nil
        }
    }

    private static func fourCharacters(_ tag: UInt32) -> String {
        let bytes = (0..<4).map { UInt8(truncatingIfNeeded: tag >> (8 * $0)) }
        return bytes.allSatisfy { (0x20...0x7E).contains($0) } ? String(decoding: bytes, as: UTF8.self) : ""
    }
}

/// Nil for channels whose places are not known.
func describe(_ layout: AVChannelLayout) -> String? {
    guard layout.nb_channels > 0, layout.order != AV_CHANNEL_ORDER_UNSPEC else { return nil }
    var layout = layout
    var text = [CChar](repeating: 0, count: 128)
    guard av_channel_layout_describe(&layout, &text, text.count) > 0 else { return nil }
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// At most `metadataEntryMax` entries; keys in lower case, for containers differ.
func metadataDictionary(_ dictionary: OpaquePointer?) -> [String: String] {
    let metadataEntryMax = 512
    var result: [String: String] = [:]
    var entry: UnsafeMutablePointer<AVDictionaryEntry>?
    while result.count < metadataEntryMax {
        entry = av_dict_get(dictionary, "", entry, AV_DICT_IGNORE_SUFFIX)
        guard let entry else { break }
        result[String(cString: entry.pointee.key).lowercased()] = String(cString: entry.pointee.value)
    }
    return result
}
