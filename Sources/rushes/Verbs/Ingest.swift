import Backend
import Files
import Foundation
import Ingest
import MediaJobs
import Vocabulary

extension Verb {
    private static let shoot = Option("--shoot", "NAME", "the batch that the files belong to (default: today's date)")
    private static let title = Option("--title", "T", "a title for every item")
    private static let caption = Option("--caption", "C", "a caption for every item")
    private static let place = Option("--place", "P", "where it was")
    private static let move = Option(
        "--move", nil, "take the files away from where they are, once they are safe in staging")
    private static let prepare = Option(
        "--prepare", "P", "auto, original, 1080p or both: what is uploaded (default auto)")
    private static let uploadNow = Option(
        "--upload-now", nil, "do not wait for network, power or hours that the settings ask for")
    static let order = Option(
        "--order", "O", "chosen, smallest or newest: which file goes first (default chosen)")
    private static let noWait = Option(
        "--no-wait", nil,
        "end once everything is uploaded (the own backend goes on with the next run)")

    static let ingest = Verb(
        "ingest", operands: "PATH…", operandCount: 1...Int.max,
        summary: "take photos and videos, and see them through to ready",
        details: """
            Folders are walked; sidecars go with their item, system files are left. Files are
            copied into staging first and leave it when the backend has the same bytes. Start the
            same command again after any interruption: it goes on where it was. With --move, links
            that lead out of a named folder are not followed.
            """,
        options: [shoot, title, caption, place, move, prepare, uploadNow, order, .server, noWait, .json, .memory]
    ) { arguments async throws(Failure) in
        guard let mode = PrepareMode(rawValue: arguments[prepare] ?? PrepareMode.auto.rawValue) else {
            throw Failure(.usage, "--prepare takes auto, original, 1080p or both.")
        }
        let request = PickRequest(
            paths: arguments.paths, shoot: arguments[shoot] ?? LocalDate.today(),
            isShootChosen: arguments[shoot] != nil,
            title: arguments[title], caption: arguments[caption], place: arguments[place], move: arguments.has(move),
            prepare: mode, uploadNow: arguments.has(uploadNow))
        var configuration = try Configuration.current()
        if let text = arguments[order] { configuration.order = try Configuration.order(text, named: "--order") }
        // Nothing is made for a slip of the pen.
        if try !Home.isInUse(configuration.home) {
            for path in request.paths { _ = try path.resolved() }
        }
        let media = MediaJobs(try arguments.mediaSettings())
        let house = try await House.open(configuration, server: arguments[.server], media: media)
        do throws(Failure) {
            let code = try await takeIn(
                request, house, waits: !arguments.has(noWait), asJSON: arguments.has(.json))
            await house.close()
            return code
        } catch {
            await house.close()
            throw error
        }
    }

    private static func takeIn(
        _ request: PickRequest, _ house: House, waits: Bool, asJSON: Bool
    ) async throws(Failure) -> ExitCode {
        let report = try await house.box.enrol(request)
        let display = IngestDisplay(isTerminal: Output.isTerminal)
        display.announce(report)
        do throws(Failure) {
            if !report.items.isEmpty {
                try await house.box.run(
                    until: waits ? .itemsFinal(report.items) : .itemsHandedOver(report.items)
                ) { display.show($0) }
            }
            display.end()
        } catch {
            display.end()
            if error.code == .cancelled {
                Output.say("stopped; the same command goes on where it was.")
                return .failed
            }
            throw IngestWords.ended(error)
        }
        let items = try await house.box.items(report.items)
        if asJSON { for item in items { try Output.json(item) } }
        Output.say(IngestWords.summary(items, report))
        for line in IngestWords.left(items, hasOwnBackend: house.hasOwnBackend) { Output.say(line) }
        let leftOut = try await house.box.leftOut(report.items)
        for name in leftOut { Output.say("\(name): not taken, it could not be read; its item went without it.") }
        let isUnread = !leftOut.isEmpty || report.backendFault != nil || report.ignored.contains(where: \.reason.isLoss)
        let isWhole = items.allSatisfy { $0.state == .ready || !waits && $0.state == .processing }
        return isWhole && !isUnread ? .done : .partly
    }
}

/// Today as the person's clock has it: `2026-11-30`.
enum LocalDate {
    static func today() -> String {
        let parts = Calendar(identifier: .gregorian).dateComponents([.year, .month, .day], from: Date())
        return String(format: "%04d-%02d-%02d", parts.year ?? 0, parts.month ?? 0, parts.day ?? 0)
    }
}
