import Files
import Vocabulary

@testable import Backend

extension RunningBackend {
    /// - Parameter gate: passed before each file is probed.
    static func start(
        in folder: String, clock: @escaping @Sendable () -> Timestamp, gate: @escaping @Sendable () async -> Void
    ) async throws(Failure) -> RunningBackend {
        let socket = folder + "/s"
        try Files.makeFolder(folder)
        let settings = BackendSettings(
            dataFolder: folder + "/data", listen: .unix(path: socket), media: Media.jobs, clock: clock)
        var media = MediaWork.running(Media.jobs)
        let probe = media.probe
        media.probe = { path, name throws(Failure) in
            await gate()
            return try await probe(path, name)
        }
        media.forOwner = nil
        return RunningBackend(
            backend: try await Backend.start(settings, media: media), folder: folder, socket: socket)
    }
}
