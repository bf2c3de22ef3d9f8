import Vocabulary

/// Opens a picture file by what its first bytes say it is.
enum PictureFiles {
    static func open(_ bytes: ByteView, format: MediaFormat, limits: MediaLimits) throws(Failure) -> any PictureFile {
        switch format {
        case .jpeg: return try JPEGFile(bytes, limits: limits)
        default:
            throw Failure(.notMedia, "This is not a picture.", detail: format.rawValue)
        }
    }
}
