import Vocabulary

/// What of an item is made here and what is sent, from what probing found.
enum PreparePlan: Sendable, Equatable {
    enum Job: Sendable, Equatable {
        /// The 1080p rendition and the poster.
        case rendition
        /// A photo's small still.
        case thumbnail
    }

    /// There is nothing to send: the item ends here with this verdict.
    case refuse(Reason)
    /// - Parameters:
    ///   - jobs: whose outputs go up, before the original.
    ///   - sendsOriginal: false while a person wants the rendition alone; the original then stays in staging.
    case send(jobs: [Job], sendsOriginal: Bool)

    /// Long side of a thumbnail in pixels.
    static let thumbnailSize = 512

    /// A verdict gates processing, never safekeeping: only what is no media at all stays here.
    /// - Parameters:
    ///   - report: nil when probing itself failed; the backend looks at the file then.
    ///   - isMetered: whether each byte sent costs something.
    init(report: ProbeReport?, mode: PrepareMode, isMetered: Bool) {
        if let reason = report?.reason {
            self = reason.code == .empty || reason.code == .notMedia ? .refuse(reason) : .original
            return
        }
        guard let facts = report?.facts else {
            self = .original
            return
        }
        let wantsRendition =
            switch mode {
            case .auto: isMetered
            case .original: false
            case .both, .rendition: true
            }
        guard wantsRendition else {
            self = .original
            return
        }
        switch facts.kind {
        case .audio: self = .original
        case .photo, .animation: self = .send(jobs: [.thumbnail], sendsOriginal: true)
        case .video:
            // An original that conforms is its own rendition: nothing is made, and nothing sent twice.
            self =
                facts.delivery == .original
                ? .original : .send(jobs: [.rendition], sendsOriginal: mode != .rendition)
        }
    }

    static let original = PreparePlan.send(jobs: [], sendsOriginal: true)
}
