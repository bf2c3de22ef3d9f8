import Digests
import Files
import Synchronization
import Vocabulary

/// Blobs in a folder of this machine.
///
///     incoming/<upload>.<generation>/<number>-<md5>-<size>    a part: whole and durable under its name, so that the listing is the truth
///     blobs/<2 digits>/<key>                                   an object
///     work/                                                   what jobs are making
struct DirectoryBlobStore: BlobStore {
    let folder: String
    private let disk: DiskQueue
    /// Assembling and hashing large files runs beside small steps, not before them.
    private let bulk: DiskQueue
    private let shards = KnownFolders()

    var incoming: String { folder + "/incoming" }
    var blobs: String { folder + "/blobs" }
    var work: String { folder + "/work" }

    /// Makes nothing: for who only looks.
    static func looking(_ folder: String) -> DirectoryBlobStore {
        DirectoryBlobStore(folder: folder, disk: DiskQueue(width: 8), bulk: DiskQueue(width: 2))
    }

    static func open(_ folder: String) throws(Failure) -> DirectoryBlobStore {
        let store = looking(folder)
        for path in [store.incoming, store.blobs, store.work] { try Files.makeFolder(path) }
        return store
    }

    /// For work that reads much.
    func onBulk<Value: Sendable>(_ body: @escaping @Sendable () throws(Failure) -> Value) async throws(Failure) -> Value
    {
        try await bulk.run(body)
    }

    // MARK: Sessions

    func path(of session: StoreSession) -> String { incoming + "/" + session.folderName }

    func begin(_ session: StoreSession) async throws(Failure) -> String? {
        let incoming = incoming
        try await disk.run { () throws(Failure) in _ = try Files.makeFolder(session.folderName, in: incoming) }
        return nil
    }

    func partURL(_ part: SignedPart, of session: StoreSession, seconds: Double) -> String? { nil }

    func take(_ path: String, as part: SignedPart, of session: StoreSession) async throws(Failure) {
        let target = self.path(of: session) + "/" + StoredPart(part).fileName
        try await disk.run { () throws(Failure) in
            do throws(Failure) {
                // Left by a request that was cut short: the same bytes.
                if try Files.facts(target) != nil { try Files.remove(target) }
                try Files.move(path, to: target)
            } catch { throw error.code == .sourceMissing ? PartSink.gone : error }
        }
    }

    func parts(_ session: StoreSession) async throws(Failure) -> [StoredPart]? {
        let path = path(of: session)
        return try await disk.run { () throws(Failure) in
            guard try Files.facts(path) != nil else { return nil }
            return try Files.names(in: path).compactMap(StoredPart.init(fileName:)).sorted { $0.number < $1.number }
        }
    }

    func assemble(_ parts: [StoredPart], of session: StoreSession) async throws(Failure) -> BlobKey {
        let key = BlobKey.upload(session)
        let from = path(of: session)
        let target = try await readyPath(key)
        try await bulk.run { () throws(Failure) in
            let paths = parts.map { from + "/" + $0.fileName }
            // One part is the object: a second name for it costs nothing and leaves the part in place until the row is written.
            if paths.count == 1, try giveName(target, to: paths[0]) { return }
            let draft = try Draft.begin(for: target)
            try draft.reserve(parts.reduce(0) { $0 + $1.size })
            var offset = 0
            for (part, path) in zip(parts, paths) {
                let start = offset
                try Files.pass(over: try OpenFile.reading(path)) { piece, at throws(Failure) in
                    try draft.file.write(piece, at: start + at)
                    offset = start + at + piece.count
                }
                guard offset - start == part.size else {
                    throw Failure(
                        .ioError, "A stored part no longer has its size.", detail: "\(path): \(offset - start)")
                }
            }
            try draft.commit(replacing: true)
        }
        return key
    }

    /// The parts stay until the object has its row, so a session is never gone with its object unknown.
    func assembled(_ parts: [SignedPart], of session: StoreSession) async throws(Failure) -> BlobKey? { nil }

    func settle(_ session: StoreSession) async throws(Failure) { try await end(session, hasObject: true) }

    func end(_ session: StoreSession, hasObject: Bool) async throws(Failure) {
        let path = path(of: session)
        try await disk.run { () throws(Failure) in try Files.removeTree(path) }
    }

    // MARK: Objects

    func blobPath(_ key: BlobKey) -> String {
        "\(blobs)/\(shard(of: key))/\(key)"
    }
    private func shard(of key: BlobKey) -> String { String(Digest.sha256(key.rawValue).rawValue.prefix(2)) }

    private func readyPath(_ key: BlobKey) async throws(Failure) -> String {
        let (path, blobs, shards) = (blobPath(key), blobs, shards)
        try await disk.run { () throws(Failure) in try shards.make(shard(of: key), in: blobs) }
        return path
    }

    func size(_ key: BlobKey) async throws(Failure) -> Int? {
        let path = blobPath(key)
        return try await disk.run { () throws(Failure) in try Files.facts(path)?.size }
    }

    func adopt(_ path: String, as key: BlobKey) async throws(Failure) -> (bytes: Int, sha256: SHA256Digest) {
        let target = try await readyPath(key)
        try await disk.run { () throws(Failure) in try Files.move(path, to: target) }
        return try await bulk.run { () throws(Failure) in
            let file = try OpenFile.reading(target)
            return (try file.facts().size, try Files.sha256(of: file))
        }
    }

    func path(_ key: BlobKey, in folder: String) async throws(Failure) -> String { blobPath(key) }

    func sha256(
        _ key: BlobKey, keptIn folder: String?, progress: @escaping @Sendable (Int) throws(Failure) -> Void
    ) async throws(Failure) -> SHA256Digest {
        let path = blobPath(key)
        return try await bulk.run { () throws(Failure) in
            try Files.sha256(of: OpenFile.reading(path), progress: progress)
        }
    }

    func url(_ key: BlobKey, contentType: String, seconds: Double) -> String? { nil }

    func remove(_ key: BlobKey) async throws(Failure) {
        let path = blobPath(key)
        try await disk.run { () throws(Failure) in
            guard try Files.facts(path) != nil else { return }
            try Files.remove(path)
        }
    }

    // MARK: Listing

    func underway() async throws(Failure) -> Underway {
        let incoming = incoming
        return try await disk.run { () throws(Failure) in
            Underway(sessions: try namesIfThere(incoming).compactMap { StoreSession(folderName: $0) })
        }
    }

    /// Objects are written to `work` and beside their names, which `removeLeftovers` clears.
    func end(_ write: StoreWrite) async throws(Failure) {}

    func eachObject(_ body: (BlobKey) async throws(Failure) -> Void) async throws(Failure) {
        let blobs = blobs
        for shard in try await disk.run({ () throws(Failure) in try namesIfThere(blobs) }) {
            let names = try await disk.run { () throws(Failure) in try namesIfThere(blobs + "/" + shard) }
            for key in names.compactMap(BlobKey.init(rawValue:)) { try await body(key) }
        }
    }

    func removeLeftovers() async throws(Failure) {
        let (incoming, blobs, work) = (incoming, blobs, work)
        try await disk.run { () throws(Failure) in
            for name in try Files.names(in: work) { try Files.removeTree(work + "/" + name) }
            for parent in [incoming, blobs] {
                try Files.synchronizeFolder(parent)
                for name in try Files.names(in: parent) {
                    let folder = parent + "/" + name
                    guard try Files.facts(folder)?.kind == .folder else { continue }
                    // A process that was killed may have given a name without having made it durable. From now on it is believed.
                    try Files.synchronizeFolder(folder)
                    for name in try Files.names(in: folder) where name.hasPrefix(Files.temporaryPrefix) {
                        try Files.remove(folder + "/" + name)
                    }
                }
            }
        }
    }
}

/// Folders that this process has made durable: an object's is not synced again for each object.
private final class KnownFolders: Sendable {
    private let names = Mutex<Set<String>>([])

    func make(_ name: String, in folder: String) throws(Failure) {
        // Within the lock: who finds the folder there relies on its name.
        try names.withLock { names throws(Failure) in
            guard !names.contains(name) else { return }
            try Files.makeFolder(name, in: folder)
            names.insert(name)
        }
    }
}

extension StoredPart {
    /// A part's ETag is its MD5 here.
    var fileName: String { "\(number)-\(etag)-\(size)" }

    init?(fileName: String) {
        let pieces = fileName.split(separator: "-", omittingEmptySubsequences: false)
        guard pieces.count == 3, let number = Int(pieces[0]), let size = Int(pieces[2]), pieces[1].utf8.count == 32
        else { return nil }
        self.init(number: number, size: size, md5: String(pieces[1]))
    }
}

/// - Returns: false where the file system has no second names.
private func giveName(_ target: String, to from: String) throws(Failure) -> Bool {
    // An earlier attempt may have been cut short after this; what it linked may since have been sent anew. No row names it yet.
    if try Files.facts(target) != nil { try Files.remove(target) }
    do throws(Failure) { return try Files.link(from, to: target) } catch {
        guard error.code == .sourceMissing else { throw error }
        throw Failure(.incomplete, "A part is not there any more.", detail: from)
    }
}
