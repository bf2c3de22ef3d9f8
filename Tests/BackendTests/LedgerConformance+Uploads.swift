import Digests
import Testing
import Vocabulary

@testable import Backend

/// Sessions, their ends, and what of them becomes whose.
extension LedgerConformance {
    @Sendable static func openIsRepeatable(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let later = start.adding(seconds: 100)
        #expect(try await ledger.open(file.open, owner: owner, now: start, expiresAt: later).isNew)
        #expect(try await !ledger.open(file.open, owner: owner, now: start, expiresAt: later).isNew)
        var other = file.open
        other.sizeBytes = 6
        #expect(
            await failure { _ = try await ledger.open(other, owner: owner, now: start, expiresAt: later) } == .conflict)
        #expect(
            await failure { _ = try await ledger.open(file.open, owner: stranger, now: start, expiresAt: later) }
                == .notFound)
        #expect(try await ledger.upload(file.upload, owner: stranger) == nil)
        #expect(try await ledger.abort(file.upload, owner: stranger) == nil)
        #expect(try await ledger.reopen(file.upload, owner: stranger, generation: 1, expiresAt: later) == nil)
    }

    @Sendable static func staleGenerations(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
        let next = StoreSession(upload: file.upload, generation: 2)
        let part = SignedPart(number: 1, length: 5, md5: String(repeating: "0", count: 32))
        #expect(
            await failure { try await ledger.recordSigned([part], session: next, owner: owner, expiresAt: start) }
                == .staleGeneration)
        #expect(
            await failure {
                _ = try await ledger.seal(
                    next, owner: owner, key: .upload(next), size: 5, sha256: file.sha256, now: start)
            } == .staleGeneration)
        try await ledger.recordSigned([part], session: row.session, owner: owner, expiresAt: start)
        var again = part
        again.md5 = String(repeating: "1", count: 32)
        try await ledger.recordSigned([again], session: row.session, owner: owner, expiresAt: start)
        #expect(try await ledger.signedParts(row.session) == [again])
        _ = try await ledger.abort(file.upload, owner: owner)
        #expect(
            await failure {
                try await ledger.recordSigned([part], session: row.session, owner: owner, expiresAt: start)
            } == .gone)
    }

    @Sendable static func reopen(_ ledger: any Ledger) async throws {
        let file = try upload("up-1")
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
        try await ledger.recordSigned(
            [SignedPart(number: 1, length: 5, md5: String(repeating: "0", count: 32))], session: row.session,
            owner: owner, expiresAt: start)
        try await ledger.expire(row.session)
        for _ in 0..<2 {
            let next = try #require(try await ledger.reopen(file.upload, owner: owner, generation: 1, expiresAt: start))
            #expect(next.generation == 2)
            #expect(next.state == .open)
            #expect(try await ledger.signedParts(next.session).isEmpty)
        }
        for generation in [3, .min, .max] {
            let code = await failure {
                _ = try await ledger.reopen(file.upload, owner: owner, generation: generation, expiresAt: start)
            }
            #expect(code == .staleGeneration)
        }
        let session = StoreSession(upload: file.upload, generation: 2)
        let sealed = try await ledger.seal(
            session, owner: owner, key: .upload(session), size: 5, sha256: file.sha256, now: start)
        // A completed upload is not lost, whatever the client believes.
        #expect(try await ledger.reopen(file.upload, owner: owner, generation: 2, expiresAt: start) == sealed)
    }

    @Sendable static func references(_ ledger: any Ledger) async throws {
        let first = try upload("up-1")
        let second = try upload("up-2", item: "item-2")
        _ = try await attached(first, in: ledger)
        let job = try await claimed(ledger)
        let key = try await ledger.recordVerified(
            first.upload, item: first.item, epoch: job.epoch, sha256: first.sha256, now: start)
        let stored = try await sealed(second, in: ledger)
        #expect(stored.isAlreadyStored)
        #expect(stored.blob == key)
        _ = try await attached(second, in: ledger)
        #expect(try await ledger.remove(first.item, owner: owner, now: start))
        #expect(try await ledger.doomedBlobs(limit: 10).isEmpty)
        #expect(try await !ledger.remove(second.item, owner: stranger, now: start))
        for _ in 0..<2 { #expect(try await ledger.remove(second.item, owner: owner, now: start)) }
        let doomed = try await ledger.doomedBlobs(limit: 10)
        #expect(doomed.first == key)
        #expect(try await ledger.blob(try #require(key)) == nil)
        try await ledger.forgetDoomed(doomed)
        #expect(try await ledger.doomedBlobs(limit: 10).isEmpty)

        // What comes late does not bring it back; asking for just that does, and no key is used twice.
        let late = await #expect(throws: Failure.self) { _ = try await attached(second, in: ledger) }
        #expect(late?.code == .gone)
        let again = try await ledger.attach(
            AttachRequest(kind: nil, shoot: "s", uploads: []), to: second.item, owner: owner, now: start)
        #expect(again.state == .awaiting && again.generation > 1)
        let third = try upload("up-again", item: second.item.rawValue, bytes: "again")
        _ = try await sealed(third, in: ledger)
        _ = try await attached(third, in: ledger)
        #expect(try await claimed(ledger).epoch > job.epoch + 1000)
    }

    @Sendable static func expiry(_ ledger: any Ledger) async throws {
        let open = try upload("up-1")
        let loose = try upload("up-2", bytes: "loose")
        let taken = try upload("up-3", item: "item-3", bytes: "taken")
        _ = try await ledger.open(open.open, owner: owner, now: start, expiresAt: start.adding(seconds: 100))
        _ = try await sealed(loose, in: ledger)
        _ = try await attached(taken, in: ledger)
        try await ledger.sweep(now: start.adding(seconds: 99), isRestart: false, policy: policy)
        #expect(try await ledger.upload(open.upload, owner: owner)?.state == .open)
        try await ledger.sweep(now: start.adding(seconds: 101), isRestart: false, policy: policy)
        #expect(try await ledger.upload(open.upload, owner: owner)?.state == .expired)
        #expect(try await ledger.upload(loose.upload, owner: owner)?.state == .expired)
        #expect(try await ledger.upload(taken.upload, owner: owner)?.state == .complete)
        #expect(try await ledger.doomedBlobs(limit: 10).map(\.rawValue) == ["c-up-1.1", "u-up-1.1", "u-up-2.1"])
    }

    @Sendable static func folding(_ ledger: any Ledger) async throws {
        let first = try upload("up-1")
        let second = try upload("up-2", item: "item-2")
        // Both arrive before either is verified.
        _ = try await attached(first, in: ledger)
        _ = try await attached(second, in: ledger)
        var keys: [BlobKey?] = []
        for _ in 0..<2 {
            let job = try await claimed(ledger)
            let upload = try #require(job.item.uploads.first)
            keys.append(
                try await ledger.recordVerified(
                    upload.id, item: job.item.id, epoch: job.epoch, sha256: first.sha256, now: start))
        }
        #expect(keys[0] == keys[1])
        #expect(try await ledger.doomedBlobs(limit: 10).map(\.rawValue) == ["u-up-2.1"])
        #expect(try await ledger.item(second.item, owner: owner)?.uploads.first?.recomputed == first.sha256)
    }

    @Sendable static func endedSessions(_ ledger: any Ledger) async throws {
        for (id, name) in [("up-1", "x-1"), ("up-2", nil)] {
            let file = try upload(id, item: "item-" + id)
            let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
            if let name { #expect(try await ledger.bind(row.session, to: name) == name) }
            _ = try await ledger.abort(file.upload, owner: owner)
        }
        // Opened anew without having been ended.
        let file = try upload("up-3", item: "item-3")
        let (row, _) = try await ledger.open(file.open, owner: owner, now: start, expiresAt: start)
        _ = try await ledger.bind(row.session, to: "x-3")
        _ = try await ledger.reopen(file.upload, owner: owner, generation: 1, expiresAt: start)
        let doomed = try await ledger.doomedSessions(after: nil, limit: 9)
        #expect(doomed.map(\.folderName) == ["up-1.1", "up-2.1", "up-3.1"])
        #expect(doomed.map(\.storeName) == ["x-1", nil, "x-3"])
        #expect(try await ledger.doomedSessions(after: doomed[0].upload, limit: 1) == [doomed[1]])
        for session in doomed { try await ledger.forgetDoomed(session) }
        #expect(try await ledger.doomedSessions(after: nil, limit: 9).isEmpty)
        // What was completed takes its session with it.
        _ = try await sealed(try upload("up-4", item: "item-4"), in: ledger)
        #expect(try await ledger.doomedSessions(after: nil, limit: 9).isEmpty)
    }

    @Sendable static func openBound(_ ledger: any Ledger) async throws {
        func open(_ file: TestFile, _ owner: Owner = owner) async throws -> UploadRow {
            try await ledger.open(
                file.open, owner: owner, now: start, expiresAt: start, knowing: nil, lost: nil, openMax: 2
            ).0
        }
        let first = try upload("up-1")
        _ = try await open(first)
        _ = try await open(try upload("up-2"))
        let third = try upload("up-3", item: "item-3")
        #expect(await failure { _ = try await open(third) } == .busy)
        // What is open already is answered, another owner is not meant.
        _ = try await open(first)
        _ = try await open(try upload("up-4", item: "item-4"), stranger)
        _ = try await ledger.abort(first.upload, owner: owner)
        _ = try await open(third)
        #expect(
            await failure {
                _ = try await ledger.reopen(first.upload, owner: owner, generation: 1, expiresAt: start, openMax: 2)
            } == .busy)
    }

    private static func tus(_ id: String, in ledger: any Ledger, size: Int?, openMax: Int = 2) async throws -> UploadRow
    {
        var request = try upload(id, item: id).open
        (request.sizeBytes, request.sha256, request.partSize) = (size, nil, 5 << 20)
        return try await ledger.openTus(
            request, metadata: "name x", hash: [1], owner: owner, expiresAt: start.adding(seconds: 100),
            openMax: openMax)
    }

    @Sendable static func receiving(_ ledger: any Ledger) async throws {
        let row = try await tus("tus-1", in: ledger, size: nil)
        _ = try await tus("tus-2", in: ledger, size: 5)
        await #expect(throws: Failure.self) { try await tus("tus-3", in: ledger, size: 5) }
        #expect(try await ledger.tus(row.id, owner: stranger) == nil)
        let session = row.session
        func record(_ number: Int, _ length: Int, _ md5: String, owner: Owner = owner) async throws {
            try await ledger.recordReceived(
                SignedPart(number: number, length: length, md5: md5), hash: [UInt8(length & 255)], session: session,
                owner: owner, expiresAt: start.adding(seconds: 200))
        }
        let tails = ["a", "b"].map { BlobKey.tail(SignedPart(number: 1, length: 3, md5: $0), of: session) }
        try await record(1, 3, "a")
        #expect(try await ledger.doomedBlobs(limit: 9).isEmpty)
        try await record(1, 3, "b")
        #expect(try await ledger.doomedBlobs(limit: 9) == [tails[0]])
        try await record(1, 5 << 20, "c")
        try await record(2, 4, "d")
        #expect(Set(try await ledger.doomedBlobs(limit: 9)) == Set(tails))
        await #expect(throws: LedgerFault.unknown) { try await record(2, 5, "e", owner: stranger) }
        // Nor can a box sign anything for it.
        await #expect(throws: LedgerFault.tus) {
            try await ledger.recordSigned(
                [SignedPart(number: 2, length: 5, md5: "f")], session: session, owner: owner, expiresAt: start)
        }
        let known = try #require(try await ledger.tus(row.id, owner: owner))
        #expect(known.hash == [4] && known.metadata == "name x" && known.shoot == "wedding")
        #expect(known.upload.expiresAt == start.adding(seconds: 200) && known.upload.isTus)
        #expect(try await ledger.receivedTus(limit: 9).isEmpty)
        try await ledger.tellSize((5 << 20) + 4, session: session, owner: owner)
        try await ledger.tellSize(1, session: session, owner: owner)
        #expect(try await ledger.receivedTus(limit: 9).map(\.0) == [row.id])
        #expect(try await ledger.openTusUploads(after: nil, limit: 9).map(\.id.rawValue) == ["tus-1", "tus-2"])
        try await ledger.sweep(now: start.adding(seconds: 201), isRestart: false, policy: policy)
        let last = BlobKey.tail(SignedPart(number: 2, length: 4, md5: "d"), of: session)
        #expect(try await ledger.doomedBlobs(limit: 9).contains(last))
        #expect(try await ledger.openTusUploads(after: nil, limit: 9).isEmpty)
    }

    @Sendable static func attaching(_ ledger: any Ledger) async throws {
        let row = try await tus("tus-1", in: ledger, size: 3)
        let attachment = AttachRequest(
            kind: nil, shoot: "wedding", uploads: [.init(uploadID: row.id, role: row.role, name: row.name)])
        let sealed = try await ledger.seal(
            row.session, owner: owner, key: .upload(row.session), size: 3, sha256: Digest.sha256([1, 2, 3]),
            attaching: attachment, now: start)
        #expect(sealed.state == .complete && sealed.isAttached)
        let item = try #require(try await ledger.item(row.item, owner: owner))
        #expect(item.state == .processing && item.uploads.map(\.id) == [row.id])
        #expect(try await claimed(ledger).item.id == row.item)
        #expect(try await ledger.events(owner: owner, after: 0, limit: 9).count == 1)
    }
}
