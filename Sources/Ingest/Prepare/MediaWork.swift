public import MediaJobs
public import Vocabulary

/// The three things that preparing asks of the media process. The one door between ingest and `MediaJobs`.
public struct MediaWork: Sendable {
    /// A file that was made, at its place in staging.
    public struct Made: Sendable, Equatable {
        public var output: SealedOutput
        public var path: String
        public init(output: SealedOutput, path: String) {
            self.output = output
            self.path = path
        }
    }

    /// A path and the name by which people know the file.
    public var probe: @Sendable (_ path: String, _ name: String) async throws(Failure) -> ProbeReport
    /// The 1080p rendition and the poster, into a folder. A verdict of the file's makes none.
    public var rendition:
        @Sendable (
            _ path: String, _ name: String, _ folder: String, _ progress: @escaping @Sendable (Double) -> Void
        ) async throws(Failure) -> [Made]
    /// A still of that long side, into a folder.
    public var thumbnail:
        @Sendable (_ path: String, _ name: String, _ folder: String, _ size: Int) async throws(Failure) -> [Made]

    public init(
        probe: @escaping @Sendable (String, String) async throws(Failure) -> ProbeReport,
        rendition:
            @escaping @Sendable (String, String, String, @escaping @Sendable (Double) -> Void) async throws(Failure) ->
            [Made],
        thumbnail: @escaping @Sendable (String, String, String, Int) async throws(Failure) -> [Made]
    ) {
        self.probe = probe
        self.rendition = rendition
        self.thumbnail = thumbnail
    }
}

extension MediaWork {
    /// In the media worker's processes.
    public static func running(_ jobs: MediaJobs) -> MediaWork {
        @Sendable func made(_ files: [SealedFile]) -> [Made] { files.map { Made(output: $0.output, path: $0.path) } }
        return MediaWork(
            probe: { path, name throws(Failure) in try await jobs.probe(path, name: name) },
            rendition: { path, name, folder, progress throws(Failure) in
                let settings = TranscodeSettings(outputs: [.rendition1080, .poster])
                let (_, files) = try await jobs.transcode(path, name: name, settings: settings, into: folder) {
                    progress($0.fraction)
                }
                return made(files)
            },
            thumbnail: { path, name, folder, size throws(Failure) in
                let (_, files) = try await jobs.thumb(
                    path, name: name, settings: ThumbSettings(sizes: [size]), into: folder)
                return made(files)
            })
    }
}
