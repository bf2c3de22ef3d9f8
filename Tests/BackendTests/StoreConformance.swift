import Curl
import Digests
import Files
import Foundation
import TestStores
import Testing
import Vocabulary

@testable import Backend

/// One of the stores, and how a part gets to it as a client would send it.
struct StoreUnderTest: Sendable {
    let store: any BlobStore
    let send: @Sendable (_ bytes: [UInt8], _ part: SignedPart, _ session: StoreSession) async throws -> Int
    let scratch: ScratchFolder
    /// Whether a part may still arrive after the end, so that objects are copied.
    var isCopying = false

    enum Kind: String, CaseIterable, Sendable {
        case directory, ceph, swift
    }

    /// Nil where there is none on this machine.
    static func make(_ kind: Kind) async throws -> StoreUnderTest? {
        let scratch = try ScratchFolder()
        switch kind {
        case .directory:
            let store = try DirectoryBlobStore.open(scratch.path)
            return StoreUnderTest(
                store: store,
                send: { bytes, part, session in
                    let permit = PartPermit(session: session, part: part, expiresAt: Timestamp.system())
                    let sink = try PartSink(permit, in: store.path(of: session))
                    _ = try bytes.withUnsafeBytes { try sink.receive($0) }
                    _ = try sink.store()
                    return 200
                }, scratch: scratch)
        case .ceph, .swift:
            guard let settings = kind == .ceph ? TestStore.ceph : TestStore.swift else { return nil }
            let client = try S3Client.on(settings)
            let prefix = "t\(UInt32.random(in: .min ... .max))"
            let store = try await S3BlobStore.open(
                client, prefix: prefix, workFolder: scratch.path + "/work", log: { _ in })
            return StoreUnderTest(
                store: store,
                send: { bytes, part, session in
                    let url = try #require(store.partURL(part, of: session, seconds: 60))
                    return try await put(bytes, to: url, contentMD5: part.contentMD5)
                }, scratch: scratch, isCopying: store.abilities.takesLateParts)
        }
    }

    /// As a client does it.
    static func put(_ bytes: [UInt8], to url: String, contentMD5: String) async throws -> Int {
        try await HTTPClient().send(HTTPRequest(.put, url, headers: ["Content-MD5": contentMD5], body: .bytes(bytes)))
            .status
    }

    func begun(_ id: String = "up-1", generation: Int = 1) async throws -> StoreSession {
        var session = StoreSession(upload: try #require(UploadID(rawValue: id)), generation: generation)
        session.storeName = try await store.begin(session)
        return session
    }

    func hash(_ key: BlobKey, keptIn folder: String? = nil) async throws -> SHA256Digest {
        try await store.sha256(key, keptIn: folder) { _ throws(Failure) in }
    }
}

extension S3Client {
    static func on(
        _ store: TestStore, endpoint: String? = nil, clock: @escaping @Sendable () -> Timestamp = Timestamp.system
    ) throws -> S3Client {
        S3Client(settings: try S3Settings(store, endpoint: endpoint), http: HTTPClient(), clock: clock)
    }
}

extension S3Settings {
    init(_ store: TestStore, endpoint: String? = nil) throws {
        try self.init(
            endpoint: endpoint ?? store.endpoint, bucket: store.bucket, region: nil, accessKey: store.accessKey,
            secretKey: store.secretKey)
    }
}

extension BlobStore {
    func keys() async throws(Failure) -> [BlobKey] {
        var keys: [BlobKey] = []
        try await eachObject { key throws(Failure) in keys.append(key) }
        return keys
    }
    func sessions() async throws(Failure) -> [StoreSession] { try await underway().sessions }
}

/// What every store has to do.
@Suite(.serialized) struct StoreConformance {
    typealias Kind = StoreUnderTest.Kind

    private static let small = Array("some bytes of a photo".utf8)
    private static func large(_ count: Int, _ seed: UInt8) -> [UInt8] {
        [UInt8](repeating: seed, count: count - 4) + [1, 2, 3, seed]
    }

    @Test(.timeLimit(.minutes(3)), arguments: Kind.allCases)
    func aFileOfThisMachineIsTakenAsAPartAndAgain(kind: Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let session = try await test.begun()
        let folder = test.scratch.path + "/work"
        try Files.makeFolder(folder)
        let part = SignedPart(number: 1, bytes: Self.small)
        // The second time after a request that was cut short.
        for _ in 1...2 {
            try Files.write(Self.small, to: folder + "/1")
            try await test.store.take(folder + "/1", as: part, of: session)
        }
        let held = try #require(try await test.store.parts(session))
        #expect(held.count == 1 && held[0].matches(part))
        let key = try await test.store.assemble(held, of: session)
        #expect(try await test.hash(key) == Digest.sha256(Self.small))
        try await test.store.settle(session)
        try await test.store.remove(key)
    }

    @Test(.timeLimit(.minutes(3)), arguments: Kind.allCases)
    func partsAreListedAndBecomeOneObject(kind: Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let session = try await test.begun()
        #expect(try await test.store.parts(session) == [])
        let chunks = [Self.large(5 << 20, 1), Self.large(5 << 20, 2), Self.small]
        let signed = chunks.enumerated().map { SignedPart(number: $0 + 1, bytes: $1) }
        // In any order, one of them twice.
        for number in [3, 1, 2, 1] {
            #expect(try await test.send(chunks[number - 1], signed[number - 1], session) == 200)
        }
        let held = try #require(try await test.store.parts(session))
        #expect(held.map(\.number) == [1, 2, 3])
        #expect(zip(held, signed).allSatisfy { $0.matches($1) && $0.md5 == $1.md5 })
        #expect(try await test.store.sessions().map(\.folderName) == [session.folderName])

        let key = try await test.store.assemble(held, of: session)
        #expect(key == (test.isCopying ? .copied(session) : .upload(session)))
        try await test.store.settle(session)
        let whole = chunks.flatMap { $0 }
        #expect(try await test.store.size(key) == whole.count)
        #expect(try await test.hash(key) == Digest.sha256(whole))
        #expect(Set(try await test.store.keys()) == [key, test.isCopying ? .upload(session) : key])
        // Fetched in the same pass, where it has to be fetched.
        let folder = test.scratch.path + "/fetched"
        #expect(try await test.hash(key, keptIn: folder) == Digest.sha256(whole))
        #expect(try Files.sha256(of: .reading(try await test.store.path(key, in: folder))) == Digest.sha256(whole))
        try await test.store.remove(key)
        try await test.store.remove(key)
        #expect(try await test.store.size(key) == nil)
        #expect(try await test.store.keys() == (test.isCopying ? [.upload(session)] : []))
        #expect(try await test.store.sessions() == [])
    }

    @Test(.timeLimit(.minutes(3)), arguments: Kind.allCases)
    func assemblingAgainGivesTheSameObject(kind: Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let session = try await test.begun()
        let part = SignedPart(number: 1, bytes: Self.small)
        #expect(try await test.send(Self.small, part, session) == 200)
        let held = try #require(try await test.store.parts(session))
        let key = try await test.store.assemble(held, of: session)
        #expect(try await test.store.assemble(held, of: session) == key)
        #expect(try await test.hash(key) == Digest.sha256(Self.small))
        // Where the session is gone with it, the object itself tells.
        if try await test.store.parts(session) == nil {
            #expect(try await test.store.assembled([part], of: session) == key)
            let other = SignedPart(number: 1, bytes: Array("some bytes of a video".utf8))
            #expect(try await test.store.assembled([other], of: session) == nil)
            #expect(try await test.store.assembled([part, part], of: session) == nil)
        }
        try await test.store.settle(session)
        try await test.store.remove(key)
    }

    @Test(.timeLimit(.minutes(3)), arguments: Kind.allCases)
    func anEndedSessionIsGoneWithItsParts(kind: Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let session = try await test.begun()
        let part = SignedPart(number: 1, bytes: Self.small)
        #expect(try await test.send(Self.small, part, session) == 200)
        try await test.store.end(session, hasObject: false)
        try await test.store.end(session, hasObject: false)
        #expect(try await test.store.parts(session) == nil)
        #expect(try await test.store.assembled([part], of: session) == nil)
        #expect(try await test.store.sessions() == [])
        // The next generation is another session.
        let next = try await test.begun(generation: 2)
        #expect(try await test.store.parts(next) == [])
        // Also without its name, which may never have been kept.
        try await test.store.end(StoreSession(upload: next.upload, generation: next.generation), hasObject: false)
        #expect(try await test.store.sessions() == [])
    }

    @Test(.timeLimit(.minutes(3)), arguments: Kind.allCases)
    func damagedBytesAreNotStored(kind: Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let session = try await test.begun()
        let part = SignedPart(number: 1, bytes: Self.small)
        var damaged = Self.small
        damaged[3] ^= 1
        let status = try? await test.send(damaged, part, session)
        #expect(status == nil || status == 400)
        #expect(try await test.store.parts(session) == [])
        try await test.store.end(session, hasObject: false)
    }

    @Test(.timeLimit(.minutes(3)), arguments: Kind.allCases)
    func aFileThatWasMadeHereIsTakenOverWithItsHash(kind: Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let path = test.scratch.path + "/work/made"
        try Files.makeFolder(test.scratch.path + "/work")
        // More than one request's worth.
        for bytes in [Self.small, Self.large(66 << 20, 3)] {
            try Files.write(bytes, to: path)
            let key = try #require(BlobKey(rawValue: "d-item.1.made"))
            let stored = try await test.store.adopt(path, as: key)
            #expect(stored == (bytes.count, Digest.sha256(bytes)))
            #expect(try await test.store.size(key) == bytes.count)
            #expect(try await test.hash(key) == Digest.sha256(bytes))
            try await test.store.remove(key)
        }
        #expect(try await test.store.sessions() == [])
    }
}

/// What only a store elsewhere has.
@Suite(.serialized) struct S3StoreTests {
    private static let bytes = Array("a hundred and twenty ways".utf8)

    @Test(.timeLimit(.minutes(3))) func whatAStoreDoesWithLatePartsIsFoundOut() async throws {
        if let ceph = try await StoreUnderTest.make(.ceph) { #expect(!ceph.isCopying) }
        if let swift = try await StoreUnderTest.make(.swift) { #expect(swift.isCopying) }
    }

    @Test(.timeLimit(.minutes(3)), arguments: [StoreUnderTest.Kind.ceph, .swift])
    func aLatePartDoesNotReachTheObject(kind: StoreUnderTest.Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind) else { return }
        let session = try await test.begun()
        let part = SignedPart(number: 1, bytes: Self.bytes)
        _ = try await test.send(Self.bytes, part, session)
        let key = try await test.store.assemble(try #require(try await test.store.parts(session)), of: session)
        try await test.store.settle(session)
        // The URL is still valid: the same bytes, then others of the same length under a URL that was signed for them.
        _ = try await test.send(Self.bytes, part, session)
        let other = Self.bytes.map { $0 ^ 1 }
        _ = try await test.send(other, SignedPart(number: 1, bytes: other), session)
        #expect(try await test.hash(key) == Digest.sha256(Self.bytes))
    }

    @Test(.timeLimit(.minutes(3)), arguments: [StoreUnderTest.Kind.ceph, .swift])
    func aCopyInPartsIsTheSameBytes(kind: StoreUnderTest.Kind) async throws {
        guard let test = try await StoreUnderTest.make(kind), let store = test.store as? S3BlobStore else { return }
        let bytes = (0..<12).flatMap { [UInt8](repeating: UInt8($0), count: 1 << 20) }
        let path = test.scratch.path + "/work/made"
        try Files.write(bytes, to: path)
        let (from, to) = (try #require(BlobKey(rawValue: "d-a.1.a")), try #require(BlobKey(rawValue: "d-a.1.b")))
        _ = try await store.adopt(path, as: from)
        try await store.copy(store.name(from), to: store.name(to), bytes: bytes.count, ownPartSize: 5 << 20)
        #expect(try await test.hash(to) == Digest.sha256(bytes))
        for key in [from, to] { try await store.remove(key) }
    }

    @Test(.timeLimit(.minutes(5))) func aListingOfMoreThanAThousandPartsIsReadToItsEnd() async throws {
        guard let test = try await StoreUnderTest.make(.ceph) else { return }
        let session = try await test.begun()
        let part: @Sendable (Int) -> SignedPart = { SignedPart(number: $0, bytes: Self.bytes) }
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 1...1003 {
                if number > 16 { _ = try await group.next() }
                group.addTask { [number] in try await test.send(Self.bytes, part(number), session) }
            }
            try await group.waitForAll()
        }
        #expect(try await test.store.parts(session)?.map(\.number) == Array(1...1003))
        try await test.store.end(session, hasObject: false)
    }

    @Test(.timeLimit(.minutes(5))) func listingsOfMoreThanAThousandUploadsAndObjectsAreReadToTheirEnd() async throws {
        guard let test = try await StoreUnderTest.make(.ceph), let store = test.store as? S3BlobStore else { return }
        let part = SignedPart(number: 1, bytes: Self.bytes)
        let sessions = try await withThrowingTaskGroup(of: StoreSession.self) { group in
            var begun: [StoreSession] = []
            for number in 1...1003 {
                if number > 16, let session = try await group.next() { begun.append(session) }
                group.addTask { [number] in
                    let session = try await test.begun("up-\(number)")
                    try await store.client.put(
                        store.name(.copied(session)), .bytes(Self.bytes), contentMD5: part.contentMD5)
                    return session
                }
            }
            for try await session in group { begun.append(session) }
            return begun
        }
        let found = try await store.sessions()
        #expect(found.count == 1003 && Set(found) == Set(sessions))
        let keys = try await store.keys()
        #expect(keys.count == 1003 && Set(keys) == Set(sessions.map(BlobKey.copied)))
    }

    @Test(.timeLimit(.minutes(3))) func aURLHoldsForOnePartOfOneLengthAndOneMD5UntilItExpires() async throws {
        guard let test = try await StoreUnderTest.make(.ceph), let store = test.store as? S3BlobStore else { return }
        let session = try await test.begun()
        let part = SignedPart(number: 1, bytes: Self.bytes)
        let url = try #require(store.partURL(part, of: session, seconds: 60))
        func put(_ url: String, _ bytes: [UInt8], md5: String? = nil) async throws -> Int {
            let headers: HTTPHeaders = md5.map { ["Content-MD5": $0] } ?? [:]
            return try await store.client.http.send(HTTPRequest(.put, url, headers: headers, body: .bytes(bytes)))
                .status
        }
        #expect(try await put(url, Self.bytes) == 403)
        let longer = Self.bytes + [0]
        #expect(try await put(url, longer, md5: Digest.contentMD5(longer)) == 403)
        #expect(
            try await put(
                url.replacingOccurrences(of: "partNumber=1", with: "partNumber=2"), Self.bytes, md5: part.contentMD5)
                == 403)
        // Signed an hour ago for a minute.
        let earlier = S3Client(
            settings: store.client.settings, http: store.client.http,
            clock: { Timestamp.system().adding(seconds: -3600) })
        let expired = earlier.partURL(
            part, of: try #require(session.storeName), store.name(.upload(session)), expiresIn: 60)
        #expect(try await put(expired, Self.bytes, md5: part.contentMD5) == 403)
        #expect(try await put(url, Self.bytes, md5: part.contentMD5) == 200)
        try await store.end(session, hasObject: false)
    }

    @Test(.timeLimit(.minutes(3))) func aClockThatIsHoursOffIsToldAsSuch() async throws {
        guard let ceph = TestStore.ceph else { return }
        let client = try S3Client.on(ceph) { Timestamp.system().adding(seconds: 3 * 3600) }
        let failure = await #expect(throws: Failure.self) { try await client.createMultipart("late") }
        #expect(failure?.code == .clockSkewed)
        #expect(failure?.message == "The backend's clock is 3 hours ahead of its store's: set it right.")
    }

    @Test(.timeLimit(.minutes(3))) func aWrongKeyAMissingBucketAndAStoreThatIsAwayAreToldApart() async throws {
        guard let ceph = TestStore.ceph else { return }
        var settings = try S3Settings(ceph)
        settings.secretKey = "wrong"
        let wrongKey = S3Client(settings: settings, http: HTTPClient(), clock: Timestamp.system)
        let refusal = await #expect(throws: Failure.self) { try await wrongKey.createMultipart("a") }
        #expect(refusal?.remedy == .askUser && refusal?.message.contains("SECRET_KEY") == true)
        settings = try S3Settings(ceph)
        settings.bucket = "nobodys-bucket"
        let wrongBucket = S3Client(settings: settings, http: HTTPClient(), clock: Timestamp.system)
        let absence = await #expect(throws: Failure.self) { try await wrongBucket.createMultipart("a") }
        #expect(absence?.message.contains("RUSHES_S3_BUCKET") == true)
        let away = try S3Client.on(ceph, endpoint: "http://127.0.0.1:\(TestStore.freePort())")
        let silence = await #expect(throws: Failure.self) { try await away.createMultipart("a") }
        #expect(silence?.code == .backendUnreachable && silence?.remedy == .retryLater)
    }
}
