import Vocabulary

/// Why a file that no demuxer opens is rejected. Decided from the file's own bytes: the libraries say "invalid data" to all of these.
enum OpenVerdict {
    /// - Parameters:
    ///   - format: what the first bytes say.
    ///   - boxes: the outline of an ISO media file.
    ///   - isCut: the header says that the file should be longer.
    static func reason(format: MediaFormat?, boxes: ISOBoxes?, isCut: Bool) -> Reason {
        guard let format else { return notMedia }
        guard let boxes else { return isCut ? truncated : corrupt }
        if boxes.isProtected { return encrypted }
        if boxes.hasIndex { return boxes.isCut ? truncated : corrupt }
        // Without an index nothing can be shown. Recorders write it last, so a file that is sound until it stops was not finished.
        if boxes.isMalformed { return corrupt }
        return format == .isoMedia ? truncated : corrupt
    }

    static let empty = Reason(.empty, "The file is empty.")
    static let notMedia = Reason(.notMedia, "This is not a photo, video or sound.")
    static let encrypted = Reason(.encrypted, "The file is protected; an unprotected copy is needed.")
    static let truncated = Reason(
        .truncated,
        "The end of the file is missing: the recording was not finished, or it was copied only in part. Copy it again.")
    static let corrupt = Reason(.corrupt, "The file is damaged and cannot be opened.")
    static let nothingDecodes = Reason(.corrupt, "The file is damaged: no picture in it can be decoded.")
    static func noDecoder(_ codec: String?) -> Reason {
        Reason(.unsupportedCodec, "There is no decoder here for \(codec.map { "“\($0)”" } ?? "this kind of media").")
    }
    static let dolbyVision = Reason(
        .unsupportedHDR, "This Dolby Vision profile cannot be shown right without Dolby's own processing.")
    static func tooLarge(_ width: Int, _ height: Int) -> Reason {
        Reason(.tooLarge, "The picture of \(width)×\(height) pixels is larger than can be handled.")
    }
    static func tooLong(_ seconds: Double) -> Reason {
        Reason(.tooLong, "The recording of \(Int(seconds / 60)) minutes is longer than is allowed.")
    }
    static let noVideo = Reason(.noVideo, "There is only sound in this file, and pictures are needed.")
}
