import Digests
@testable import Files
import Foundation
@testable import SQLite
import Testing
import Vocabulary

/// A folder that is gone when the test is.
final class ScratchFolder {
    let path: String
    init() throws {
        path = NSTemporaryDirectory() + "rushes-files-" + UUID().uuidString
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

@Suite struct FileFactsTests {
    /// File systems keep such times; nanoseconds since 1970 end in 2262.
    @Test(arguments: [(10_413_792_000, Int64.max), (-10_413_792_000, .min)])
    func aTimeBeyondAllCountingIsTheFurthestThereIs(seconds: Int, bound: Int64) {
        var status = stat()
        status.st_mtim = timespec(tv_sec: seconds, tv_nsec: 999_999_999)
        #expect(FileFacts(status).modified.distance(to: bound).magnitude < 3_000_000_000)
    }
}

@Suite struct FileFaultTests {
    @Test(arguments: [
        ("stat", FailureCode.sourceUnreadable), ("realpath", .sourceUnreadable), ("readdir", .sourceUnreadable),
        ("opendir", .sourceUnreadable), ("open for reading", .sourceUnreadable), ("create", .readOnly),
        ("renameat2", .readOnly), ("unlink", .readOnly), ("mkdir", .readOnly),
    ])
    func whatMayNotBeReadIsThatFilesFaultAndWhatMayNotBeWrittenIsTheFolders(call: String, code: FailureCode) {
        for number in [EACCES, EPERM] { #expect(FileFault.failure(number, call, "/card/a.jpg").code == code) }
    }
}

extension FileFaultTests {
    @Test(arguments: [(13, 0), (4874, 0), (778, ENOSPC), (14, EDQUOT), (14, ENOSPC)] as [(Int32, Int32)])
    func whereverADatabaseFindsNoRoomTheDiskIsFull(code: Int32, systemError: Int32) {
        #expect(SQLiteFault.failure(code, "x", "/home/catalog.db", nil, systemError: systemError).code == .diskFull)
    }

    @Test(
        arguments: [(778, 0, FailureCode.databaseError), (14, EACCES, .readOnly), (5, ENOSPC, .busy)]
            as [(Int32, Int32, FailureCode)])
    func whatElseADatabaseReportsStaysWhatItIs(code: Int32, systemError: Int32, expected: FailureCode) {
        #expect(SQLiteFault.failure(code, "x", "/home/catalog.db", nil, systemError: systemError).code == expected)
    }

    /// Nothing is mapped there, so the kernel answers EIO.
    @Test func aReadErrorTellsThePersonWhereItIs() {
        let failure = #expect(throws: Failure.self) {
            try OpenFile.reading("/proc/self/mem").read(count: 16, at: 4096)
        }
        #expect(failure?.code == .sourceUnreadable)
        #expect(failure?.message.contains("at byte 4096 ") == true, "\(failure?.message ?? "")")
    }
}

@Suite struct FilesTests {
    let scratch: ScratchFolder
    init() throws { scratch = try ScratchFolder() }

    @Test func aDraftIsWholeUnderItsNameAfterCommitAndGoneOtherwise() throws {
        let path = scratch.path + "/whole"
        do {
            let draft = try Draft.begin(for: path)
            _ = draft
        }
        #expect(try Files.names(in: scratch.path) == [])
        let before = DurableSteps.passedCount
        try Files.write([1, 2, 3], to: path)
        #expect(DurableSteps.passedCount > before)
        #expect(try OpenFile.reading(path).read(count: 10, at: 0) == [1, 2, 3])
        #expect(try Files.names(in: scratch.path) == ["whole"])
    }

    @Test func aCommitThatMayNotReplaceLeavesWhatIsThere() throws {
        let path = scratch.path + "/taken"
        try Files.write([1], to: path)
        let draft = try Draft.begin(for: path)
        #expect(throws: Failure.self) { try draft.commit() }
        draft.discard()
        #expect(try OpenFile.reading(path).read(count: 10, at: 0) == [1])
        #expect(try Files.names(in: scratch.path) == ["taken"])
    }

    @Test func aCopyHasTheHashAndTheBytesOfItsSource() throws {
        let bytes = (0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
        try Files.write(bytes, to: scratch.path + "/from")
        let draft = try Draft.begin(for: scratch.path + "/to")
        let copied = try Files.copy(try .reading(scratch.path + "/from"), into: draft)
        try draft.commit()
        #expect(copied.bytes == bytes.count)
        #expect(copied.sha256 == Digest.sha256(bytes))
        #expect(try Files.sha256(of: .reading(scratch.path + "/to")) == copied.sha256)
        #expect(try OpenFile.reading(scratch.path + "/to").read(count: bytes.count + 1, at: 0) == bytes)
    }

    @Test func digestsAgreeWithPublishedVectors() {
        // FIPS 180-4 "abc"; RFC 1321 appendix A.5 "message digest"; RFC 4231 test case 2.
        #expect(Digest.sha256("abc").rawValue == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        let md5 = Digest(.md5)
        md5.update("message digest")
        #expect(md5.finalize().hexadecimal == "f96b697d7cb7938d525a2f31aaf161d0")
        let tag = MessageAuthentication.sign("what do ya want for nothing?", key: Array("Jefe".utf8))
        #expect(tag.hexadecimal == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        #expect(MessageAuthentication.isValid(tag, for: "what do ya want for nothing?", key: Array("Jefe".utf8)))
        #expect(!MessageAuthentication.isValid(tag, for: "what do ya want for nothing", key: Array("Jefe".utf8)))
    }

    @Test(arguments: [[], [0xFB], [0xFB, 0xFF], [0xFB, 0xFF, 0xFE], [1, 2, 3, 4]] as [[UInt8]])
    func base64ForURLsGoesThereAndBack(bytes: [UInt8]) {
        #expect([UInt8](base64URL: bytes.base64URL) == bytes)
        #expect(!bytes.base64URL.contains("+") && !bytes.base64URL.contains("/") && !bytes.base64URL.contains("="))
    }

    @Test func aLockIsHeldByOneAndNamesItsHolder() throws {
        let path = scratch.path + "/lock"
        var lock = try FileLock.acquire(path)
        #expect(lock != nil)
        #expect(try FileLock.acquire(path) == nil)
        #expect(FileLock.holder(path) == Int(ProcessInfo.processInfo.processIdentifier))
        lock = nil
        #expect(try FileLock.acquire(path) != nil)
    }

    @Test func aMissingFileAndAFullDeviceAreToldApart() throws {
        #expect(
            throws: Failure(
                .sourceMissing, "“none” does not exist.", detail: "open for reading /none: No such file or directory")
        ) {
            try OpenFile.reading("/none")
        }
        let full = OpenFile(owning: open("/dev/full", O_WRONLY), path: "/dev/full")
        let failure = #expect(throws: Failure.self) {
            try [UInt8](repeating: 1, count: 10).withUnsafeBytes { try full.write($0, at: 0) }
        }
        #expect(failure?.code == .diskFull)
    }
}

@Suite struct DatabaseTests {
    let scratch: ScratchFolder
    init() throws { scratch = try ScratchFolder() }
    let schema = ["CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE)"]

    @Test func aTransactionThatThrowsLeavesNothing() async throws {
        let database = try await Database(scratch.path + "/db", migrations: schema)
        await #expect(throws: Failure.self) {
            try await database.write("test") { database throws(Failure) in
                try database.run("INSERT INTO t(b) VALUES(?1)", ["x"])
                throw Failure(.cancelled, "Stopped.")
            }
        }
        #expect(try database.rows("SELECT * FROM t").isEmpty)
    }

    @Test func writesThatShareACommitFailAlone() async throws {
        let database = try await Database(scratch.path + "/db", migrations: schema)
        let before = try commits(in: scratch.path + "/db-wal")
        let refused = try await database.insertTogether(0..<20)
        #expect(refused == [0: .cancelled, 5: .cancelled, 10: .cancelled, 15: .cancelled, 7: .conflict])
        let kept = try database.rows("SELECT b FROM t").map { Int($0.text(0) ?? "") ?? -1 }
        #expect(Set(kept) == Set(0..<20).subtracting(refused.keys))
        #expect(try commits(in: scratch.path + "/db-wal") - before == 1)
    }

    /// Frames that end a transaction (sqlite.org/fileformat2.html, section 4.1: 32 bytes before the first; a frame has 24 and a page, and says
    /// at 4 how long the database is by then, where it ends one).
    private func commits(in log: String) throws -> Int {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: log)))
        return stride(from: 32, to: bytes.count, by: 24 + 4096).count {
            bytes[($0 + 4)..<($0 + 8)].contains { $0 != 0 }
        }
    }

    @Test func readersSeeWhatIsCommittedAndChangeNothing() async throws {
        let database = try await Database(scratch.path + "/db", migrations: schema)
        let during = try await database.write("test") { connection throws(Failure) in
            try connection.run("INSERT INTO t(b) VALUES('x')")
            return try database.rows("SELECT b FROM t").count
        }
        #expect(during == 0)
        #expect(try database.rows("SELECT b FROM t").count == 1)
        let failure = #expect(throws: Failure.self) { try database.rows("INSERT INTO t(b) VALUES('y')") }
        #expect(failure?.code == .readOnly)
        #expect(try database.read { reader throws(Failure) in try reader.rows("SELECT b FROM t").count } == 1)
    }

    @Test func manyMayOpenANewDatabaseAtOnce() async throws {
        for round in 0..<200 {
            let (path, schema) = (scratch.path + "/db\(round)", schema)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 { group.addTask { _ = try await Database(path, migrations: schema) } }
                try await group.waitForAll()
            }
        }
    }

    @Test func valuesComeBackAsTheyWent() async throws {
        let database = try await Database(scratch.path + "/db", migrations: schema)
        let values: [SQLValue] = [.null, 7, .real(1.5), "", "né\u{0}wline\n", .blob([]), .blob([0, 255])]
        for value in values {
            #expect(try database.row("SELECT ?1", [value])?.values == [value])
        }
    }

    @Test func aMigrationRunsOnceAndANewerFolderIsRefused() async throws {
        _ = try await Database(scratch.path + "/db", migrations: schema)
        let again = try await Database(scratch.path + "/db", migrations: schema + ["ALTER TABLE t ADD COLUMN c"])
        #expect(try again.rows("SELECT c FROM t").isEmpty)
        let failure = await #expect(throws: Failure.self) {
            try await Database(scratch.path + "/db", migrations: schema)
        }
        #expect(failure?.code == .databaseError)
    }

    @Test func returningRowsOfAChangeAreAllGivenAndCounted() async throws {
        let database = try await Database(scratch.path + "/db", migrations: schema)
        let row = try await database.write("test") { database throws(Failure) in
            try database.row("INSERT INTO t(b) VALUES('x') RETURNING a, b")
        }
        #expect(row?.values == [1, "x"])
        let failure = await #expect(throws: Failure.self) {
            try await database.write("test") { database throws(Failure) in
                try database.run("INSERT INTO t(b) VALUES('x')")
            }
        }
        #expect(failure?.code == .conflict)
    }
}

extension Database {
    /// Writes numbers all at once: the queue is taken until each of the writers stands in it. Each fifth throws, and number 7 is refused.
    fileprivate func insertTogether(_ numbers: Range<Int>) async throws -> [Int: FailureCode] {
        let (begun, begins) = AsyncStream<Void>.makeStream()
        let first = Task {
            try await write("test") { [self] _ throws(Failure) -> Void in
                begins.finish()
                var patience = 30_000
                while waitingCount < numbers.count, patience > 0 {
                    usleep(1000)
                    patience -= 1
                }
            }
        }
        for await _ in begun {}
        let writers = numbers.map { number in
            Task { () -> FailureCode? in
                do throws(Failure) {
                    try await write("test") { database throws(Failure) -> Void in
                        try database.run("INSERT INTO t(b) VALUES(?1)", [.text("\(number)")])
                        if number.isMultiple(of: 5) { throw Failure(.cancelled, "Stopped.") }
                        if number == 7 { try database.run("INSERT INTO t(b) VALUES('7')") }
                    }
                    return nil
                } catch { return error.code }
            }
        }
        try await first.value
        var refused: [Int: FailureCode] = [:]
        for (number, writer) in zip(numbers, writers) { refused[number] = await writer.value }
        return refused
    }
}
