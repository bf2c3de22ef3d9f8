import Backend
import Foundation
import HTTPServer
import MediaJobs
import Vocabulary

extension Verb {
    static let serve = Verb(
        "serve", summary: "be the backend: take uploads, process them, answer",
        details: """
            Everything is kept in one folder, which one process serves at a time. Without
            --listen it answers on a Unix socket in that folder, to this user only; over TCP
            each request needs a token. TLS is for a proxy in front. It ends on SIGTERM.
            """,
        options: [.listen, .data, .memory]
    ) { arguments async throws(Failure) in
        let folder = arguments[.data] ?? Self.standardDataFolder(ProcessInfo.processInfo.environment)
        guard let address = ListenAddress(arguments[.listen] ?? "unix:\(folder)/\(Self.socketName)") else {
            throw Failure(.usage, "--listen takes ADDR:PORT or unix:PATH.")
        }
        let media = MediaJobs(try arguments.mediaSettings())
        let backend = try await Backend.start(
            BackendSettings(dataFolder: folder, listen: address, media: media, log: { Output.say($0) }))
        Output.say("serving \(folder) at \(backend.address)")
        while !Task.isCancelled { try? await Task.sleep(for: .seconds(3600)) }
        await backend.stop()
        await media.shutDown()
        return .done
    }

    private static let socketName = "backend.sock"

    /// `backend` in the folder of Rushes: `$RUSHES_HOME`, else `$XDG_DATA_HOME/rushes`, else `~/.local/share/rushes`.
    private static func standardDataFolder(_ environment: [String: String]) -> String {
        func set(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
        let data = set("XDG_DATA_HOME") ?? (set("HOME") ?? NSHomeDirectory()) + "/.local/share"
        return (set("RUSHES_HOME") ?? data + "/rushes") + "/backend"
    }
}

extension Verb.Option {
    static let listen = Verb.Option(
        "--listen", "ADDR:PORT|unix:PATH", "where to answer (default: a socket in the folder)")
    static let data = Verb.Option(
        "--data", "DIR", "the folder that holds everything (default: backend in $RUSHES_HOME)")
}
