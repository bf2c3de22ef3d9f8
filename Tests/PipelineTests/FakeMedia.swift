import Digests
import Files
import Ingest
import Vocabulary

/// Media by their first letters: the pipeline's tests are about bytes and states, not about decoders.
enum FakeMedia {
    static func probe(_ path: String, _ name: String) throws(Failure) -> ProbeReport {
        let head = String(decoding: try OpenFile.reading(path).read(count: 5, at: 0), as: UTF8.self)
        switch head {
        case "VIDEO":
            var facts = MediaFacts(kind: .video, format: .isoMedia)
            facts.width = 640
            facts.height = 360
            facts.duration = 1
            facts.codec = "h264"
            facts.delivery = .encode
            return ProbeReport(file: name, facts: facts)
        case "PHOTO":
            var facts = MediaFacts(kind: .photo, format: .jpeg)
            facts.width = 40
            facts.height = 30
            return ProbeReport(file: name, facts: facts)
        case "SOUND": return ProbeReport(file: name, facts: MediaFacts(kind: .audio, format: .wav))
        case "TRUNC":
            return ProbeReport(
                file: name, facts: nil, reason: Reason(.truncated, "The end is missing."))
        default: return ProbeReport(file: name, facts: nil, reason: Reason(.notMedia, "Not a photo, video or sound."))
        }
    }

    /// Writes something for an output.
    static func make(
        _ name: OutputName, _ role: FileRole, in folder: String, of path: String
    ) throws(Failure) -> (SealedOutput, String) {
        let made = folder + "/" + name.rawValue
        let head = try OpenFile.reading(path).read(count: 64, at: 0)
        let bytes = Array("MADE \(name) ".utf8) + head
        try Files.write(bytes, to: made)
        let output = SealedOutput(
            name: name, role: role, contentType: role == .rendition ? "video/mp4" : "image/jpeg", bytes: bytes.count,
            sha256: Digest.sha256(bytes), width: 16, height: 9, duration: role == .rendition ? 1 : nil)
        return (output, made)
    }

    static let box = MediaWork(
        probe: { path, name throws(Failure) in try probe(path, name) },
        rendition: { path, _, folder, progress throws(Failure) in
            progress(0.5)
            return [
                try made(.rendition1080, .rendition, folder, path), try made(.poster, .poster, folder, path),
            ]
        },
        thumbnail: { path, _, folder, size throws(Failure) in
            [try made(ThumbSettings.name(of: size), .thumbnail, folder, path)]
        })

    private static func made(
        _ name: OutputName, _ role: FileRole, _ folder: String, _ path: String
    ) throws(Failure) -> MediaWork.Made {
        let (output, made) = try make(name, role, in: folder, of: path)
        return MediaWork.Made(output: output, path: made)
    }
}
