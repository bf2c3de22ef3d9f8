import Files
import Foundation
import Ingest
import MediaJobs
import Vocabulary

extension Verb {
    static let verify = Verb(
        "verify", operands: "PATH…", operandCount: 1...Int.max,
        summary: "say whether everything on a card is safe, so that it may be formatted",
        details: """
            Hashes every file again. Safe is what the backend has read itself with the same hash;
            it is asked again where it answers. Files that would be lost are named; what is no
            media does not count. Exit code 3 when anything would be lost, or nothing is there.
            """,
        options: [.server, .json]
    ) { arguments async throws(Failure) in
        let configuration = try Configuration.current()
        let paths = arguments.paths
        let report: VerifyReport
        if try !Home.isInUse(configuration.home) {
            report = try await look(paths, .ofNothing)
        } else {
            let media = MediaJobs(try arguments.mediaSettings())
            let house = try await House.open(
                configuration, server: arguments[.server], media: media, isLooking: true)
            do throws(Failure) {
                report = try await look(paths, house.box.verification(asks: house.canAsk))
                await house.close()
            } catch {
                await house.close()
                throw error
            }
        }
        try tell(report, asJSON: arguments.has(.json))
        return report.isSafe ? .done : .partly
    }

    private static func look(_ paths: [RawPath], _ verification: Verification) async throws(Failure) -> VerifyReport {
        let bar = ProgressLine("hashing")
        defer { bar.end() }
        return try await verification.run(paths) { bar.show(MediaProgress(fraction: $0, frames: 0)) }
    }

    private static func tell(_ report: VerifyReport, asJSON: Bool) throws(Failure) {
        if asJSON {
            for file in report.files { try Output.json(VerifyWords.Line(file)) }
            try Output.json(VerifyWords.Verdict(report))
        } else {
            for line in VerifyWords.lines(report) { try Output.line(line) }
        }
    }
}

/// A verified card in words and JSON. Pure.
enum VerifyWords {
    struct Line: Encodable {
        var path: String
        var status: VerifyStatus
        var item: ItemID?
        var note: String?

        init(_ file: VerifiedFile) {
            path = file.path.description
            status = file.status
            item = file.item
            note = file.words
        }
        enum CodingKeys: String, CodingKey { case path, status, item, note }
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(path, forKey: .path)
            try container.encode(status, forKey: .status)
            try container.encode(item, forKey: .item)
            try container.encode(note, forKey: .note)
        }
    }
    struct Verdict: Encodable {
        var verdict: String
        var counts: [String: Int]
        var backendAsked: Bool
        enum CodingKeys: String, CodingKey {
            case verdict, counts
            case backendAsked = "backend_asked"
        }
        init(_ report: VerifyReport) {
            verdict =
                report.hasNothing ? "nothing to verify" : report.isSafe ? "safe to format" : "not safe to format"
            counts = Dictionary(report.files.map { ($0.status.rawValue, 1) }, uniquingKeysWith: +)
            backendAsked = report.isBackendAsked
        }
    }

    /// What would be lost and what is no media, by name; the rest is counted. The verdict comes last.
    static func lines(_ report: VerifyReport) -> [String] {
        if report.hasNothing { return ["nothing to verify: there are no files here. Is the card in its place?"] }
        var lines = report.files.filter { $0.status.blocks || $0.status == .notMedia }.map { file in
            "\(Output.printable(file.path.description)): \(words(file.status))"
                + (file.words.map { " (\(Output.printable($0)))" } ?? "")
        }
        let safe = report.files.count { $0.status == .safe }
        let lost = report.files.count { $0.status.blocks }
        let asked = report.isBackendAsked ? "" : " (as it said earlier: it cannot be asked now)"
        if lost > 0 {
            lines.append(
                "NOT safe to format: \(lost) of \(report.files.count) files would be lost; \(safe) are safe at the backend\(asked)"
            )
        } else {
            let others = report.files.count { $0.status == .notMedia }
            let left = others > 0 ? "; the \(others) named above are no media that can be read, and stay behind" : ""
            lines.append("safe to format: \(safe) of \(report.files.count) files are at the backend\(asked)\(left)")
        }
        return lines
    }

    private static func words(_ status: VerifyStatus) -> String {
        switch status {
        case .safe: "safe"
        case .staged: "only in staging"
        case .notTaken: "not taken"
        case .changed: "changed"
        case .unreadable: "cannot be read"
        case .notMedia: "not media"
        case .system: "system file"
        }
    }
}
