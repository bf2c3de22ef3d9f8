import Digests
import Files
import Vocabulary

/// What a part URL allows: exactly one part of one generation of one upload.
struct PartPermit: Sendable, Hashable {
    var session: StoreSession
    var part: SignedPart
    var expiresAt: Timestamp
}

/// Signs URLs to the backend itself, as an S3 store's presigned ones: whoever has one may do what it says until it expires.
struct URLSigner: Sendable {
    private let key: [UInt8]
    static let keyBytes = 32
    static let tokenLengthMax = 400

    init(key: [UInt8]) { self.key = key }

    /// The key lies in the data folder, readable by its owner only; made when it is not there.
    static func open(_ path: String) throws(Failure) -> URLSigner {
        if try Files.facts(path) == nil { try Files.write(MessageAuthentication.randomKey(count: keyBytes), to: path) }
        let key = try OpenFile.reading(path).read(count: keyBytes + 1, at: 0)
        guard key.count == keyBytes else {
            throw Failure(
                .ioError,
                "The backend's signing key is damaged: remove the file; URLs given out before become invalid.",
                remedy: .askUser, detail: path)
        }
        return URLSigner(key: key)
    }

    // MARK: Parts

    func url(for permit: PartPermit) -> String {
        let text = [
            permit.session.upload.rawValue, String(permit.session.generation), String(permit.part.number),
            String(permit.part.length),
            permit.part.md5, String(permit.expiresAt.milliseconds),
        ].joined(separator: ".")
        return "/v1/parts/\(text).\(tag("part", text))"
    }

    /// - Throws: `url-expired`, also for a URL that was never signed.
    func permit(_ token: String, now: Timestamp) throws(Failure) -> PartPermit {
        let invalid = Failure(.urlExpired, "This part URL is not valid (any more): ask for a new one.")
        let pieces = token.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        guard token.utf8.count <= Self.tokenLengthMax, pieces.count == 7,
            isValid(pieces[6], "part", pieces[..<6].joined(separator: ".")),
            let upload = UploadID(rawValue: pieces[0]), let generation = Int(pieces[1]), let number = Int(pieces[2]),
            let length = Int(pieces[3]), let expiry = Int64(pieces[5])
        else { throw invalid }
        guard now < Timestamp(milliseconds: expiry) else { throw invalid }
        return PartPermit(
            session: StoreSession(upload: upload, generation: generation),
            part: SignedPart(number: number, length: length, md5: pieces[4]), expiresAt: Timestamp(milliseconds: expiry)
        )
    }

    // MARK: Media

    func url(for key: BlobKey, expiresAt: Timestamp) -> String {
        let expiry = String(expiresAt.seconds)
        return "/v1/media/\(key)?expires=\(expiry)&signature=\(tag("media", "\(key).\(expiry)"))"
    }

    func allows(_ key: BlobKey, expires: String?, signature: String?, now: Timestamp) -> Bool {
        guard let expires, let signature, let seconds = Int64(expires), now.seconds < seconds else { return false }
        return isValid(signature, "media", "\(key).\(expires)")
    }

    // What is signed says what for, so that a signature for one thing is none for another.
    private func tag(_ purpose: String, _ text: String) -> String {
        MessageAuthentication.sign("\(purpose):\(text)", key: key).base64URL
    }
    private func isValid(_ tag: String, _ purpose: String, _ text: String) -> Bool {
        guard let bytes = [UInt8](base64URL: tag) else { return false }
        return MessageAuthentication.isValid(bytes, for: "\(purpose):\(text)", key: key)
    }
}
