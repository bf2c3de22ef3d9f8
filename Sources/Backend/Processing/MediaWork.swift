import MediaJobs
import Vocabulary

/// Something that was made for an item, in the work folder.
struct MadeFile: Sendable {
    var output: SealedOutput
    var path: String
}

/// What came of one decode of a video.
struct MadeVideo: Sendable {
    var reason: Reason?
    var previewColor: String?
    var files: [MadeFile]
}

/// Media work as processing needs it.
struct MediaWork: Sendable {
    var probe: @Sendable (_ path: String, _ name: String) async throws(Failure) -> ProbeReport
    /// - Returns: a reason when the file turned out to be what is wrong, and a video's preview colour.
    var transcode:
        @Sendable (
            _ path: String, _ name: String, _ outputs: [OutputName], _ folder: String,
            _ progress: @escaping @Sendable (Double) -> Void
        ) async throws(Failure) -> MadeVideo
    var thumb:
        @Sendable (_ path: String, _ name: String, _ sizes: [Int], _ folder: String) async throws(Failure) -> (
            ThumbReport, [MadeFile]
        )
    /// The same for one owner's files, where owners are kept apart.
    var forOwner: (@Sendable (Owner) -> MediaWork)?

    func of(_ owner: Owner) -> MediaWork { forOwner?(owner) ?? self }
}

extension MediaWork {
    /// In the media worker's processes.
    static func running(_ jobs: MediaJobs) -> MediaWork {
        var work = running(jobs, owner: .box)
        work.forOwner = { running(jobs, owner: MediaOwner($0.rawValue)) }
        return work
    }

    private static func running(_ jobs: MediaJobs, owner: MediaOwner) -> MediaWork {
        MediaWork(
            probe: { path, name throws(Failure) in try await jobs.probe(path, name: name, owner: owner) },
            transcode: { path, name, outputs, folder, progress throws(Failure) in
                let (report, files) = try await jobs.transcode(
                    path, name: name, owner: owner, settings: TranscodeSettings(outputs: outputs), into: folder
                ) { progress($0.fraction) }
                return MadeVideo(
                    reason: report.reason, previewColor: report.previewColor,
                    files: files.map { MadeFile(output: $0.output, path: $0.path) })
            },
            thumb: { path, name, sizes, folder throws(Failure) in
                let (report, files) = try await jobs.thumb(
                    path, name: name, owner: owner, settings: ThumbSettings(sizes: sizes), into: folder)
                return (report, files.map { MadeFile(output: $0.output, path: $0.path) })
            })
    }
}
