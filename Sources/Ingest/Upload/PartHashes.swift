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
    private let whole = RunningHash()
    /// Nil once a part was not read in its turn: again, or after one that an earlier process had read; and while a part is being read.
    private var hashedEnd: Int? = 0
    private var isInOrder = true

    init(_ file: FileRow, in staging: Staging) {
        self.file = file
        self.staging = staging
        path = staging.path(of: file)
    }

    /// As it is to be signed.
    /// - Throws: `staging-missing`, `staging-damaged`.
    func request(_ part: PartGrid.Part) async throws(Failure) -> PartRequest {
        if let known = md5s[part.number] {
            return PartRequest(partNumber: part.number, length: part.length, contentMD5: known)
        }
        if facts == nil { facts = try staging.check(file) }
        let isNext = part.offset == hashedEnd
        if !isNext { isInOrder = false }
        hashedEnd = nil
        let (path, name, whole) = (path, file.name, isNext ? whole : nil)
        let md5 = try await FileWork.run { stop throws(Failure) in
            try contentMD5(path, name, part, along: whole, stop: stop)
        }
        if isInOrder { hashedEnd = part.offset + part.length }
        md5s[part.number] = md5
        return PartRequest(partNumber: part.number, length: part.length, contentMD5: md5)
    }

    /// The part is at the store, or has to be read again.
    func forget(_ number: Int) { md5s[number] = nil }

    /// Before the file is sealed: what was sent is what was staged. Where that does not show, the file is read once more.
    /// - Throws: `staging-missing`, `staging-damaged`.
    func confirm() async throws(Failure) {
        if try staging.check(file) == facts, hashedEnd == file.bytes {
            hashedEnd = nil
            if whole.digest.finalizeSHA256() == file.sha256 { return }
        }
        let (file, staging) = (file, staging)
        try await FileWork.run { stop throws(Failure) in try staging.verify(file, stop: stop) }
    }
}

/// Unchecked: whoever reads in turn has it to himself.
private final class RunningHash: @unchecked Sendable { let digest = Digest(.sha256) }

/// Bytes read at a time.
private let bufferBytes = 1 << 20

private func contentMD5(
    _ path: String, _ name: String, _ part: PartGrid.Part, along whole: RunningHash?, stop: StopFlag
) throws(Failure) -> String {
    let file: OpenFile
    do throws(Failure) { file = try OpenFile.reading(path) } catch {
        guard error.code == .sourceMissing else { throw error }
        throw Failure(.stagingMissing, "“\(name)” is no longer in staging: pick it again.", detail: error.detail)
    }
    let digest = Digest(.md5)
    var offset = part.offset
    let end = part.offset + part.length
    while offset < end {
        try stop.check()
        let bytes = try file.read(count: min(bufferBytes, end - offset), at: offset)
        guard !bytes.isEmpty else {
            throw Failure(
                .stagingDamaged, "“\(name)” has become shorter in staging: pick it again.",
                detail: "\(path) at \(offset)")
        }
        digest.update(bytes)
        whole?.digest.update(bytes)
        offset += bytes.count
    }
    return digest.finalize().base64
}
