import Files
import Foundation
@testable import SQLite
import Testing
import Vocabulary

@testable import Backend

/// What nobody names any more goes from the store at once, and not when somebody comes to look. Here nobody ever does.
@Suite(.timeLimit(.minutes(2))) struct TidyTests {
    private static let never = 1e6

    /// Files of the store, whoever they belong to.
    private func stored(_ test: TestBackend) async throws -> [String] {
        let store = try DirectoryBlobStore.open(test.data)
        return try await store.keys().map(\.rawValue) + Files.names(in: store.incoming)
    }

    private func expectNothingLeft(_ test: TestBackend) async throws {
        while try await !stored(test).isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        let findings = try await BackendCheck.run(dataFolder: test.data)
        #expect(findings == [], "\(findings)")
    }

    @Test func theBytesOfADeletedItemGoWithIt() async throws {
        let test = try await TestBackend(idle: Self.never)
        let file = try TestFile("up-1")
        try await test.client.deliver(file)
        // Beside the original: one that was opened for the item, and has a part.
        var sidecar = try TestFile("up-2", Array("<xmp/>".utf8))
        (sidecar.role, sidecar.name) = (.sidecar, "IMG_1.XMP")
        _ = try await test.client.open(sidecar)
        try await test.client.sendParts(sidecar)
        #expect(try await stored(test).count > 2)
        #expect(try await test.client.request("DELETE", "/v1/items/item-1").status == 204)
        try await expectNothingLeft(test)
        await test.backend.stop()
    }

    @Test func theBytesOfAnUploadThatIsGivenUpGoWithIt() async throws {
        let test = try await TestBackend(idle: Self.never)
        try await test.client.upload(try TestFile("up-1"))
        #expect(try await stored(test).count == 1)
        #expect(try await test.client.request("DELETE", "/v1/uploads/up-1").status == 204)
        try await expectNothingLeft(test)
        await test.backend.stop()
    }

    @Test func aBackendThatEndsLeavesNothingBehindThatNobodyNames() async throws {
        let test = try await TestBackend(idle: Self.never)
        let store = try DirectoryBlobStore.open(test.data)
        let key = try #require(BlobKey(rawValue: "d-item-1.9.512"))
        try Files.makeFolder(Files.folder(of: store.blobPath(key)))
        try Files.write([1], to: store.blobPath(key))
        // Its row went this moment.
        try Connection(test.data + "/" + Backend.ledgerName).run(
            "INSERT INTO doomed(key) VALUES(?1)", [.text(key.rawValue)])
        await test.backend.stop()
        #expect(try await stored(test) == [])
    }
}
