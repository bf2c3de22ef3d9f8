import Files
import Vocabulary

/// A move takes files away from where they were named. The same command, given again after an interruption, still means them.
extension Enrolment {
    struct NamedPaths: Sendable {
        /// What is there, to be walked.
        var present: [RawPath] = []
        /// What a move of this shoot has taken.
        var taken: [RawPath] = []
        /// All of them, absolute.
        var all: [RawPath] = []
    }

    /// - Throws: `source-missing` for a path at which nothing is, and from which nothing was taken.
    func named(_ request: PickRequest) async throws(Failure) -> NamedPaths {
        var named = NamedPaths()
        for path in request.paths {
            if let resolved = try await FileWork.run({ _ throws(Failure) in try Self.resolved(path) }) {
                named.present.append(path)
                named.all.append(resolved)
                continue
            }
            let absolute = try await FileWork.run { _ throws(Failure) in
                try path.folder.resolved().appending(path.name)
            }
            guard try catalog.picks(of: absolute, shoot: request.chosenShoot).contains(where: \.isMoved) else {
                _ = try path.resolved()
                continue
            }
            named.taken.append(absolute)
            named.all.append(absolute)
        }
        return named
    }

    private static func resolved(_ path: RawPath) throws(Failure) -> RawPath? {
        do throws(Failure) { return try path.resolved() } catch {
            guard error.code == .sourceMissing else { throw error }
            return nil
        }
    }

    /// The items of the named files and folders that the walk cannot have found, since a move or somebody else has taken their sources away, or
    /// a day or another shoot lies between: those still on their way, and all of those that were moved and are named one by one.
    func begun(
        _ named: NamedPaths, _ request: PickRequest, besides known: Set<ItemID>
    ) throws(Failure) -> [EnrolReport.Pick] {
        let all = Set(named.all)
        var items = try catalog.items("state IN (\(Catalog.unfinishedStates))").filter { Self.holds(all, $0.source) }
        for path in named.taken { items += try catalog.picks(of: path, shoot: request.chosenShoot).filter(\.isMoved) }
        var (picks, seen) = ([EnrolReport.Pick](), known)
        for item in items where seen.insert(item.id).inserted {
            let outcome: EnrolReport.Outcome =
                switch item.state {
                case .ready: .alreadyThere
                case .rejected: item.reason.map { .refusedBefore($0) } ?? .joined
                case .failed, .missing, .cancelled: .again
                case .picked, .staged, .preparing, .uploading, .processing: .joined
                }
            picks.append(EnrolReport.Pick(item: item.id, path: item.source, outcome: outcome))
        }
        return picks
    }

    /// Whether one of the paths is this one or leads to it.
    private static func holds(_ paths: Set<RawPath>, _ path: RawPath) -> Bool {
        var place = path
        while !paths.contains(place) {
            if place.folder == place || place.folder == "." { return false }
            place = place.folder
        }
        return true
    }
}
