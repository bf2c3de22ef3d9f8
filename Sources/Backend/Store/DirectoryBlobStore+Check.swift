import Files
import Vocabulary

extension DirectoryBlobStore {
    /// Whether a part's bytes are what its name says. One that went away meanwhile is no damage.
    func isIntact(_ part: StoredPart, of session: StoreSession) async throws(Failure) -> Bool {
        let path = path(of: session) + "/" + part.fileName
        guard try Files.facts(path) != nil else { return true }
        return try await isIntact(path, SignedPart(number: part.number, length: part.size, md5: part.etag))
    }

    func isIntact(_ path: String, _ part: SignedPart) async throws(Failure) -> Bool {
        try await onBulk { () throws(Failure) in
            guard try Files.facts(path)?.size == part.length else { return false }
            return SignedPart(number: part.number, bytes: try OpenFile.reading(path).read(count: part.length, at: 0))
                == part
        }
    }

    /// Paths of which no row, session or unfinished write can be the owner.
    func strangers() async throws(Failure) -> [String] {
        let (incoming, blobs) = (incoming, blobs)
        return try await onBulk { () throws(Failure) in
            var found: [String] = []
            for name in try namesIfThere(incoming) {
                guard StoreSession(folderName: name) != nil else {
                    found.append("incoming/" + name)
                    continue
                }
                for file in try namesIfThere(incoming + "/" + name)
                where StoredPart(fileName: file) == nil && !file.hasPrefix(Files.temporaryPrefix) {
                    found.append("incoming/\(name)/\(file)")
                }
            }
            for shard in try namesIfThere(blobs) {
                for file in try namesIfThere(blobs + "/" + shard)
                where BlobKey(rawValue: file) == nil && !file.hasPrefix(Files.temporaryPrefix) {
                    found.append("blobs/\(shard)/\(file)")
                }
            }
            return found
        }
    }

    func workNames() async throws(Failure) -> [String] {
        let work = work
        return try await onBulk { () throws(Failure) in try namesIfThere(work) }
    }
}

func namesIfThere(_ folder: String) throws(Failure) -> [String] {
    guard try Files.facts(folder)?.kind == .folder else { return [] }
    return try Files.names(in: folder)
}
