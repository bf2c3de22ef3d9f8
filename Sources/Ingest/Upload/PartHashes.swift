import Digests
import Files
import Vocabulary

/// Hashes the parts of one staged file as they are signed, and the whole along with them, so that what was sent is known to be the file before it
/// is sealed. The store verifies each part's MD5; a file that changes on the way can so never end half old, half new.
actor PartHashes {
    private let file: FileRow
    private let path: String
    private let staging: Staging
    /// What the file system said of the file before its first byte was read.
    private var facts: FileFacts?
    /// Content-MD5 of parts that are signed and not sent yet.
    private var md5s: [Int: String] = [:]
    /// Over the bytes before `hashedEnd`.
    private let whole: RunningHash
    /// Nil once a part was not read in its turn: again, or after one that an earlier process had read; and while a part is being read.
    private var hashedEnd: Int? = 0
    private var isInOrder = true

    init(_ file: FileRow, in staging: Staging) {
        self.file = file
        self.staging = staging
        path = staging.path(of: file)
        whole = RunningHash(as: file)
    }

    /// As they are to be signed.
    /// - Parameter parts: few enough to be read at once.
    /// - Throws: `staging-missing`, `staging-damaged`.
    func requests(_ parts: [PartGrid.Part]) async throws(Failure) -> [PartRequest] {
        var found = md5s
        let unread = parts.filter { found[$0.number] == nil }
        if !unread.isEmpty {
            if facts == nil { facts = try staging.check(file) }
            var end = hashedEnd
            var inTurn: [PartGrid.Part] = []
            for part in unread {
                if part.offset == end {
                    inTurn.append(part)
                    end = part.offset + part.length
                } else {
                    isInOrder = false
                }
            }
            hashedEnd = nil
            let (path, name, whole) = (path, file.name, whole)
            let read = try await FileWork.run { [inTurn] stop throws(Failure) in
                let reader = try PartReader(path, name, stop)
                let md5s = try reader.contentMD5s(unread)
                for part in inTurn { try reader.read(part, into: whole) }
                return md5s
            }
            if isInOrder { hashedEnd = end }
            for (part, md5) in zip(unread, read) {
                found[part.number] = md5
                md5s[part.number] = md5
            }
        }
        return parts.compactMap { part in
            found[part.number].map { PartRequest(partNumber: part.number, length: part.length, contentMD5: $0) }
        }
    }

    /// The part is at the store, or has to be read again.
    func forget(_ number: Int) { md5s[number] = nil }

    /// Before the file is sealed: what was sent is what was staged. Where that does not show, the file is read once more.
    /// - Throws: `staging-missing`, `staging-damaged`.
    func confirm() async throws(Failure) {
        if try staging.check(file) == facts, hashedEnd == file.bytes {
            hashedEnd = nil
            if whole.agrees() { return }
        }
        let (file, staging) = (file, staging)
        try await FileWork.run { stop throws(Failure) in try staging.verify(file, stop: stop) }
    }
}

/// A hash over a file as it was staged. Chance is what it guards against, so the quick one will do where it is known; the backend reads the bytes
/// again for their SHA-256.
///
/// Unchecked: whoever reads in turn has it to himself.
private final class RunningHash: @unchecked Sendable {
    private enum Kind {
        case xxh128(XXH128, XXH128Digest)
        case sha256(Digest, SHA256Digest?)
    }
    private let kind: Kind

    init(as file: FileRow) {
        kind = file.xxh128.map { .xxh128(XXH128(), $0) } ?? .sha256(Digest(.sha256), file.sha256)
    }

    func update(_ bytes: UnsafeRawBufferPointer) {
        switch kind {
        case .xxh128(let hash, _): hash.update(bytes)
        case .sha256(let hash, _): hash.update(bytes)
        }
    }

    /// Ends the run.
    func agrees() -> Bool {
        switch kind {
        case .xxh128(let hash, let staged): hash.finalize() == staged
        case .sha256(let hash, let staged): hash.finalizeSHA256() == staged
        }
    }
}

/// Reads parts of one file.
private final class PartReader {
    private let path, name: String
    private let file: OpenFile
    private let stop: StopFlag
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bufferBytes, alignment: 64)
    /// For all parts that are read side by side; in the processor's nearer caches.
    private static let bufferBytes = 512 << 10

    init(_ path: String, _ name: String, _ stop: StopFlag) throws(Failure) {
        (self.path, self.name, self.stop) = (path, name, stop)
        do throws(Failure) { file = try OpenFile.reading(path) } catch {
            guard error.code == .sourceMissing else { throw error }
            throw Failure(.stagingMissing, "“\(name)” is no longer in staging: pick it again.", detail: error.detail)
        }
    }

    deinit { buffer.deallocate() }

    /// The Content-MD5 of each part.
    func contentMD5s(_ parts: [PartGrid.Part]) throws(Failure) -> [String] {
        var found: [String] = []
        while found.count < parts.count {
            let first = parts[found.count]
            // Side by side go parts of one length.
            let group = parts[found.count...].prefix(MD5Four.countMax).prefix { $0.length == first.length }
            let isWorthIt = group.count > 1 && first.length % MD5Four.blockBytes == 0
            found += isWorthIt ? try sideBySide(group) : [try alone(first)]
        }
        return found
    }

    private func alone(_ part: PartGrid.Part) throws(Failure) -> String {
        let digest = Digest(.md5)
        try pieces(part) { digest.update($0) }
        return digest.finalize().base64
    }

    private func sideBySide(_ parts: ArraySlice<PartGrid.Part>) throws(Failure) -> [String] {
        let hashes = MD5Four(count: parts.count)
        let length = parts[parts.startIndex].length
        let step = Self.bufferBytes / parts.count / MD5Four.blockBytes * MD5Four.blockBytes
        for start in stride(from: 0, to: length, by: step) {
            try stop.check()
            let count = min(step, length - start)
            for (index, part) in parts.enumerated() {
                try fill(
                    UnsafeMutableRawBufferPointer(rebasing: buffer[index * count..<(index + 1) * count]),
                    part.offset + start)
            }
            hashes.update(UnsafeRawBufferPointer(buffer), length: count)
        }
        return hashes.finalize().map(\.base64)
    }

    func read(_ part: PartGrid.Part, into hash: RunningHash) throws(Failure) {
        try pieces(part) { hash.update($0) }
    }

    private func pieces(_ part: PartGrid.Part, _ body: (UnsafeRawBufferPointer) -> Void) throws(Failure) {
        for start in stride(from: 0, to: part.length, by: Self.bufferBytes) {
            try stop.check()
            let piece = UnsafeMutableRawBufferPointer(
                rebasing: buffer.prefix(min(Self.bufferBytes, part.length - start)))
            try fill(piece, part.offset + start)
            body(UnsafeRawBufferPointer(piece))
        }
    }

    private func fill(_ piece: UnsafeMutableRawBufferPointer, _ offset: Int) throws(Failure) {
        guard try file.read(into: piece, at: offset) == piece.count else {
            throw Failure(
                .stagingDamaged, "“\(name)” has become shorter in staging: pick it again.",
                detail: "\(path) at \(offset)")
        }
    }
}
