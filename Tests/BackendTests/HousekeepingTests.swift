import Digests
import Files
import Foundation
import Synchronization
import Testing
import Vocabulary

@testable import Backend

@Suite struct SetbackTests {
    private let start = ContinuousClock.now

    @Test func whatFailedWaitsLongerEachTime() {
        var setbacks = Setbacks(firstDelay: 10, delayMax: 35)
        #expect(setbacks.isDue("a", at: start))
        var isFirst = setbacks.failed("a", at: start)
        #expect(isFirst)
        for (seconds, isDue) in [(0.0, false), (9.9, false), (10, true)] {
            #expect(setbacks.isDue("a", at: start + .seconds(seconds)) == isDue)
        }
        // The other one is not meant.
        #expect(setbacks.isDue("b", at: start))
        for (attempt, delay) in [(2, 20.0), (3, 35), (4, 35)] {
            isFirst = setbacks.failed("a", at: start)
            #expect(!isFirst, "\(attempt)")
            #expect(!setbacks.isDue("a", at: start + .seconds(delay - 0.1)))
            #expect(setbacks.isDue("a", at: start + .seconds(delay)))
        }
        let known = [setbacks.succeeded("a"), setbacks.succeeded("a")]
        #expect(known == [true, false])
        isFirst = setbacks.failed("a", at: start)
        #expect(isFirst)
    }

    @Test func whatIsRememberedIsBounded() {
        var setbacks = Setbacks(firstDelay: 10, delayMax: 10)
        for number in 0...Setbacks.countMax { _ = setbacks.failed("\(number)", at: start + .milliseconds(number)) }
        #expect(setbacks.isDue("0", at: start + .seconds(1)))
        #expect(!setbacks.isDue("1", at: start + .seconds(1)))
    }

    @Test func whatIsEverybodysFaultEndsTheRound() async throws {
        let said = Mutex<[String]>([])
        let attempts = Attempts(firstDelay: 10, delayMax: 10) { line in said.withLock { $0.append(line) } }
        let refusal = Failure(.backendError, "No.")
        let away = Failure(.backendUnreachable, "Away.")
        #expect(try await attempts.attempt("remove a") { () throws(Failure) in throw refusal } == .failed)
        #expect(
            try await attempts.attempt("remove a") { () throws(Failure) in Issue.record("too early") } == .postponed)
        #expect(try await attempts.attempt("remove b") { () throws(Failure) in } == .done)
        let thrown = await #expect(throws: Failure.self) {
            try await attempts.attempt("remove c") { () throws(Failure) in throw away }
        }
        #expect(thrown?.code == .backendUnreachable)
        #expect(said.withLock { $0.count } == 1)
    }
}

/// What an object is that no row names.
@Suite struct StrayTests {
    @Test func onlyWhatThisLedgerHasDecidedOnIsLeftOver() async throws {
        let scratch = try ScratchFolder()
        let ledger = try await SQLiteLedger.open(scratch.path + "/l")
        let (owner, start) = (LedgerConformance.owner, LedgerConformance.start)
        let open = try LedgerConformance.upload("up-1")
        _ = try await ledger.open(open.open, owner: owner, now: start, expiresAt: start)
        let ended = try LedgerConformance.upload("up-2", item: "item-2")
        _ = try await ledger.open(ended.open, owner: owner, now: start, expiresAt: start)
        _ = try await ledger.abort(ended.upload, owner: owner)
        let anew = try LedgerConformance.upload("up-3", item: "item-3")
        _ = try await ledger.open(anew.open, owner: owner, now: start, expiresAt: start)
        _ = try await ledger.reopen(anew.upload, owner: owner, generation: 1, expiresAt: start)
        let done = try LedgerConformance.upload("up-4", item: "item-4")
        _ = try await LedgerConformance.attached(done, in: ledger)
        let job = try await LedgerConformance.claimed(ledger)
        let (gone, part) = (try #require(ItemID(rawValue: "item-5")), SignedPart(number: 1, bytes: [1]))
        _ = try await LedgerConformance.attached(try LedgerConformance.upload("up-5", item: "item-5"), in: ledger)
        #expect(try await ledger.remove(gone, owner: owner, now: start))
        let awaiting = try #require(ItemID(rawValue: "item-6"))
        _ = try await ledger.attach(
            AttachRequest(kind: nil, shoot: "wedding", uploads: []), to: awaiting, owner: owner, now: start)

        let strays = Strays(ledger: ledger)
        let tail = "1-\(part.md5)-1"
        for (key, standing) in [
            ("u-up-1.1", StrayStanding.needed), ("c-up-1.1", .needed), ("u-up-1.2", .unknown), ("u-up-2.1", .leftOver),
            ("c-up-2.1", .leftOver), ("u-up-3.1", .leftOver), ("u-up-3.2", .needed), ("u-up-3.3", .unknown),
            // Its copy has the row.
            ("u-up-4.1", .leftOver), ("u-up-9.1", .unknown), ("c-up-9.1", .unknown),
            ("d-item-4.\(job.epoch).512", .needed), ("d-item-4.\(job.epoch - 1).512", .leftOver),
            ("d-item-4.\(job.epoch + 1).512", .unknown), ("d-item-5.7.512", .leftOver), ("d-item-6.1.512", .unknown),
            ("d-item-9.1.512", .unknown),
            ("t-up-1.1.\(tail)", .leftOver), ("t-up-9.1.\(tail)", .unknown), ("p-up-9", .leftOver),
            ("letter", .foreign),
        ] {
            let key = try #require(BlobKey(rawValue: key))
            #expect(try await strays.standing(of: key) == standing, "\(key)")
        }
    }

    @Test func aLostLedgerCostsNoFile() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.deliver(file)
        let open = try TestFile("up-2", item: "item-2", Array("on its way".utf8))
        _ = try await test.client.open(open)
        await test.backend.stop()
        let store = try DirectoryBlobStore.open(test.data)
        let (keys, sessions) = (Set(try await store.keys()), try await store.sessions())
        #expect(keys.count > 1 && sessions.count == 1)
        for name in try Files.names(in: test.data) where name.hasPrefix(Backend.ledgerName) {
            try Files.remove(test.data + "/" + name)
        }
        let said = Mutex<[String]>([])
        let next = try await TestBackend(scratch: test.scratch, log: { line in said.withLock { $0.append(line) } })
        await next.backend.stop()
        #expect(Set(try await store.keys()) == keys)
        #expect(try await store.sessions() == sessions)
        #expect(said.withLock { $0.count { $0.contains("nothing is removed") } } == 1)
    }

    @Test func nothingIsRemovedWhileThereIsWhatTheLedgerDoesNotKnow() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-2")
        try await test.client.upload(file)
        await test.backend.stop()
        let store = try DirectoryBlobStore.open(test.data)
        let paths = try ["u-up-1.1", "p-up-9", "letter"].map { store.blobPath(try #require(BlobKey(rawValue: $0))) }
        for path in paths {
            try Files.makeFolder(Files.folder(of: path))
            try Files.write([1], to: path)
        }
        #expect(try await BackendCheck.observations(dataFolder: test.data).map(\.subject) == ["u-up-1.1"])
        let careful = try await TestBackend(scratch: test.scratch)
        #expect(try await careful.client.request("DELETE", "/v1/uploads/up-2").status == 204)
        await careful.backend.stop()
        #expect(
            try await store.keys().map(\.rawValue).sorted() == ["letter", "p-up-9", "u-up-1.1", "u-up-2.1"])
        try Files.remove(paths[0])
        let next = try await TestBackend(scratch: test.scratch)
        await next.backend.stop()
        #expect(try await store.keys().map(\.rawValue) == ["letter"])
        #expect(try await BackendCheck.run(dataFolder: test.data).isEmpty)
    }

    @Test func aBackendWhoseFilesAreInABucketDoesNotStartWithoutIt() async throws {
        let test = try await TestBackend()
        let file = try TestFile("up-1")
        try await test.client.upload(file)
        await test.backend.stop()
        let ledger = try await SQLiteLedger.open(test.data + "/" + Backend.ledgerName)
        _ = try await ledger.storePrefix(orMake: "x")
        // A bucket was tried, and the files are here.
        let next = try await TestBackend(scratch: test.scratch)
        await next.backend.stop()
        for key in try await ledger.blobs(after: nil, limit: 9).map(\.key) {
            try Files.remove(DirectoryBlobStore.open(test.data).blobPath(key))
        }
        let refusal = await #expect(throws: Failure.self) { try await TestBackend(scratch: test.scratch) }
        #expect(refusal?.remedy == .askUser && refusal?.message.contains("RUSHES_S3_ENDPOINT") == true)
    }
}
