public import Files
public import Vocabulary

/// How a file on a card stands.
public enum VerifyStatus: String, Sendable, Codable, CaseIterable {
    /// The backend has read the same bytes itself.
    case safe
    /// The same bytes are here, and not (yet) at the backend.
    case staged = "only-in-staging"
    case notTaken = "not-taken"
    /// The path was taken before, with other bytes.
    case changed
    case unreadable
    /// It was looked at, and there is nothing to show in it.
    case notMedia = "not-media"
    case system

    /// Whether formatting the card would lose something.
    public var blocks: Bool {
        switch self {
        case .staged, .notTaken, .changed, .unreadable: true
        case .safe, .notMedia, .system: false
        }
    }
}

/// One file of a card with its status.
public struct VerifiedFile: Sendable, Equatable {
    public var path: RawPath
    public var status: VerifyStatus
    /// The item that has its bytes, or had its path.
    public var item: ItemID?
    /// A few words more for people, where the status does not say it all.
    public var words: String?
}

/// What is known of given files, against which a card is compared. Pure.
struct VerifyPlan: Sendable {
    /// A given file of an item.
    struct Known: Sendable, Equatable {
        var item: ItemID
        var shoot = ""
        var source: RawPath?
        /// Nil as long as it is not in staging.
        var sha256: SHA256Digest?
        /// When it was taken; when it was picked, as long as it is not in staging.
        var bytes: Int?
        var isStaged = false
        /// The backend had read the same hash when it was asked last.
        var isConfirmed = false
        /// The item was refused for having nothing to show in it.
        var isNoMedia = false
    }
    /// What the backend says now of an item: the hashes that it has read of it.
    typealias Answers = [ItemID: Set<SHA256Digest>]

    private let byHash: [SHA256Digest: [Known]]
    private let bySource: [RawPath: [Known]]

    init(_ known: [Known]) {
        var byHash: [SHA256Digest: [Known]] = [:]
        var bySource: [RawPath: [Known]] = [:]
        for file in known {
            if let sha256 = file.sha256 { byHash[sha256, default: []].append(file) }
            if let source = file.source { bySource[source, default: []].append(file) }
        }
        self.byHash = byHash
        self.bySource = bySource
    }

    /// Items that may hold these bytes at the backend: to be asked for.
    func items(with sha256: SHA256Digest) -> [Known] { byHash[sha256] ?? [] }

    /// - Parameter answers: of the items that the backend could be asked for; it counts more than what was known before.
    func status(of path: RawPath, bytes: Int, sha256: SHA256Digest, answers: Answers) -> VerifiedFile {
        func file(_ status: VerifyStatus, _ item: ItemID?, _ words: String? = nil) -> VerifiedFile {
            VerifiedFile(path: path, status: status, item: item, words: words)
        }
        let same = byHash[sha256] ?? []
        let changed = before(path, bytes: bytes, sha256: sha256).map { before in
            file(.changed, before.item, Self.difference(bytes, before))
        }
        // Nothing at all is the same bytes everywhere: that some empty file is safe, or no media, says nothing of one that had bytes.
        if bytes == 0, let changed { return changed }
        if let safe = same.first(where: { answers[$0.item]?.contains(sha256) ?? $0.isConfirmed }) {
            return file(.safe, safe.item)
        }
        // What is no media is kept only because it was moved.
        if let staged = same.first(where: { $0.isStaged && !$0.isNoMedia }) { return file(.staged, staged.item) }
        if let lost = same.first(where: { $0.isConfirmed && answers[$0.item] != nil }) {
            return file(.notTaken, lost.item, "the backend does not have it any more")
        }
        if let changed { return changed }
        if let refused = same.first(where: \.isNoMedia) { return file(.notMedia, refused.item) }
        if bytes == 0 { return file(.notMedia, nil, "empty") }
        return file(.notTaken, bySource[path]?.last?.item)
    }

    /// What was taken from this path the last time, where that was other bytes and never these.
    private func before(_ path: RawPath, bytes: Int, sha256: SHA256Digest) -> Known? {
        let taken = bySource[path] ?? []
        guard !taken.contains(where: { $0.sha256 == sha256 }) else { return nil }
        // What was only picked has no hash; but it had bytes.
        return taken.last { $0.sha256 != nil || bytes == 0 && $0.bytes ?? 0 > 0 }
    }

    private static func difference(_ now: Int, _ known: Known) -> String {
        let when = known.sha256 == nil ? "picked" : "taken"
        guard let before = known.bytes, before != now else { return "other bytes than when it was \(when)" }
        return now < before
            ? "\(before - now) bytes shorter than when it was \(when)"
            : "\(now - before) bytes longer than when it was \(when)"
    }
}
