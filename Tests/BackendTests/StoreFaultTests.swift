import Curl
import Digests
import Files
import Foundation
@testable import SQLite
import Synchronization
import TestStores
import Testing
import Vocabulary

@testable import Backend

/// What a store, or something in its place, may say, and what it must not cost.
@Suite(.serialized, .timeLimit(.minutes(3))) struct StoreFaultTests {
    private static let owner = Owner.local

    /// The photo of an item that is ready: verified, and gone from the box.
    private func ready(_ test: TestBackend, _ id: String = "up-1") async throws -> TestFile {
        let file = try TestFile(id)
        try await test.client.deliver(file)
        return file
    }

    /// Makes the job of a ready item start over, as something that was attached later does.
    private func attachSidecar(_ test: TestBackend, _ id: String = "up-2") async throws {
        var sidecar = try TestFile(id, Array("<xmp/>".utf8))
        (sidecar.role, sidecar.name) = (.sidecar, id)
        try await test.client.upload(sidecar)
        _ = try await test.client.attach(sidecar)
    }

    @Test func aNakedNotFoundIsNobodysWord() async throws {
        guard let store = try BentStore.ceph() else { return }
        let test = try await TestBackend(store: store.settings)
        let file = try await ready(test)
        let asked = Mutex(0)
        store.bend { request, through in
            guard request.isOf("HEAD", "u-up-1.1") else { return await through() }
            asked.withLock { $0 += 1 }
            return BentStore.Answer(status: 404)
        }
        try await attachSidecar(test)
        let item = try await test.client.item(file.item) { $0.state != .processing }
        #expect(item.state == .ready && item.reason == nil && asked.withLock { $0 } > 0)
        let original = try #require(item.uploads.first { $0.role == .original })
        #expect(original.state == .complete && original.sha256Recomputed == file.sha256)
        await test.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        await store.stop()
    }

    @Test func aWrongBucketIsRefusedAndCostsNothing() async throws {
        guard let ceph = TestStore.ceph else { return }
        let right = try S3Settings(ceph)
        let test = try await TestBackend(store: right)
        let file = try await ready(test)
        let open = try TestFile("up-9", item: "item-9", Array("on its way".utf8))
        _ = try await test.client.open(open)
        await test.backend.stop()
        var wrong = right
        wrong.bucket = "somebody-elses"
        let client = S3Client(settings: wrong, http: HTTPClient(), clock: Timestamp.system)
        try await client.send(S3Client.Request(method: .put)).expectSuccess()

        let refusal = await #expect(throws: Failure.self) {
            let other = try await TestBackend(scratch: test.scratch, store: wrong)
            await other.backend.stop()
        }
        #expect(refusal?.remedy == .askUser && refusal?.message.contains("RUSHES_S3_BUCKET") == true)
        let next = try await TestBackend(scratch: test.scratch, store: right)
        #expect(try await next.client.item(file.item).state == .ready)
        let parts: StoredParts = try await next.client.request("GET", "/v1/uploads/up-9/parts").decoded()
        #expect(parts.state == .open)
        await next.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data, store: right).isEmpty)
    }

    @Test func whatWasVerifiedStaysUntilItsReplacementIs() async throws {
        guard let store = try BentStore.ceph() else { return }
        let test = try await TestBackend(store: store.settings)
        let file = try await ready(test)
        let bucket = try await bucket(of: test, store)
        let key = BlobKey.upload(StoreSession(upload: file.upload, generation: 1))
        // The store itself says so, for a while.
        store.bend { request, through in
            guard request.key.hasSuffix("u-up-1.1") else { return await through() }
            switch request.method {
            case "HEAD": return BentStore.Answer(status: 404)
            case "GET": return BentStore.refusal(404, "NoSuchKey")
            default: return await through()
            }
        }
        try await attachSidecar(test)
        let waiting = try await test.client.item(file.item) { $0.state == .awaiting }
        #expect(waiting.uploads.first { $0.role == .original }?.sha256Recomputed == nil)
        await test.backend.stop()
        store.bend { await $1() }
        #expect(try await bucket.size(key) == file.bytes.count)

        // There it is again: nothing has to come a second time.
        let next = try await TestBackend(scratch: test.scratch, store: store.settings)
        let healed = try await next.client.item(file.item) { $0.state == .ready }
        let original = try #require(healed.uploads.first { $0.role == .original })
        #expect(original.state == .complete && original.sha256Recomputed == file.sha256)
        await next.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        await store.stop()
    }

    @Test func whatIsReplacedAndVerifiedGoes() async throws {
        guard let store = try BentStore.ceph() else { return }
        let test = try await TestBackend(store: store.settings)
        let file = try await ready(test)
        let bucket = try await bucket(of: test, store)
        try await bucket.remove(.upload(StoreSession(upload: file.upload, generation: 1)))
        try await attachSidecar(test)
        _ = try await test.client.item(file.item) { $0.state == .awaiting }
        let reopened: UploadSession = try await test.client.send(
            "POST", "/v1/uploads/up-1/reopen", ReopenUploadRequest(generation: 1)
        ).decoded()
        #expect(reopened.generation == 2)
        try await test.client.sendParts(file, generation: 2)
        #expect(
            try await test.client.send("POST", "/v1/uploads/up-1/complete", file.complete(generation: 2)).status == 200)
        _ = try await test.client.item(file.item) { $0.state == .ready }
        await test.backend.stop()
        let ledger = try await SQLiteLedger.open(test.data + "/ledger.sqlite")
        #expect(try await ledger.blob(.upload(StoreSession(upload: file.upload, generation: 1))) == nil)
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        await store.stop()
    }

    // MARK: Whole objects without a row

    @Test func anOlderLedgerCostsNothingOfWhatCameAfterIt() async throws {
        guard let store = try BentStore.ceph() else { return }
        let test = try await TestBackend(store: store.settings)
        let early = try await ready(test)
        let underway = try TestFile("up-7", item: "item-7", Array("on its way".utf8))
        _ = try await test.client.open(underway)
        await test.backend.stop()
        // A backup, a day before the end of a shoot.
        let backup = try ScratchFolder()
        for name in try Files.names(in: test.data) where name.hasPrefix("ledger.sqlite") || name == "signing-key" {
            try Files.makeFolder(backup.path + "/data")
            try Files.write(
                try OpenFile.reading(test.data + "/" + name).read(count: 64 << 20, at: 0),
                to: backup.path + "/data/" + name)
        }
        // So old that what was open then has run out.
        try Connection(backup.path + "/data/" + Backend.ledgerName).run("UPDATE uploads SET expires_at = 0")
        let bucket = try await bucket(of: test, store)
        let earlier = try await Self.keys(bucket)
        let later = try await TestBackend(scratch: test.scratch, store: store.settings)
        let taken = try TestFile("up-5", item: "item-5", Array("taken later".utf8))
        for file in [underway, taken] {
            try await later.client.deliver(file)
        }
        let last = try TestFile("up-8", item: "item-8", Array("not all there".utf8))
        _ = try await later.client.open(last)
        try await later.client.sendParts(last)
        await later.backend.stop()
        let (before, sessions) = (try await Self.keys(bucket), try await bucket.sessions())
        #expect(sessions.count == 1)

        let said = Mutex<[String]>([])
        let restored = try await TestBackend(
            scratch: backup, store: store.settings, log: { line in said.withLock { $0.append(line) } })
        #expect(try await restored.client.request("DELETE", "/v1/items/\(early.item)").status == 204)
        await restored.backend.stop()
        #expect(try await Self.keys(bucket) == before)
        #expect(try await bucket.sessions() == sessions)
        #expect(said.withLock { $0.count { $0.contains("nothing is removed") } } == 1)
        // Back to the newer one.
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        let observed = try await BackendCheck.observations(dataFolder: backup.path + "/data", store: store.settings)
        #expect(Set(observed.map(\.code)) == ["blob-unknown"])
        #expect(
            Set(observed.map(\.subject)) == Set(before.subtracting(earlier).map(\.rawValue)).subtracting(["u-up-7.1"]))
        let findings = try await BackendCheck.run(dataFolder: backup.path + "/data", store: store.settings)
        #expect(findings.map(\.code) == ["session-unknown"])
        let newest = try await TestBackend(scratch: test.scratch, store: store.settings)
        #expect(try await newest.client.send("POST", "/v1/uploads/up-8/complete", last.complete()).status == 200)
        await newest.backend.stop()

        // What comes to the older one again lies beside what it does not know.
        let again = try await TestBackend(scratch: backup, store: store.settings)
        try await again.client.deliver(taken)
        await again.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        // As long as it could not look, it cannot know.
        store.bend { request, through in
            request.query["list-type"] == nil ? await through() : BentStore.refusal(503, "SlowDown")
        }
        let blind = try await TestBackend(scratch: backup, store: store.settings)
        await blind.backend.stop()
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        await store.stop()
    }

    // MARK: What cannot be removed

    @Test func anObjectThatMayNotBeDeletedKeepsNobodyFromTheRest() async throws {
        guard let store = try BentStore.ceph() else { return }
        let said = Mutex<[String]>([])
        let log: @Sendable (String) -> Void = { line in said.withLock { $0.append(line) } }
        let test = try await TestBackend(store: store.settings, log: log)
        let file = try await ready(test)
        let other = try TestFile("up-3", item: "item-3", Array("other bytes".utf8))
        try await test.client.upload(other)
        let bucket = try await bucket(of: test, store)
        let lock: BentStore.Bend = { request, through in
            request.isOf("DELETE", "u-up-1.1") ? BentStore.refusal(403, "AccessDenied") : await through()
        }
        store.bend(lock)
        #expect(try await test.client.request("DELETE", "/v1/items/\(file.item)").status == 204)
        #expect(try await test.client.request("DELETE", "/v1/uploads/up-3").status == 204)
        let (locked, free) = (
            BlobKey.upload(StoreSession(upload: file.upload, generation: 1)),
            BlobKey.upload(StoreSession(upload: other.upload, generation: 1))
        )
        await store.removed("/\(free)")
        #expect(try await bucket.size(free) == nil)
        #expect(try await bucket.size(locked) != nil)
        // Looked at again with what came later, and not tried again.
        let later = try TestFile("up-4", item: "item-4", Array("later bytes".utf8))
        try await test.client.upload(later)
        #expect(try await test.client.request("DELETE", "/v1/uploads/up-4").status == 204)
        let laterKey = BlobKey.upload(StoreSession(upload: later.upload, generation: 1))
        await store.removed("/\(laterKey)")
        #expect(try await bucket.size(laterKey) == nil)
        #expect(store.seen.count { $0.isOf("DELETE", "u-up-1.1") && $0.query.isEmpty } == 1)
        #expect(said.withLock { $0.count { $0.contains("u-up-1.1") } } == 1)
        await test.backend.stop()

        let next = try await TestBackend(scratch: test.scratch, store: store.settings, log: log)
        store.bend { await $1() }
        await next.backend.stop()
        let last = try await TestBackend(scratch: test.scratch, store: store.settings, log: log)
        await last.backend.stop()
        #expect(try await bucket.size(locked) == nil)
        await store.stop()
    }

    // MARK: What was begun and not finished

    @Test func whatAKilledJobWasStoringIsEnded() async throws {
        guard let store = try BentStore.ceph() else { return }
        let test = try await TestBackend(store: store.settings)
        _ = try await ready(test)
        await test.backend.stop()
        let bucket = try await bucket(of: test, store)
        for key in ["d-item-1.1.1080p", "c-up-1.1", "d-item-9.4.720p"] {
            _ = try await bucket.client.createMultipart("\(bucket.prefix)/\(key)")
        }
        let findings = try await BackendCheck.run(dataFolder: test.data, store: store.settings)
        #expect(Set(findings.map(\.code)) == ["write-unknown"] && findings.count == 3)
        // One of them may be another's.
        let careful = try await TestBackend(scratch: test.scratch, store: store.settings)
        await careful.backend.stop()
        let writes = try await bucket.underway().writes
        #expect(writes.count == 3)
        for write in writes where write.key?.rawValue == "d-item-9.4.720p" { try await bucket.end(write) }
        let next = try await TestBackend(scratch: test.scratch, store: store.settings)
        await next.backend.stop()
        #expect(try await bucket.client.multiparts(prefix: bucket.prefix + "/").isEmpty)
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        await store.stop()
    }

    /// Ceph, when it is killed between the object and the end of its upload: that is still listed, and ending it takes the object's bytes.
    @Test(arguments: [500, 200]) func anUploadThatIsListedBesideItsObjectCostsNoByte(answer: Int) async throws {
        guard let ceph = TestStore.ceph, let store = try BentStore.ceph() else { return }
        let direct = try S3Client.on(ceph)
        let half = Mutex(HalfDone())
        store.bend { request, through in
            if request.method == "GET", request.query["uploads"] != nil, let listing = half.withLock({ $0.uploads }) {
                return BentStore.document(listing)
            }
            guard request.key.hasSuffix("/u-up-1.1"), let upload = request.query["uploadId"] else {
                return await through()
            }
            switch request.method {
            case "POST":
                let told = await through()
                half.withLock { ($0.key, $0.upload) = (request.key, upload) }
                return answer == 200 ? told : BentStore.refusal(500, "InternalError")
            case "GET":
                if half.withLock({ $0.isThere }), let parts = half.withLock({ $0.parts }) { return parts }
                let told = await through()
                if told.status == 200 { half.withLock { $0.parts = told } }
                return told
            case "DELETE":
                half.withLock { $0.isEnded = true }
                try? await direct.delete(request.key)
                return BentStore.Answer(status: 204)
            default: return await through()
            }
        }
        let test = try await TestBackend(store: store.settings)
        let file = try await ready(test)
        await test.backend.stop()
        let next = try await TestBackend(scratch: test.scratch, store: store.settings)
        #expect(try await next.client.item(file.item).state == .ready)
        await next.backend.stop()
        let bucket = try await bucket(of: test, store)
        let isCopied = answer != 200
        let session = try #require(StoreSession(folderName: "up-1.1"))
        #expect(half.withLock { $0.upload } != nil && half.withLock { $0.isEnded } == isCopied)
        for (key, isThere) in [(BlobKey.copied(session), isCopied), (.upload(session), !isCopied)] {
            #expect((try await bucket.size(key) != nil) == isThere, "\(key)")
        }
        #expect(try await BackendCheck.run(dataFolder: test.data, store: store.settings).isEmpty)
        await store.stop()
    }

    private struct HalfDone {
        var key = ""
        var upload: String?
        var parts: BentStore.Answer?
        var isEnded = false
        var isThere: Bool { upload != nil && !isEnded }
        var uploads: String? {
            guard isThere, let upload else { return nil }
            return """
                <ListMultipartUploadsResult><IsTruncated>false</IsTruncated><Upload><Key>\(key)</Key>\
                <UploadId>\(upload)</UploadId></Upload></ListMultipartUploadsResult>
                """
        }
    }

    @Test func sessionsThatTheStoreDoesNotListEndWithTheirItem() async throws {
        guard
            let store = try BentStore.ceph({ request, through in
                // As MinIO does it: the key itself, or nothing.
                guard request.query["uploads"] != nil, request.method == "GET" else { return await through() }
                return BentStore.document(
                    "<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>")
            })
        else { return }
        let test = try await TestBackend(store: store.settings)
        let file = try TestFile("up-1")
        _ = try await test.client.open(file)
        try await test.client.sendParts(file)
        let bucket = try await bucket(of: test, store)
        let direct = try await bucket.client.multiparts(prefix: bucket.prefix + "/u-")
        #expect(direct.count == 1)
        #expect(try await test.client.request("DELETE", "/v1/items/\(file.item)").status == 204)
        await test.backend.stop()
        #expect(try await bucket.client.multiparts(prefix: bucket.prefix + "/u-").isEmpty)
        await store.stop()
    }

    // MARK: Listings

    @Test func aStoreThatListsNothingOrNeverEndsKeepsNoBackendFromStarting() async throws {
        guard let store = try BentStore.ceph() else { return }
        let said = Mutex<[String]>([])
        store.bend { request, through in
            guard request.method == "GET" else { return await through() }
            if request.query["uploads"] != nil { return BentStore.refusal(403, "AccessDenied") }
            guard request.query["list-type"] != nil else { return await through() }
            let page = Int(request.query["continuation-token"] ?? "0") ?? 0
            return BentStore.document(
                """
                <ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>\(page + 1)</NextContinuationToken>
                <Contents><Key>elsewhere/u-up-\(page).1</Key></Contents></ListBucketResult>
                """)
        }
        let test = try await TestBackend(store: store.settings, log: { line in said.withLock { $0.append(line) } })
        #expect(store.seen.count { $0.query["list-type"] != nil } == S3Client.objectPageMax)
        #expect(said.withLock { $0.count { $0.contains("look for what nobody names") } } == 1)
        #expect(said.withLock { $0.count { $0.contains("look at the sessions") } } == 1)
        _ = try await ready(test)
        await test.backend.stop()
        await store.stop()
    }

    // MARK: Spelling

    @Test func anETagInCapitalsIsTheSame() async throws {
        guard
            let store = try BentStore.ceph({ request, through in
                var answer = await through()
                // After the end only the HEAD tells.
                guard request.method == "HEAD" else { return answer }
                answer.headers = answer.headers.map {
                    $0.name.lowercased() == "etag" ? ($0.name, $0.value.uppercased()) : $0
                }
                return answer
            })
        else { return }
        let test = try await TestBackend(store: store.settings)
        _ = try await ready(test)
        await test.backend.stop()
        await store.stop()
    }

    // MARK: Pieces

    private func bucket(of test: TestBackend, _ store: BentStore) async throws -> S3BlobStore {
        let ceph = try #require(TestStore.ceph)
        let ledger = try await SQLiteLedger.open(test.data + "/ledger.sqlite")
        return S3BlobStore(
            client: try S3Client.on(ceph), prefix: try #require(try await ledger.storePrefix(orMake: nil)),
            abilities: .usual, workFolder: test.data + "/work")
    }

    private static func keys(_ bucket: S3BlobStore) async throws -> Set<BlobKey> { Set(try await bucket.keys()) }
}
