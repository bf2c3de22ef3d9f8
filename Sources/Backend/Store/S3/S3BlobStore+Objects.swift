import Digests
import Files
import Vocabulary

extension S3BlobStore {
    /// Bytes that go to the store in one request; more are sent in parts of this size.
    private static let putBytesMax = 64 << 20

    func size(_ key: BlobKey) async throws(Failure) -> Int? { try await client.head(name(key))?.size }

    func adopt(_ path: String, as key: BlobKey) async throws(Failure) -> (bytes: Int, sha256: SHA256Digest) {
        let read = try await bulk.run { () throws(Failure) in try Reading(path, partSize: Self.putBytesMax) }
        if read.parts.count == 1, let only = read.parts.first {
            try await client.put(
                name(key), .file(path: path, offset: 0, length: only.length), contentMD5: only.contentMD5)
        } else {
            try await inParts(name(key), read.parts) { part, upload throws(Failure) in
                try await client.putPart(
                    part, of: upload, name(key), from: path, at: (part.number - 1) * Self.putBytesMax)
            }
        }
        return (read.bytes, read.sha256)
    }

    /// Within the store.
    /// - Parameter ownPartSize: in place of the largest object that is copied at once, and of the parts of a larger one.
    func copy(_ source: String, to target: String, bytes: Int, ownPartSize: Int? = nil) async throws(Failure) {
        guard bytes > ownPartSize ?? S3Client.copyBytesMax else { return try await client.copy(source, to: target) }
        let partSize = ownPartSize ?? Self.copyPartBytes
        let numbers = 1...((bytes + partSize - 1) / partSize)
        try await inParts(target, numbers.map { SignedPart(number: $0, length: 0, md5: "") }) {
            part, upload throws(Failure) in
            let start = (part.number - 1) * partSize
            return try await client.copyPart(
                source, start..<min(bytes, start + partSize), to: target, of: upload, number: part.number)
        }
    }

    /// A store may be silent for as long as it copies one.
    private static let copyPartBytes = 1 << 30

    /// Makes an object of parts, or nothing.
    private func inParts(
        _ target: String, _ parts: [SignedPart], _ store: (SignedPart, String) async throws(Failure) -> S3Part
    ) async throws(Failure) {
        // Before it is there for a sweep to see.
        writing.insert(target)
        defer { writing.remove(target) }
        let upload = try await client.createMultipart(target)
        var stored: [S3Part] = []
        do throws(Failure) {
            for part in parts { stored.append(try await store(part, upload)) }
            do throws(Failure) { _ = try await client.completeMultipart(upload, target, stored) } catch {
                // One that is there beside its upload was cut short: its bytes would go with that.
                guard try await client.parts(of: upload, target) == nil, try await client.head(target) != nil else {
                    throw error
                }
            }
        } catch {
            try? await client.delete(target)
            try? await client.abortMultipart(upload, target)
            throw error
        }
    }

    func path(_ key: BlobKey, in folder: String) async throws(Failure) -> String {
        let path = "\(folder)/\(key)"
        if try Files.facts(path) == nil { _ = try await sha256(key, keptIn: folder) { _ throws(Failure) in } }
        return path
    }

    func sha256(
        _ key: BlobKey, keptIn folder: String?, progress: @escaping @Sendable (Int) throws(Failure) -> Void
    ) async throws(Failure) -> SHA256Digest {
        guard let size = try await client.head(name(key))?.size else {
            throw Failure(.sourceMissing, "The store has lost an object.", detail: "\(key)")
        }
        let sink = try await bulk.run { () throws(Failure) in try FetchSink(key, size: size, folder: folder) }
        var offset = 0
        var next = try await piece(key, at: 0, of: size)
        while !next.isEmpty {
            let (bytes, start, end) = (next, offset, offset + next.count)
            // The next stretch comes while this one is hashed and written.
            async let following = Result { () async throws(Failure) in try await piece(key, at: end, of: size) }
            try await bulk.run { () throws(Failure) in try sink.take(bytes, at: start) }
            offset = end
            try progress(offset)
            next = try await following.get()
        }
        return sink.finish()
    }

    private func piece(_ key: BlobKey, at offset: Int, of size: Int) async throws(Failure) -> [UInt8] {
        try await client.read(name(key), at: offset, count: min(S3Client.rangeMax, size - offset))
    }

    func url(_ key: BlobKey, contentType: String, seconds: Double) -> String? {
        client.presigned(
            .get, name(key),
            query: [
                SignatureV4.Parameter("response-content-type", contentType),
                SignatureV4.Parameter("response-cache-control", "private, max-age=31536000, immutable"),
            ], expiresIn: seconds)
    }

    func remove(_ key: BlobKey) async throws(Failure) { try await client.delete(name(key)) }
}

extension Result where Failure == Vocabulary.Failure {
    fileprivate init(_ body: () async throws(Failure) -> Success) async {
        do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

/// A file read once: its SHA-256, and the MD5 of each of its parts.
private struct Reading: Sendable {
    var bytes = 0
    var sha256: SHA256Digest
    var parts: [SignedPart] = []

    init(_ path: String, partSize: Int) throws(Failure) {
        let file = try OpenFile.reading(path)
        let whole = Digest(.sha256)
        var number = 1
        while true {
            let digest = Digest(.md5)
            var length = 0
            while length < partSize {
                let piece = try file.read(count: min(1 << 20, partSize - length), at: bytes + length)
                guard !piece.isEmpty else { break }
                whole.update(piece)
                digest.update(piece)
                length += piece.count
            }
            guard length > 0 || parts.isEmpty else { break }
            parts.append(SignedPart(number: number, length: length, md5: digest.finalize().hexadecimal))
            bytes += length
            number += 1
            guard length == partSize else { break }
        }
        sha256 = whole.finalizeSHA256()
    }
}

/// Takes an object in as it comes: hashed, and kept in a file where it is needed. Not durable, since it can be fetched again.
private final class FetchSink: @unchecked Sendable {
    // Unchecked: pieces are handed in one after the other.
    private let digest = Digest(.sha256)
    private let file: OpenFile?
    private var isWhole = false

    /// - Throws: `disk-full` when the file would not leave room for others.
    init(_ key: BlobKey, size: Int, folder: String?) throws(Failure) {
        guard let folder else {
            file = nil
            return
        }
        try Files.makeFolder(folder)
        guard try Files.freeBytes(at: folder) > size + APIBounds.freeBytesMin else {
            throw Failure(
                .diskFull, "The backend has no room to look at a file: free some on its disk.", detail: "\(size)")
        }
        let path = "\(folder)/\(key)"
        if try Files.facts(path) != nil { try Files.remove(path) }
        file = try .creating(path)
    }

    func take(_ bytes: [UInt8], at offset: Int) throws(Failure) {
        digest.update(bytes)
        guard let file else { return }
        let result: Result<Void, Failure> = bytes.withUnsafeBytes { buffer in
            do throws(Failure) { return .success(try file.write(buffer, at: offset)) } catch { return .failure(error) }
        }
        try result.get()
    }

    func finish() -> SHA256Digest {
        isWhole = true
        return digest.finalizeSHA256()
    }

    deinit { if !isWhole, let file { try? Files.remove(file.path) } }
}
