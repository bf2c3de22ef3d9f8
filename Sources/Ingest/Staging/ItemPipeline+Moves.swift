import Files
import Vocabulary

/// The last act of a move: the source goes, once its bytes are safe.
extension ItemPipeline {
    /// The catalog knows the staged copy, or the backend has just said that it has the bytes: the source may go.
    /// - Returns: why it could not be removed. `status` tells of it then, and each run tries again.
    func finishMove(_ file: FileRow, isStaged: Bool = true) async throws(Failure) -> Reason? {
        guard !file.isSourceRemoved else { return nil }
        let staging = staging
        do throws(Failure) {
            _ = try await FileWork.run { stop throws(Failure) in
                try staging.finishMove(file, isStaged: isStaged, stop: stop)
            }
        } catch {
            switch error.code {
            // Its place has become read-only or is away.
            case .readOnly, .sourceMissing, .sourceUnreadable, .ioError: return Reason(error)
            default: throw error
            }
        }
        try await catalog.sourceRemoved(file)
        return nil
    }

    /// The sources that could not be removed when they were taken. One whose copy has left staging since goes only where the backend says now
    /// that it has the same bytes.
    func finishMoves() async throws(Failure) {
        var canAsk = true
        for file in try catalog.unmoved() {
            do throws(Failure) {
                if file.state == .released {
                    // To be asked only for what could go.
                    guard let source = file.source, let sha256 = file.sha256, canAsk,
                        try Files.facts(source) == nil || Files.mayChangeFolder(of: source)
                    else { continue }
                    do throws(Failure) {
                        let document = try await client.item(file.item)
                        guard document.uploads.contains(where: { $0.sha256Recomputed == sha256 }) else { continue }
                    } catch {
                        if error.code == .cancelled { throw error }
                        canAsk = error.code == .notFound || error.code == .gone
                        continue
                    }
                }
                _ = try await finishMove(file, isStaged: file.state == .staged)
            } catch {
                // The others do not wait for it, and it is looked at again with the next run.
                switch error.code {
                case .cancelled, .databaseError: throw error
                default: continue
                }
            }
        }
    }
}
