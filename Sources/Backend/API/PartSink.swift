import Digests
import Files
import HTTPServer
import Vocabulary

/// A part on its way to disk. Nothing of it is visible until it is whole, has the signed length and MD5, and is durable.
final class PartSink: BodySink, @unchecked Sendable {
    // Unchecked: the server's thread writes, then hands over to the request's task; never both at once.
    let permit: PartPermit
    private let draft: Draft
    private let digest = Digest(.md5)
    private var received = 0

    /// - Throws: `gone` when the session takes no parts (any more).
    init(_ permit: PartPermit, in folder: String) throws(Failure) {
        self.permit = permit
        let part = StoredPart(number: permit.part.number, size: permit.part.length, md5: permit.part.md5)
        do { draft = try Draft.begin(for: folder + "/" + part.fileName) } catch {
            throw error.code == .sourceMissing ? Self.gone : error
        }
    }

    static let gone = Failure(.gone, "This upload takes no parts any more: ask how it stands.")

    func receive(_ bytes: UnsafeRawBufferPointer) throws(Failure) -> Int {
        guard received + bytes.count <= permit.part.length else { throw Self.badDigest("more than the signed length") }
        try draft.file.write(bytes, at: received)
        digest.update(bytes)
        received += bytes.count
        return bytes.count
    }

    /// Blocking. - Returns: the ETag.
    func store() throws(Failure) -> String {
        guard received == permit.part.length else { throw Self.badDigest("\(received) of \(permit.part.length) bytes") }
        let md5 = digest.finalize().hexadecimal
        guard md5 == permit.part.md5 else { throw Self.badDigest("MD5 \(md5)") }
        do throws(Failure) { try draft.commit(replacing: true) } catch {
            throw error.code == .sourceMissing ? Self.gone : error
        }
        return "\"\(md5)\""
    }

    static func badDigest(_ detail: String) -> Failure {
        Failure(.badDigest, "This part arrived damaged or is not the one that was signed.", detail: detail)
    }
}
