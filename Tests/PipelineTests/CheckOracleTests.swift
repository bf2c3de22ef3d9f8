import Files
import Foundation
@testable import SQLite
import Testing
import Vocabulary

@testable import Backend
@testable import Ingest

/// `rushes check` is what every crash test ends with, so each invariant of ARCHITECTURE.md is broken here once, in a home that a real ingest
/// made, and the program has to say exactly that.
@Suite struct CheckOracleTests {
    struct Damage: Sendable, CustomTestStringConvertible {
        var invariant: Int
        var code: String
        /// What is broken with it.
        var also: Set<String> = []
        var catalog: [String] = []
        var ledger: [String] = []
        var files: @Sendable (String) throws -> Void = { _ in }
        var testDescription: String { "\(invariant): \(code)" }
    }

    static let all: [Damage] = [
        Damage(invariant: 1, code: "blob-missing", files: { try Files.remove(try blob($0, "u-")) }),
        Damage(
            invariant: 1, code: "blob-size",
            files: { home in
                let path = try blob(home, "u-")
                try Files.write([1], to: path)
            }),
        Damage(
            invariant: 1, code: "released-unheld",
            files: { try FileManager.default.removeItem(atPath: $0 + "/backend") }),
        Damage(
            invariant: 1, code: "staged-missing",
            catalog: [
                // Taken again, as far as the catalog knows; but nothing lies in staging.
                "UPDATE item SET state = 'failed' WHERE rowid = 1",
                "UPDATE file SET state = 'staged' WHERE role = 'original' AND item = (SELECT id FROM item WHERE rowid = 1)",
            ]),
        Damage(
            invariant: 2, code: "item-missing",
            ledger: ["UPDATE uploads SET owner = 'nobody' WHERE id = (SELECT MIN(id) FROM uploads)"]),
        Damage(invariant: 3, code: "blob-damaged", files: { try flip(try blob($0, "d-")) }),
        Damage(
            invariant: 3, code: "rendition-differs",
            ledger: ["UPDATE renditions SET size = size + 1 WHERE name = '512'"]),
        Damage(
            invariant: 3, code: "ready-without-rendition",
            ledger: ["DELETE FROM renditions WHERE item = (SELECT MIN(id) FROM items)"]),
        Damage(
            invariant: 4, code: "released-unconfirmed",
            catalog: [
                "UPDATE upload SET confirmed_sha256 = NULL WHERE role = 'original'",
                "UPDATE item SET state = 'failed'",
            ]),
        Damage(
            invariant: 4, code: "ready-unconfirmed",
            catalog: [
                "UPDATE upload SET confirmed_sha256 = NULL WHERE role = 'sidecar'",
                "UPDATE file SET state = 'wanted' WHERE role = 'sidecar'",
            ]),
        Damage(
            invariant: 5, code: "upload-without-blob", also: ["released-unheld"],
            ledger: ["UPDATE uploads SET blob = NULL WHERE role = 'sidecar'"]),
        Damage(
            invariant: 5, code: "upload-without-file",
            catalog: ["PRAGMA foreign_keys = OFF", "DELETE FROM file WHERE role = 'sidecar'"]),
        Damage(invariant: 5, code: "row-orphaned", catalog: ["DELETE FROM item WHERE rowid = 1"]),
        Damage(
            invariant: 5, code: "row-orphaned",
            ledger: ["UPDATE completions SET item = 'nothing' WHERE item = (SELECT MIN(item) FROM completions)"]),
        Damage(
            invariant: 5, code: "original-missing",
            catalog: [
                "DELETE FROM part WHERE upload IN (SELECT id FROM upload WHERE role = 'original')",
                "DELETE FROM upload WHERE role = 'original'", "DELETE FROM file WHERE role = 'original'",
            ]),
        Damage(
            invariant: 5, code: "picked-with-bytes", catalog: ["UPDATE item SET state = 'picked' WHERE rowid = 1"]),
        Damage(invariant: 6, code: "too-many-attempts", ledger: ["UPDATE jobs SET attempts = 1000000"]),
        Damage(invariant: 6, code: "too-many-attempts", ledger: ["UPDATE jobs SET failures = 1000000"]),
        Damage(invariant: 6, code: "attempts-over-limit", catalog: ["UPDATE item SET attempts = 1000000"]),
        Damage(
            invariant: 7, code: "epoch-ahead",
            ledger: ["UPDATE completions SET epoch = epoch + 1 WHERE epoch = (SELECT MAX(epoch) FROM completions)"]),
        Damage(invariant: 8, code: "event-gap", ledger: ["DELETE FROM events WHERE number = 1"]),
        Damage(
            invariant: 9, code: "staging-stranger",
            files: { try Files.write([1], to: $0 + "/staging/letter to mum.txt") }),
        Damage(
            invariant: 9, code: "stranger",
            files: { try Files.write([1], to: $0 + "/backend/incoming/letter to mum.txt") }),
        Damage(
            invariant: 9, code: "session-unknown", files: { try Files.makeFolder($0 + "/backend/incoming/nobody.1") }
        ),
        Damage(invariant: 10, code: "part-off-grid", catalog: ["UPDATE part SET bytes = bytes + 1 WHERE number = 1"]),
    ]

    /// An object of the backend whose key begins so.
    private static func blob(_ home: String, _ prefix: String) throws -> String {
        let blobs = home + "/backend/blobs"
        let paths = try FileManager.default.subpathsOfDirectory(atPath: blobs).sorted()
        let found = try #require(paths.first { $0.split(separator: "/").last?.hasPrefix(prefix) ?? false })
        return blobs + "/" + found
    }

    private static func flip(_ path: String) throws {
        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        bytes[bytes.count / 2] ^= 0xFF
        try Files.write(bytes, to: path)
    }

    /// The home of a finished ingest, made once and copied for each damage.
    private static let finished = Task {
        let scratch = try ScratchFolder()
        try await onThread {
            let card = scratch.path + "/card"
            try FileManager.default.createDirectory(atPath: card, withIntermediateDirectories: true)
            for name in ["portrait-rotated-90.mov", "portrait-rotated-90.xmp", "exif-orientation-6.jpg"] {
                try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: card + "/" + name)
            }
            let home = scratch.path + "/home"
            let ended = try Programs.run(["ingest", card, "--shoot", "oracle"], ["RUSHES_HOME": home])
            try #require(ended.status == 0, "\(ended.errors)")
        }
        return scratch
    }

    @Test(arguments: all) func eachBrokenInvariantIsFound(damage: Damage) async throws {
        let finished = try await Self.finished.value
        let scratch = try ScratchFolder()
        let home = scratch.path + "/home"
        try FileManager.default.copyItem(atPath: finished.path + "/home", toPath: home)
        try Self.edit(home + "/catalog.db", damage.catalog)
        try Self.edit(home + "/backend/" + Backend.ledgerName, damage.ledger)
        try damage.files(home)

        let check = try await onThread { try Programs.run(["check", "--json"], ["RUSHES_HOME": home]) }
        let findings = try check.output.split(separator: "\n").map {
            try JSONDecoder().decode(Finding.self, from: Data($0.utf8))
        }
        #expect(Set(findings.map(\.code)) == damage.also.union([damage.code]), "\(check.output)\(check.errors)")
        #expect(findings.allSatisfy { $0.invariant == damage.invariant || damage.also.contains($0.code) })
        #expect(check.status == 1)
    }

    @Test func aHomeThatNothingHappenedToIsClean() async throws {
        let finished = try await Self.finished.value
        let scratch = try ScratchFolder()
        try FileManager.default.copyItem(atPath: finished.path + "/home", toPath: scratch.path + "/home")
        let check = try await onThread { try Programs.run(["check"], ["RUSHES_HOME": scratch.path + "/home"]) }
        #expect(check.status == 0, "\(check.output)\(check.errors)")
    }

    @Test func everyInvariantHasItsDamage() {
        #expect(Set(Self.all.map(\.invariant)) == Set(1...10))
    }

    private static func edit(_ path: String, _ statements: [String]) throws {
        guard !statements.isEmpty else { return }
        let database = try Connection(path)
        for sql in statements { try database.execute(sql) }
    }
}
