import Backend
import HTTPServer
import MediaJobs
import Vocabulary

extension Verb {
    static let serve = Verb(
        "serve", summary: "be the backend: take uploads, process them, answer",
        details: """
            Everything is kept in one folder, which one process serves at a time; with
            RUSHES_S3_ENDPOINT, _BUCKET, _REGION, _ACCESS_KEY and _SECRET_KEY the files lie in
            that store, and clients send them straight to it. Without --listen it answers on a
            Unix socket in that folder, to this user only; over TCP each request needs a token
            (rushes token create), but for signed URLs, /healthz and /readyz. TLS is for a proxy
            in front. A store that is away at the start is waited for; requests get 503 meanwhile.
            It ends on SIGTERM.
            """,
        options: [.listen, .data, .memory]
    ) { arguments async throws(Failure) in
        let configuration = try Configuration.current()
        let folder = arguments[.data] ?? configuration.backendFolder
        guard let address = ListenAddress(arguments[.listen] ?? "unix:\(Configuration.socket(of: folder))") else {
            throw Failure(.usage, "--listen takes ADDR:PORT or unix:PATH.")
        }
        let media = MediaJobs(try arguments.mediaSettings())
        let backend: Backend
        do throws(Failure) {
            backend = try await Backend.start(
                BackendSettings(
                    dataFolder: folder, listen: address, store: configuration.store, media: media,
                    thumbnailSizes: configuration.thumbnailSizes, log: { Output.say($0) }))
        } catch {
            await media.shutDown()
            // Told to stop while it waited for its store.
            guard error.code == .cancelled else { throw error }
            return .done
        }
        Output.say("serving \(folder) at \(backend.address)")
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        await backend.stop()
        await media.shutDown()
        return .done
    }
}

extension Verb.Option {
    static let listen = Verb.Option(
        "--listen", "ADDR:PORT|unix:PATH", "where to answer (default: a socket in the folder)")
    static let data = Verb.Option(
        "--data", "DIR", "the folder that holds everything (default: backend in $RUSHES_HOME)")
}
