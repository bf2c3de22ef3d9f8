public import Files
public import Vocabulary

/// What a person wants taken.
public struct PickRequest: Sendable {
    /// Files and folders; folders are walked.
    public var paths: [RawPath]
    public var shoot: String
    /// A person has named the shoot. Else it is today's, and what was picked from the same path on an earlier day stays where it is.
    public var isShootChosen: Bool
    public var title, caption, place: String?
    /// The sources are to go once staging has them.
    public var move: Bool
    public var prepare: PrepareMode
    /// Not to wait for better conditions.
    public var uploadNow: Bool
    /// A person asks, who looks on: it comes before what inboxes find.
    public var isAsked: Bool

    public init(
        paths: [RawPath], shoot: String, isShootChosen: Bool = true, title: String? = nil, caption: String? = nil,
        place: String? = nil, move: Bool = false, prepare: PrepareMode = .auto, uploadNow: Bool = false,
        isAsked: Bool = true
    ) {
        self.paths = paths
        self.shoot = shoot
        self.isShootChosen = isShootChosen
        self.title = title
        self.caption = caption
        self.place = place
        self.move = move
        self.prepare = prepare
        self.uploadNow = uploadNow
        self.isAsked = isAsked
    }

    var chosenShoot: String? { isShootChosen ? shoot : nil }
}

/// What came of a pick.
public struct EnrolReport: Sendable {
    public enum Outcome: Sendable, Hashable {
        /// A new item.
        case new
        /// The same pick is on its way already.
        case joined
        /// An earlier attempt had failed: the item starts again, as its next generation.
        case again
        /// The backend has these bytes in this shoot, confirmed.
        case alreadyThere
        /// The backend had these bytes, confirmed, and does not know them any more: the item begins anew, as its next generation.
        case lost
        /// The same bytes were refused before, for this reason.
        case refusedBefore(Reason)
    }
    public struct Pick: Sendable, Hashable {
        public var item: ItemID
        public var path: RawPath
        public var outcome: Outcome
        /// A move was wanted, and the file stays where it is: the item stands for bytes that came another way, and nobody looks whether these are
        /// still the same before they would go.
        public var staysBehind = false
    }
    public internal(set) var picks: [Pick] = []
    public internal(set) var ignored: [IgnoredFile] = []
    /// Why the backend could not be asked what it holds: what it confirmed earlier counts then.
    public internal(set) var backendFault: Failure?

    /// The items that stand for what was picked, each once.
    public var items: [ItemID] {
        var seen: Set<ItemID> = []
        return picks.map(\.item).filter { seen.insert($0).inserted }
    }
    public init() {}
}

/// Turns picks into items: looks, compares with what is known, and writes the intent of all in one transaction. No byte is copied here.
struct Enrolment: Sendable {
    let catalog: Catalog
    let staging: Staging
    /// The backend in use, and how the catalog remembers it.
    let backend: BackendClient?
    let server: String
    let clock: BoxClock
    let random: BoxRandom

    /// - Throws: `source-missing` before anything is enrolled, `usage` when nothing is named.
    func enrol(_ request: PickRequest) async throws(Failure) -> EnrolReport {
        guard !request.paths.isEmpty else { throw Failure(.usage, "Name the files or folders to take.") }
        guard (1...Self.nameBytesMax).contains(request.shoot.utf8.count) else {
            throw Failure(.usage, "A shoot's name has 1 to \(Self.nameBytesMax) bytes.")
        }
        let start = clock.now()
        let named = try await named(request)
        let paths = named.present
        let (home, isMove) = (staging.home, request.move)
        let (plan, walkedOver) = try await FileWork.run { _ throws(Failure) in
            let walk = try PickWalk(paths, home: home, followsLinksOut: !isMove)
            return (PickPlan(walk.files), walk.ignored)
        }
        var report = EnrolReport()
        report.ignored = walkedOver + plan.ignored
        var picks = Catalog.Picks()
        var backend = BackendAnswers(client: backend, clock: clock)
        for planned in plan.items {
            let (id, outcome) = try await decide(planned.original, request, &backend)
            let item = id ?? makeID()
            report.picks.append(EnrolReport.Pick(item: item, path: planned.original.path, outcome: outcome))
            switch outcome {
            case .new: picks.new.append(newItem(item, planned, request))
            case .lost: picks.lost.append(newItem(item, planned, request))
            case .again: picks.again.append(item)
            case .alreadyThere, .refusedBefore, .joined: break
            }
            if outcome != .new, outcome != .lost {
                let (unknown, isLeftOut) = try await unknownSidecars(item, planned)
                if isLeftOut, outcome != .again { picks.again.append(item) }
                // It would be taken away with its item, which nobody has asked for.
                if !request.move, !unknown.isEmpty, try catalog.item(item)?.isMoved == true {
                    report.ignored += unknown.map { IgnoredFile(path: $0.path, reason: .sidecarOfMoved) }
                } else {
                    picks.sidecars += try rows(unknown, of: item, besides: picks.sidecars)
                }
            }
        }
        if report.picks.contains(where: { $0.outcome == .alreadyThere }) { report.backendFault = backend.fault }
        if request.move { try await markStaying(&report) }
        let begun = try begun(named, request, besides: Set(report.items))
        report.picks += begun
        picks.again += begun.filter { $0.outcome == .again }.map(\.item)
        report.ignored = try without(report.ignored, sidecarsOf: begun)
        let new = Set(picks.new.map(\.id))
        let known = report.items.filter { !new.contains($0) }
        if request.uploadNow { picks.urgent = known }
        if request.isAsked { picks.asked = try catalog.unasked(known) }
        guard !picks.isEmpty else { return report }
        let joined = try await catalog.picked(picks, since: start)
        for index in report.picks.indices {
            guard let item = joined[report.picks[index].item] else { continue }
            report.picks[index].item = item
            report.picks[index].outcome = .joined
        }
        return report
    }

    /// Only an item that was picked to be moved takes its source away.
    private func markStaying(_ report: inout EnrolReport) async throws(Failure) {
        // Moves that this run will finish.
        let unfinished = Dictionary(grouping: try catalog.unmoved(), by: \.item).mapValues { Set($0.map(\.source)) }
        for index in report.picks.indices {
            let pick = report.picks[index]
            switch pick.outcome {
            case .new, .lost: break
            case .alreadyThere:
                report.picks[index].staysBehind = !unfinished[pick.item, default: []].contains(pick.path)
            case .refusedBefore: report.picks[index].staysBehind = true
            case .joined, .again:
                report.picks[index].staysBehind = try catalog.item(pick.item)?.isMoved == false
            }
        }
    }

    /// Sidecars come and are edited after the first ingest: what a known item does not have yet is sent after it, and the item goes its way once
    /// more.
    /// - Returns: also whether there are some among the known ones that could not be read before.
    private func unknownSidecars(
        _ id: ItemID, _ planned: PickPlan.Item
    ) async throws(Failure) -> ([WalkedFile], isLeftOut: Bool) {
        guard !planned.sidecars.isEmpty, let item = try catalog.item(id), item.intent != .cancelled else {
            return ([], false)
        }
        // What is no media goes nowhere, and neither does what belongs to it.
        if item.state == .rejected, try catalog.uploads(of: id).isEmpty { return ([], false) }
        let files = try catalog.files(of: id).filter { $0.role == .sidecar }
        var (unknown, isLeftOut) = ([WalkedFile](), false)
        for sidecar in planned.sidecars {
            let ofSource = files.filter { $0.source == sidecar.path }
            let wasLeftOut = ofSource.contains { $0.isLeftOut(of: item) }
            if wasLeftOut { isLeftOut = true }
            var isKnown = wasLeftOut || ofSource.contains { $0.state == .wanted }
            for known in files where known.bytes == sidecar.size && !isKnown {
                isKnown = try await isSame(sidecar, known)
            }
            if !isKnown { unknown.append(sidecar) }
        }
        return (unknown, isLeftOut)
    }

    /// - Parameter added: what other picks of the same bytes have brought already.
    private func rows(
        _ sidecars: [WalkedFile], of id: ItemID, besides added: [FileRow]
    ) throws(Failure) -> [FileRow] {
        guard !sidecars.isEmpty else { return [] }
        let known = try (catalog.files(of: id) + added).filter { $0.item == id && $0.role == .sidecar }
        var names = Set(known.map(\.name))
        let last = known.compactMap { $0.path.split(separator: "-").last.flatMap { Int($0) } }.max() ?? 0
        return sidecars.enumerated().map { row($1, of: id, index: last + 1 + $0, names: &names) }
    }

    /// Bytes of a name that both sides carry; what is longer is cut for showing, the path itself is not.
    static let nameBytesMax = 255

    private static func shown(_ name: [UInt8]) -> String {
        var text = String(decoding: name, as: UTF8.self)
        while text.utf8.count > nameBytesMax { text.removeLast() }
        return text
    }

    // MARK: Known already?

    private func decide(
        _ file: WalkedFile, _ request: PickRequest, _ backend: inout BackendAnswers
    ) async throws(Failure) -> (ItemID?, EnrolReport.Outcome) {
        for item in try catalog.picks(of: file.path, shoot: request.chosenShoot).reversed() {
            let isSame = item.sourceSize == file.size && item.sourceModified == file.modified
            if item.intent == .cancelled, !item.isOver { return (item.id, .joined) }
            switch item.state {
            case .picked: return (item.id, .joined)
            case .staged, .preparing, .uploading, .processing: if isSame { return (item.id, .joined) }
            case .failed, .missing, .cancelled: if isSame { return (item.id, .again) }
            case .ready, .rejected: break
            }
        }
        var lost: ItemRow?
        let settled = try catalog.settled(
            bytes: file.size, shoot: request.shoot, orSource: request.isShootChosen ? nil : file.path, server: server)
        for (item, known) in settled {
            guard try await isSame(file, known) else { continue }
            // What was never sent needs no asking.
            if let sha256 = known.sha256, try !catalog.uploads(of: item.id).isEmpty {
                try await backend.ask(item.id, of: item.shoot, for: sha256)
                if let held = backend.answers[item.id], !held.contains(sha256) {
                    lost = item
                    continue
                }
            }
            if item.state == .rejected, let reason = item.reason { return (item.id, .refusedBefore(reason)) }
            return (item.id, .alreadyThere)
        }
        guard let lost else { return (nil, .new) }
        // On its way it finds out itself; with bytes of its own in staging it is left as it is.
        guard lost.isOver else { return (lost.id, .joined) }
        let isEmpty = try catalog.files(of: lost.id).allSatisfy { $0.state != .staged }
        return isEmpty ? (lost.id, .lost) : (nil, .new)
    }

    /// The size is the same; then the ends, and only then the whole.
    private func isSame(_ file: WalkedFile, _ known: FileRow) async throws(Failure) -> Bool {
        let staging = staging
        let path = file.path
        let size = file.size
        do throws(Failure) {
            return try await FileWork.run { stop throws(Failure) in
                if let ends = known.ends {
                    let opened = try OpenFile.reading(path)
                    guard try FileEnds.sha256(of: opened, size: size) == ends else { return false }
                }
                return try staging.hasSameBytes(path, as: known, stop: stop)
            }
        } catch {
            // What cannot be read is the new item's failure, not the pick's.
            if error.code == .cancelled { throw error }
            return false
        }
    }

    // MARK: New

    private func makeID<Kind>() -> Identifier<Kind> {
        var random = random
        return Identifier.make(milliseconds: clock.now(), using: &random)
    }

    private func newItem(_ id: ItemID, _ planned: PickPlan.Item, _ request: PickRequest) -> Catalog.NewItem {
        let name = Self.shown(planned.original.path.name)
        var files = [
            FileRow(
                item: id, role: .original, name: name, source: planned.original.path,
                sourceSize: planned.original.size, sourceModified: planned.original.modified,
                path: Staging.path(of: id, sidecar: nil), contentType: ContentType.unknown, state: .wanted,
                card: planned.original.card, below: planned.original.below)
        ]
        var names: Set<String> = []
        for (index, sidecar) in planned.sidecars.enumerated() {
            files.append(row(sidecar, of: id, index: index + 1, names: &names))
        }
        return Catalog.NewItem(
            id: id, shoot: request.shoot, name: name, source: planned.original, isMoved: request.move,
            prepare: request.prepare, title: request.title, caption: request.caption, place: request.place,
            isUrgent: request.uploadNow, isAsked: request.isAsked, files: files, created: clock.now())
    }

    /// - Parameter names: of the item's sidecars so far. Two that differ in bytes may read the same once repaired, and an edited one has the
    ///   name of the first.
    private func row(_ sidecar: WalkedFile, of id: ItemID, index: Int, names: inout Set<String>) -> FileRow {
        let bytes = sidecar.path.name
        var name = Self.shown(bytes)
        if !names.insert(name).inserted {
            name = Self.shown(Array("\(index)-\(name)".utf8))
            names.insert(name)
        }
        return FileRow(
            item: id, role: .sidecar, name: name, source: sidecar.path, sourceSize: sidecar.size,
            sourceModified: sidecar.modified, path: Staging.path(of: id, sidecar: index),
            contentType: ContentType.ofSidecar(bytes), state: .wanted, card: sidecar.card, below: sidecar.below)
    }
}
