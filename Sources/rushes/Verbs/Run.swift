import Files
import Ingest
import MediaJobs
import Vocabulary

extension Verb {
    static let run = Verb(
        "run", summary: "work the queue and watch the inboxes until stopped",
        details: """
            Whatever other terminals pick joins the queue. The inboxes are the folders in
            RUSHES_INBOX (separated by colons), or inboxes in the settings: what is put there is
            moved away once it has been quiet for RUSHES_INBOX_QUIET seconds (default 5) and
            nobody writes to it. What a person has asked for (ingest, retry, --upload-now) goes
            before what inboxes have found. A second run looks on, and takes over when the first one ends.
            It ends on SIGTERM.
            """,
        options: [order, .server, .memory]
    ) { arguments async throws(Failure) in
        var configuration = try Configuration.current()
        if let text = arguments[order] { configuration.order = try Configuration.order(text, named: "--order") }
        try configuration.makeHome()
        let inboxes = try inboxes(configuration)
        let media = MediaJobs(try arguments.mediaSettings())
        let house = try await House.open(
            configuration, server: arguments[.server], media: media, patience: nil, inboxes: inboxes)
        let display = IngestDisplay(isTerminal: Output.isTerminal)
        Output.say("working the queue\(watched(inboxes)); SIGTERM or ctrl-c ends it.")
        do throws(Failure) {
            try await house.box.run(until: .stopped) { display.show($0) }
            display.end()
            await house.close()
        } catch {
            display.end()
            await house.close()
            guard error.code == .cancelled else { throw error }
        }
        Output.say("stopped; the next run goes on where it was.")
        return .done
    }

    private static func watched(_ inboxes: InboxSettings) -> String {
        inboxes.folders.isEmpty
            ? "" : ", watching \(inboxes.folders.map(\.description).joined(separator: ", "))"
    }

    /// An inbox may be away; what is there must not be our own.
    private static func inboxes(_ configuration: Configuration) throws(Failure) -> InboxSettings {
        var folders: [RawPath] = []
        for name in configuration.inboxes {
            guard name.hasPrefix("/") else {
                throw Failure(.usage, "The inbox “\(name)” needs its whole path, from / on.")
            }
            let folder = (try? RawPath(name).resolved()) ?? RawPath(name)
            try Home.refuseInbox(folder, home: configuration.home)
            folders.append(folder)
        }
        return InboxSettings(
            folders: folders, quietSeconds: configuration.inboxQuiet ?? InboxSettings.quietSecondsDefault,
            shoot: { LocalDate.today() })
    }
}
