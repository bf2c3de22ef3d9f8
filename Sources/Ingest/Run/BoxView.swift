import Files
public import Vocabulary

/// What a home holds, for looking only: works beside a running box and starts nothing.
public struct BoxView: Sendable {
    let catalog: Catalog
    let staging: Staging

    /// - Returns: nil where nothing has been taken yet.
    public static func open(home: String) async throws(Failure) -> BoxView? {
        guard try Home.isInUse(home) else { return nil }
        return BoxView(
            catalog: try await Catalog.open(home: home, isLooking: true), staging: Staging(root: home + "/staging"))
    }

    /// - Parameter ids: nil for all, in the order in which they were picked.
    public func items(_ ids: [ItemID]? = nil) async throws(Failure) -> [ItemStatus] {
        var statuses: [ItemStatus] = []
        if let ids {
            for id in ids {
                guard let item = try catalog.item(id) else { continue }
                statuses.append(try await status(item))
            }
        } else {
            for item in try catalog.items() { statuses.append(try await status(item)) }
        }
        return statuses
    }

    /// - Throws: `not-found`.
    public func show(_ id: ItemID) async throws(Failure) -> ItemDetail {
        guard let item = try catalog.item(id) else {
            throw Failure(.notFound, "There is no item “\(id)”: `rushes status` lists them.")
        }
        let uploads = try catalog.uploads(of: id)
        let files = try catalog.files(of: id).map { file in
            let upload = uploads.first { $0.role == file.role && $0.name == file.name }
            return ItemDetail.File(
                role: file.role, name: file.name, bytes: file.bytes, sha256: file.sha256,
                stagedPath: file.state == .staged ? staging.path(of: file) : nil,
                remainingSource: file.isUnmoved(of: item) ? file.source?.description : nil,
                upload: upload?.id, uploadState: upload?.state,
                confirmedSHA256: upload?.confirmedSHA256)
        }
        let (history, leftOut) = try catalog.history(of: id)
        return ItemDetail(
            status: try await status(item), source: item.source.description, attempts: item.attempts,
            probe: try item.probe?.read(), document: try item.document?.read(), files: files,
            history: history.map(ItemDetail.Step.init), leftOut: leftOut)
    }

    private func status(_ item: ItemRow) async throws(Failure) -> ItemStatus {
        let given = try catalog.files(of: item.id).filter(\.role.isGiven)
        var (bytes, confirmed) = try catalog.transferred(item.id)
        if bytes == 0 {
            bytes = given.reduce(0) { $0 + ($1.bytes ?? $1.sourceSize) }
            confirmed = 0
        }
        return ItemStatus(
            item: item.id, shoot: item.shoot, name: item.name, kind: item.kind, state: item.state,
            intent: item.intent, waiting: item.waiting, reason: item.reason, generation: item.generation,
            bytes: bytes, confirmedBytes: confirmed, outputs: try item.document?.read().renditions ?? [],
            staged: given.filter { $0.state == .staged }.map(\.name),
            remaining: given.filter { $0.isUnmoved(of: item) }.compactMap(\.source?.description))
    }
}
