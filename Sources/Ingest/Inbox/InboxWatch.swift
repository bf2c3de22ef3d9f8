import Files
import Foundation
import Synchronization
import Vocabulary

/// Looks into the inboxes again and again, and enrols what is finished. A folder that cannot be read is one reason, told once; it is looked at
/// until it is back.
struct InboxWatch: Sendable {
    /// On a connection of its own, so that the runner sees what it writes.
    let enrolment: Enrolment
    let settings: InboxSettings
    let presence: InboxPresence
    let clock: BoxClock
    let events: @Sendable (BoxEvent) -> Void

    /// Seconds between two looks.
    static let interval = 1.0
    /// Items of one look that are taken; the rest waits for the next.
    static let itemsPerLook = 500

    /// Until the surrounding Swift task is cancelled.
    func run() async {
        var folders = settings.folders.map { Folder(path: $0, quietLooks: settings.quietSeconds + 1) }
        while !Task.isCancelled {
            for index in folders.indices { await look(&folders[index]) }
            await clock.sleep(Self.interval)
        }
    }

    private struct Folder {
        let path: RawPath
        var settle: SettlePolicy
        /// What has been enrolled or refused and is still there.
        var known: Set<WalkedFile> = []
        var fault: String?

        init(path: RawPath, quietLooks: Int) {
            self.path = path
            settle = SettlePolicy(quietLooks: quietLooks)
        }
    }

    private func look(_ folder: inout Folder) async {
        let path = folder.path
        do throws(Failure) {
            let (presence, home) = (presence, enrolment.staging.home)
            let files = try await FileWork.run { _ throws(Failure) in
                let files = try PickWalk([path], home: home, followsLinksOut: false).files
                guard presence.saw(path) else {
                    throw Failure(.sourceMissing, "its file system is not mounted.", detail: path.description)
                }
                return files
            }
            if folder.fault != nil {
                folder.fault = nil
                events(.note("the inbox “\(path)” is back."))
            }
            try await take(files, &folder)
        } catch {
            guard error.code != .cancelled, folder.fault != error.message else { return }
            folder.fault = error.message
            folder.settle.forget()
            folder.known = []
            events(.note("the inbox “\(path)” waits: \(error.message)"))
        }
    }

    private func take(_ files: [WalkedFile], _ folder: inout Folder) async throws(Failure) {
        folder.settle.look(at: files)
        folder.known.formIntersection(files)
        let (known, settle) = (folder.known, folder.settle)
        // An item is taken with its sidecars: it waits for the last of them.
        let quiet = PickPlan(files).items.filter { item in
            let all = [item.original] + item.sidecars
            return all.allSatisfy(settle.isQuiet) && !known.isSuperset(of: all)
        }.prefix(Self.itemsPerLook)
        guard !quiet.isEmpty else { return }
        let ready = try await FileWork.run { _ throws(Failure) in
            quiet.filter { item in ([item.original] + item.sidecars).allSatisfy { !Self.isOpenForWriting($0.path) } }
        }
        guard !ready.isEmpty else { return }
        let members = ready.flatMap { [$0.original] + $0.sidecars }
        let report = try await enrolment.enrol(
            PickRequest(
                paths: members.map(\.path), shoot: settings.shoot(), isShootChosen: false, move: true, isAsked: false))
        folder.known.formUnion(members)
        tell(report)
    }

    /// A file that cannot be asked is not held up for ever: its quiet has to do.
    private static func isOpenForWriting(_ path: RawPath) -> Bool {
        (try? OpenFile.reading(path).isOpenForWriting()) ?? false
    }

    private func tell(_ report: EnrolReport) {
        for pick in report.picks {
            switch pick.outcome {
            case .alreadyThere: events(.note("“\(pick.path)” stays in its inbox: the backend has the same already."))
            case .refusedBefore(let reason):
                events(.note("“\(pick.path)” stays in its inbox: refused before (\(reason.code))."))
            case .new, .lost, .again, .joined: break
            }
        }
    }
}

/// Whether the inboxes are what they were: an unmounted card leaves an empty folder of another file system behind.
final class InboxPresence: Sendable {
    private let folders: [RawPath]
    private let devices = Mutex<[RawPath: UInt64]>([:])

    init(_ folders: [RawPath]) { self.folders = folders }

    /// - Returns: false where a file system that was mounted there is not any more: what is seen is the folder below.
    func saw(_ folder: RawPath) -> Bool {
        guard let device = (try? Files.facts(folder))??.device else { return true }
        let outside = (try? Files.facts(folder.folder))??.device
        return devices.withLock { devices in
            if let known = devices[folder], known != device, device == outside { return false }
            devices[folder] = device
            return true
        }
    }

    /// The inbox from which a file comes, if that is not there at present.
    func awayInbox(of source: RawPath) -> RawPath? {
        guard let folder = folders.first(where: { $0.holds(source) }) else { return nil }
        guard let facts = (try? Files.facts(folder)) ?? nil, facts.kind == .folder else { return folder }
        let device = devices.withLock { $0[folder] }
        return device == nil || device == facts.device ? nil : folder
    }
}
