import Backend
import Files
import Foundation
import Ingest
import MediaJobs
import Vocabulary

/// Files that are what they are called: a fixture, with bytes appended in a way that its format allows, so that each is of another content and
/// of the wanted size.
enum Media: String {
    case video, photo, sound
    /// A recording whose index is missing.
    case cut
    case text, sidecar

    /// - Parameter padding: bytes on top of the fixture's own.
    func bytes(padding: Int, seed: Int) throws -> [UInt8] {
        let pattern = Pattern.bytes(padding, seed: seed)
        switch self {
        case .video: return try Self.fixture("no-audio.mp4") + Self.box("free", pattern)
        // What follows the end of a picture belongs to others: phones put whole videos there.
        case .photo: return try Self.fixture("picture.png") + pattern
        case .sound: return try Self.fixture("recorder.wav") + Self.chunk("JUNK", pattern)
        case .cut: return try Self.fixture("truncated-recording.mov") + pattern
        case .text: return Array("Nothing to be seen here.\n".utf8) + pattern.map { $0 % 26 + 97 }
        case .sidecar: return Array("<x:xmpmeta/>".utf8) + pattern.map { $0 % 26 + 97 }
        }
    }

    /// The worker's processes; they end with the tests.
    static let jobs = MediaJobs(
        MediaSettings(
            workerPath: URL(fileURLWithPath: Programs.rushes).deletingLastPathComponent().path + "/rushes-media"))

    private static func fixture(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: Programs.fixtures + "/" + name)))
    }
    private static func box(_ type: String, _ body: [UInt8]) -> [UInt8] {
        withUnsafeBytes(of: UInt32(body.count + 8).bigEndian, Array.init) + Array(type.utf8) + body
    }
    private static func chunk(_ type: String, _ body: [UInt8]) -> [UInt8] {
        Array(type.utf8) + withUnsafeBytes(of: UInt32(body.count).littleEndian, Array.init) + body
    }
}

/// The real backend on a Unix socket below a folder.
struct RunningBackend: Sendable {
    let backend: Backend
    let folder: String
    let socket: String

    static func start(in folder: String) async throws(Failure) -> RunningBackend {
        let socket = folder + "/s"
        try Files.makeFolder(folder)
        let settings = BackendSettings(dataFolder: folder + "/data", listen: .unix(path: socket), media: Media.jobs)
        return RunningBackend(backend: try await Backend.start(settings), folder: folder, socket: socket)
    }

    func check() async throws(Failure) -> [Finding] { try await BackendCheck.run(dataFolder: folder + "/data") }
}
