import Files
import Ingest
import Vocabulary

extension Verb {
    static let mhl = Verb(
        "mhl", operands: "SHOOT DIR", operandCount: 2...2,
        summary: "write an ASC MHL hash list and the backend's receipt into a folder",
        details: """
            The list (DIR/ascmhl) has the XXH128 of every file as it came off the card: on a copy
            of the card, any tool that reads ASC MHL 2.0 finds each byte that has changed. Where
            a shoot came from several cards, their copies are expected in DIR by their names.
            Run again, it adds a generation. DIR/rushes-receipt.json says which files the backend
            has read back, by SHA-256. Exit code 3 when a file is missing in the list, or differs
            from what the folder's list said before.
            """
    ) { arguments async throws(Failure) in
        guard let proof = try await Proof.open(home: try Configuration.current().home) else {
            throw Failure(.notFound, "Nothing has been taken yet.")
        }
        let report = try await proof.write(
            shoot: arguments.operands[0], into: arguments.paths[1], toolVersion: Help.number)
        for path in report.written { OutputPath.share(path) }
        OutputPath.share(Files.folder(of: report.manifest), mode: 0o777)
        for path in report.differing { try Output.line("\(Output.printable(path)): differs from the earlier list") }
        for gap in report.gaps { Output.say("not in the list: \(gap).") }
        Output.say(
            "\(report.manifest): \(report.fileCount) files, \(report.confirmedCount) of them confirmed by the backend.")
        return report.isWhole ? .done : .partly
    }
}
