import Digests
import Files
import Vocabulary
import XML

/// What a folder has of an ASC MHL history already.
struct MHLHistory: Sendable {
    /// 0 where there is none.
    var lastGeneration = 0
    var chain: String?
    /// By the bytes of its path, the first hash that was given for it and did not fail.
    private(set) var hashes: [[UInt8]: XXH128Digest] = [:]

    private static let bounds: XMLBounds = {
        var bounds = XMLBounds()
        bounds.bytesMax = 256 << 20
        bounds.elementsMax = 4_000_000
        return bounds
    }()

    /// - Throws: `conflict` where there is something that cannot be read: it is never written over.
    static func read(_ folder: String) throws(Failure) -> MHLHistory {
        var history = MHLHistory()
        guard try Files.facts(folder) != nil else { return history }
        let manifests = try Files.names(in: folder).compactMap { name in
            MHLManifest.generation(ofName: name).map { (generation: $0, name: name) }
        }.sorted { $0.generation < $1.generation }
        for manifest in manifests {
            let root = try parsed(folder + "/" + manifest.name)
            for hash in root["hashes"]?.all("hash") ?? [] {
                guard let path = hash.text("path").map({ Array($0.utf8) }), history.hashes[path] == nil,
                    let entry = hash["xxh128"],
                    entry.attributes["action"] != MHLManifest.Action.failed.rawValue
                else { continue }
                history.hashes[path] = XXH128Digest(rawValue: entry.text)
            }
        }
        history.lastGeneration = manifests.last?.generation ?? 0
        let chain = folder + "/" + MHLManifest.chainName
        if try Files.facts(chain) != nil {
            history.chain = String(decoding: try bytes(chain), as: UTF8.self)
        } else if !manifests.isEmpty {
            throw unreadable(chain)
        }
        return history
    }

    private static func parsed(_ path: String) throws(Failure) -> XMLElement {
        let bytes = try bytes(path)
        do throws(Failure) { return try XMLDocument.parse(bytes, bounds: bounds) } catch {
            throw unreadable(path, error.detail)
        }
    }

    private static func bytes(_ path: String) throws(Failure) -> [UInt8] {
        let file = try OpenFile.reading(path)
        let size = try file.facts().size
        guard size <= bounds.bytesMax else { throw unreadable(path, "\(size) bytes") }
        return try file.read(count: size, at: 0)
    }

    static func unreadable(_ path: String, _ detail: String? = nil) -> Failure {
        Failure(
            .conflict, "The history at “\(path)” is damaged or not complete, and is left alone: name another folder.",
            remedy: .askUser, detail: detail)
    }
}
