import Files
import MediaJobs
import Vocabulary

@testable import Backend

/// The real backend with pretended decoders, on a Unix socket below a folder.
struct FakeBackend: Sendable {
    let backend: Backend
    let folder: String
    let socket: String

    static func start(
        in folder: String, lifetimes: BackendSettings.Lifetimes = .init(),
        clock: @escaping @Sendable () -> Timestamp = Timestamp.system, gate: @escaping @Sendable () async -> Void = {}
    ) async throws(Failure)
        -> FakeBackend
    {
        let socket = folder + "/s"
        try Files.makeFolder(folder)
        let settings = BackendSettings(
            dataFolder: folder + "/data", listen: .unix(path: socket),
            media: MediaJobs(MediaSettings(workerPath: "/none")), lifetimes: lifetimes, clock: clock)
        let media = MediaWork(
            probe: { path, name throws(Failure) in
                await gate()
                return try FakeMedia.probe(path, name)
            },
            transcode: { path, _, outputs, folder, _ throws(Failure) in
                (nil, try made(outputs, folder, path) { $0 == .poster ? .poster : .rendition })
            },
            thumb: { path, _, sizes, folder throws(Failure) in
                (nil, try made(sizes.map(ThumbSettings.name(of:)), folder, path) { _ in .thumbnail })
            })
        return FakeBackend(
            backend: try await Backend.start(settings, media: media), folder: folder, socket: socket)
    }

    private static func made(
        _ names: [OutputName], _ folder: String, _ path: String, role: (OutputName) -> FileRole
    ) throws(Failure) -> [MadeFile] {
        var files: [MadeFile] = []
        for name in names {
            let (output, path) = try FakeMedia.make(name, role(name), in: folder, of: path)
            files.append(MadeFile(output: output, path: path))
        }
        return files
    }

    func check() async throws(Failure) -> [Finding] { try await BackendCheck.run(dataFolder: folder + "/data") }
}
