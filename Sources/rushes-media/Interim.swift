import Vocabulary

// The entries of the media modules until they are merged: every call says that it is missing.
private let missing = Failure(.internalError, "This build has no media modules.")

enum VideoProbe {
    static func probe(_ input: Int32, file: String, limits: MediaLimits) throws(Failure) -> ProbeReport { throw missing }
}
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
enum PhotoProbe {
    static func probe(_ input: Int32, format: MediaFormat, file: String, limits: MediaLimits) throws(Failure) -> ProbeReport {
        throw missing
    }
}
enum Thumb {
    static func make(
        _ input: Int32, format: MediaFormat, file: String, settings: ThumbSettings, limits: MediaLimits, sink: any OutputSink
    ) throws(Failure) -> ThumbReport { throw missing }
}
