import Vocabulary

/// What an item is missing, from what was found out about it. Pure.
struct ProcessingPlan: Sendable, Hashable {
    /// What everything is made from.
    var source: UploadID
    /// The original's own bytes are offered as the rendition.
    var isAlias = false
    /// Outputs of one decode of the video.
    var transcode: [OutputName] = []
    var thumbSizes: [Int] = []

    /// - Parameters:
    ///   - facts: of the source.
    ///   - derived: complete uploads in derived roles that were found good.
    ///   - keepsLocation: originals may be served with the place where they were taken.
    ///   - thumbnailSizes: that a photo is to have.
    init(
        source: UploadRow, facts: MediaFacts, derived: [UploadRow], keepsLocation: Bool, thumbnailSizes: [Int]
    ) {
        self.source = source.id
        func has(_ role: FileRole, _ name: String? = nil) -> Bool {
            derived.contains { $0.role == role && (name == nil || $0.name == name) }
        }
        switch facts.kind {
        case .video:
            if !has(.rendition, OutputName.rendition1080.rawValue) {
                // Served as it is, an original would tell where it was taken; remuxed, it does not.
                let isShareable = keepsLocation || facts.gps == nil
                isAlias = source.role == .original && facts.delivery == .original && isShareable
                if !isAlias { transcode.append(.rendition1080) }
            }
            if !has(.poster) { transcode.append(.poster) }
            if !has(.storyboard) { transcode += [.storyboard, .storyboardIndex] }
        case .animation:
            if !has(.rendition, OutputName.rendition1080.rawValue) { transcode.append(.rendition1080) }
            thumbSizes = thumbnailSizes.filter { !has(.thumbnail, String($0)) }
        case .photo:
            thumbSizes = thumbnailSizes.filter { !has(.thumbnail, String($0)) }
        case .audio: break
        }
    }
}

extension ItemRow {
    /// What everything is made from: the original, or the largest rendition while that is still to come.
    var source: UploadRow? {
        uploads.first { $0.role == .original }
            ?? uploads.filter { $0.role == .rendition }.max { ($0.size ?? 0) < ($1.size ?? 0) }
    }
    var derivedUploads: [UploadRow] { uploads.filter { !$0.role.isGiven } }
}
