import Vocabulary

// The entries of the media modules until they are merged: every call says that it is missing.
private let missing = Failure(.internalError, "This build has no media modules.")

enum Transcode {
    static func run(
        _ input: Int32, file: String, settings: TranscodeSettings, limits: MediaLimits, sink: any OutputSink
    ) throws(Failure) -> TranscodeReport { throw missing }
}
enum Poster {
    static func make(
        _ input: Int32, file: String, settings: ThumbSettings, limits: MediaLimits, sink: any OutputSink
    ) throws(Failure) -> ThumbReport { throw missing }
}
