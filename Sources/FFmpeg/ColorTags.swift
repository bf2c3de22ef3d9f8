import CFFmpeg

/// The colour description of a stream or frame by FFmpeg's names; nil where the source says nothing.
package struct ColorTags: Sendable, Equatable {
    package enum Range: Sendable { case limited, full }
    package var range: Range?
    package var primaries: String?
    package var transfer: String?
    package var matrix: String?

    package init(range: Range? = nil, primaries: String? = nil, transfer: String? = nil, matrix: String? = nil) {
        self.range = range
        self.primaries = primaries
        self.transfer = transfer
        self.matrix = matrix
    }

    init(
        range: AVColorRange, primaries: AVColorPrimaries, transfer: AVColorTransferCharacteristic, matrix: AVColorSpace
    ) {
        self.range =
            switch range {
            case AVCOL_RANGE_JPEG: .full
            case AVCOL_RANGE_MPEG: .limited
            default: nil
            }
        self.primaries = Self.known(av_color_primaries_name(primaries))
        self.transfer = Self.known(av_color_transfer_name(transfer))
        self.matrix = Self.known(av_color_space_name(matrix))
    }

    /// `reserved` numbers come from damaged headers and mean as little as `unknown`.
    private static func known(_ name: UnsafePointer<CChar>?) -> String? {
        guard let name else { return nil }
        let text = String(cString: name)
        return text == "unknown" || text == "reserved" ? nil : text
    }
}
