import Digests
import Vocabulary

/// What a client says about a file, and what that means here. Pure.
struct TusMetadata: Sendable, Hashable {
    var values: [String: String]

    /// - Parameter header: `key base64,key base64,key`: keys are unique, a value may be missing.
    init(_ header: String) throws(Failure) {
        guard header.utf8.count <= Tus.metadataBytesMax else {
            throw Failure(.badRequest, "Upload-Metadata is longer than \(Tus.metadataBytesMax) bytes.")
        }
        values = [:]
        guard !header.isEmpty else { return }
        for pair in header.split(separator: ",", omittingEmptySubsequences: false) {
            let words = pair.split(separator: " ", omittingEmptySubsequences: true)
            guard (1...2).contains(words.count) else { throw Self.malformed }
            guard let value = words.count == 1 ? [] : [UInt8](base64: String(words[1])) else {
                throw Self.malformed
            }
            guard values.updateValue(String(decoding: value, as: UTF8.self), forKey: String(words[0])) == nil else {
                throw Failure(.badRequest, "Upload-Metadata has the key “\(words[0])” twice.")
            }
        }
    }

    private static let malformed = Failure(
        .badRequest, "Upload-Metadata has to be pairs of a key and a value in base64, with commas between them.")

    /// The file's own name: clients spell the key in two ways, and some send a path.
    var filename: String {
        let given = text("filename") ?? text("name") ?? ""
        let name = given.split { $0 == "/" || $0 == "\\" }.last.map(String.init) ?? ""
        return name.isEmpty ? Self.nameless : name
    }
    static let nameless = "upload"

    var contentType: String { text("filetype") ?? text("type") ?? "application/octet-stream" }
    var shoot: String? { text("shoot") }

    /// A finished upload is the original of an item of its own, which has the upload's id.
    func attachment(of upload: UploadID, shoot: String) -> AttachRequest {
        AttachRequest(
            kind: nil, shoot: shoot, title: text("title"), caption: text("caption"), place: text("place"),
            takenAt: text("taken_at"),
            uploads: [AttachRequest.Upload(uploadID: upload, role: .original, name: Self.role)])
    }

    func opening(of upload: UploadID, _ item: ItemID, length: Int?, shoot: String) -> OpenUploadRequest {
        OpenUploadRequest(
            uploadID: upload, itemID: item, role: .original, name: Self.role, filename: filename,
            contentType: contentType, sizeBytes: length, partSize: PartLimits.partSize(for: length), sha256: nil,
            shoot: shoot, parts: [])
    }
    /// Of the only file that the item gets.
    private static let role = FileRole.original.rawValue

    private func text(_ key: String) -> String? { values[key].flatMap { $0.isEmpty ? nil : $0 } }
}
