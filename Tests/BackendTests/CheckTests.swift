import Digests
import Files
import Foundation
@testable import SQLite
import Testing
import Vocabulary

@testable import Backend

/// Damages a clean folder in one way and expects the check to say so, and nothing else.
@Suite struct CheckTests {
    struct Damage: Sendable, CustomTestStringConvertible {
        var code: String
        var sql: [String] = []
        var files: @Sendable (DirectoryBlobStore) throws -> Void = { _ in }
        var testDescription: String { code }
    }

    static let original = "u-up-1.1"
    static let all: [Damage] = [
        Damage(code: "blob-missing", files: { try Files.remove($0.blobPath(try key(original))) }),
        Damage(code: "blob-size", files: { try Files.write([1], to: $0.blobPath(try key(original))) }),
        Damage(
            code: "blob-damaged",
            files: { try Files.write(Array("SOME bytes".utf8), to: $0.blobPath(try key(original))) }),
        Damage(
            code: "part-damaged",
            files: { store in
                let folder = store.incoming + "/up-2.1"
                let part = try #require(try Files.names(in: folder).first)
                try Files.write(Array("damaged!".utf8), to: folder + "/" + part)
            }),
        Damage(
            code: "received-missing",
            files: { store in
                let tail = try #require(
                    try FileManager.default.subpathsOfDirectory(atPath: store.blobs).first { $0.contains("/t-") })
                try Files.write(Array("DAMAGE".utf8), to: store.blobs + "/" + tail)
            }),
        Damage(
            code: "received-unattached",
            sql: [
                "INSERT INTO tus(upload, metadata, hash) VALUES('up-1', '', '')",
                "UPDATE uploads SET attached = 0 WHERE id = 'up-1'",
            ]),
        Damage(code: "session-unknown", files: { try Files.makeFolder($0.incoming + "/nobody.1") }),
        Damage(code: "stranger", files: { try Files.write([1], to: $0.incoming + "/letter to mum.txt") }),
        Damage(code: "work-unknown", files: { try Files.makeFolder($0.work + "/nothing.1") }),
        Damage(code: "upload-without-blob", sql: ["UPDATE uploads SET blob = NULL WHERE id = 'up-1'"]),
        Damage(
            code: "rendition-without-blob",
            sql: ["PRAGMA foreign_keys = OFF", "DELETE FROM blobs WHERE key LIKE 'd-%'"]),
        Damage(code: "rendition-differs", sql: ["UPDATE renditions SET size = size + 1"]),
        Damage(code: "item-missing", sql: ["UPDATE uploads SET owner = 'nobody' WHERE id = 'up-1'"]),
        Damage(code: "too-many-attempts", sql: ["UPDATE jobs SET attempts = 1000000"]),
        Damage(code: "too-many-attempts", sql: ["UPDATE jobs SET failures = 5"]),
        Damage(code: "row-orphaned", sql: ["PRAGMA foreign_keys = OFF", "UPDATE jobs SET item = 'nothing'"]),
        Damage(
            code: "row-orphaned",
            sql: ["PRAGMA foreign_keys = OFF", "UPDATE renditions SET item = 'nothing' WHERE name = '512'"]),
        Damage(code: "row-orphaned", sql: ["INSERT INTO tus(upload, metadata, hash) VALUES('nothing', '', '')"]),
        Damage(
            code: "row-orphaned",
            sql: [
                "INSERT INTO signed_parts(upload, generation, number, length, md5) VALUES('nothing', 1, 1, 1, '')"
            ]),
        Damage(
            code: "row-orphaned",
            sql: ["INSERT INTO completions(item, epoch, generation, state, at) VALUES('nothing', 1, 1, 'ready', 1)"]),
        Damage(code: "row-orphaned", sql: ["UPDATE events SET item = 'nothing' WHERE number = 1"]),
        Damage(code: "epoch-ahead", sql: ["UPDATE completions SET epoch = epoch + 1"]),
        Damage(
            code: "job-missing",
            sql: ["UPDATE items SET state = 'processing'", "UPDATE events SET state = 'processing' WHERE number = 2"]),
        Damage(code: "event-gap", sql: ["DELETE FROM events WHERE number = 1"]),
        Damage(code: "event-missing", sql: ["UPDATE items SET state = 'rejected'"]),
    ]

    private static func key(_ text: String) throws -> BlobKey { try #require(BlobKey(rawValue: text)) }

    @Test(arguments: all) func eachDamageIsFound(damage: Damage) async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.deliver(file)
        let open = try TestFile("up-2", item: "item-2", Array("on its way".utf8))
        _ = try await test.client.open(open)
        try await test.client.sendParts(open)
        let tus = TusClient(client: test.client)
        #expect(try await tus.patch(try await tus.created(100), at: 0, Array("tail ".utf8) + [7]).status == 204)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)

        let ledger = try Connection(test.data + "/" + Backend.ledgerName)
        for sql in damage.sql { try ledger.execute(sql) }
        try damage.files(try DirectoryBlobStore.open(test.data))
        let findings = try await BackendCheck.run(dataFolder: test.data)
        #expect(Set(findings.map(\.code)) == [damage.code])
        #expect(findings.allSatisfy { !$0.message.isEmpty && !$0.subject.isEmpty && (1...9).contains($0.invariant) })
    }

    @Test func aFolderInWhichNoBackendHasBeenIsClean() async throws {
        let scratch = try ScratchFolder()
        #expect(try await BackendCheck.run(dataFolder: scratch.path + "/none").isEmpty)
        #expect(try Files.facts(scratch.path + "/none") == nil)
    }

    @Test func theStartRemovesWhatNoRowNamesAndNothingElse() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.deliver(file)
        let open = try TestFile("up-2", item: "item-2", Array("on its way".utf8))
        _ = try await test.client.open(open)
        try await test.client.sendParts(open)
        await test.backend.stop()
        let store = try DirectoryBlobStore.open(test.data)
        let before = Set(try await store.keys())
        // What processes that were killed leave behind.
        try Files.makeFolder(store.incoming + "/up-1.1")
        try Files.makeFolder(store.work + "/item-1.7")
        try Files.makeFolder(store.work + "/up-2.tus")
        try Files.write([1], to: store.incoming + "/up-2.1/" + Files.temporaryPrefix + "x")
        let orphan = store.blobPath(try Self.key("d-item-1.1.9999"))
        try Files.makeFolder(Files.folder(of: orphan))
        try Files.write([1], to: orphan)
        let tail = store.blobPath(
            .tail(SignedPart(number: 1, bytes: [1]), of: StoreSession(upload: open.upload, generation: 1)))
        try Files.makeFolder(Files.folder(of: tail))
        try Files.write([1], to: tail)

        let next = try await TestBackend(scratch: test.scratch)
        await next.backend.stop()
        #expect(Set(try await store.keys()) == before)
        #expect(try Files.names(in: store.incoming) == ["up-2.1"])
        #expect(try Files.names(in: store.incoming + "/up-2.1").count == 1)
        #expect(try Files.names(in: store.work).isEmpty)
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }
}
