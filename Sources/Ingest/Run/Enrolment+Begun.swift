import Files
import SQLite
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
            guard try catalog.picks(of: absolute, shoot: request.shoot).contains(where: \.isMoved) else {
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

    /// The moved items of the named files and folders that the walk cannot have found: those still on their way, and all of those that were
    /// named one by one.
    func begun(_ named: NamedPaths, shoot: String, besides known: Set<ItemID>) async throws(Failure) -> [EnrolReport
        .Pick]
    {
        var picks: [EnrolReport.Pick] = []
        for item in try catalog.items("is_moved = 1 AND shoot = ?1", [SQLValue(shoot)]) {
            let isNamed = named.taken.contains(item.source)
            guard !known.contains(item.id),
                isNamed || !item.state.isFinal && named.all.contains(where: { $0.holds(item.source) })
            else { continue }
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
}
