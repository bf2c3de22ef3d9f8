import Foundation
import Glibc

/// A real object store on this machine, started once for the whole test run and gone with it.
public struct TestStore: Sendable {
    public let endpoint: String
    public let bucket: String
    public let accessKey: String
    public let secretKey: String
    /// Of its processes and data.
    public let folder: String

    /// The Ceph object gateway; nil, said loudly, where the scripts that start it are not at hand.
    public static let ceph = start("s3-up", "s3-down", accessKey: "testaccesskey", word: "CEPH")
    /// OpenStack Swift's s3api.
    public static let swift = start("swift-up", "swift-down", accessKey: "test:tester", word: "SWIFT")

    public static let scripts: String? = {
        let beside = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().appendingPathComponent("shared").path
        let folder = (ProcessInfo.processInfo.environment["RUSHES_SHARED"] ?? beside) + "/services"
        return FileManager.default.isExecutableFile(atPath: folder + "/s3-up") ? folder : nil
    }()

    /// Whether tests that mostly wait, or that ask several stores, are to be run: once is enough where two builds are tested one after the other.
    public static let waits = ProcessInfo.processInfo.environment["RUSHES_SKIP_WAITING"] == nil

    /// A Ceph of its own that is not up yet.
    /// - Returns: nil, said loudly, where the scripts that start it are not at hand.
    public static func absentCeph() -> (endpoint: String, up: @Sendable () -> TestStore?)? {
        guard scripts != nil else {
            print("CEPH SKIPPED: RUSHES_SHARED names no folder with services/s3-up")
            return nil
        }
        let port = freePort()
        return (
            "http://127.0.0.1:\(port)",
            { start("s3-up", "s3-down", accessKey: "testaccesskey", word: "CEPH", port: port) }
        )
    }

    private static func start(
        _ up: String, _ down: String, accessKey: String, word: String, port: Int = freePort()
    ) -> TestStore? {
        guard let scripts else {
            print("\(word) SKIPPED: RUSHES_SHARED names no folder with services/\(up)")
            return nil
        }
        let folder = "/tmp/rushes-store-\(getpid())-\(port)"
        let environment = ["S3_PORT": String(port), "S3_DATA_DIR": folder, "S3_BACKEND": "memstore"]
        let (status, said) = run(scripts + "/" + up, environment)
        guard status == 0, let endpoint = said.split(whereSeparator: \.isNewline).last else {
            print("\(word) SKIPPED: \(up) ended with \(status)")
            return nil
        }
        ending.append { _ = run(scripts + "/" + down, environment, ["--purge"]) }
        return TestStore(
            endpoint: String(endpoint), bucket: "test", accessKey: accessKey, secretKey: "testsecretkey", folder: folder
        )
    }

    /// What a program says on its standard output, after it has ended. Not by Foundation's Process: a socket of its own goes into the child, and
    /// it waits for daemons that the child leaves behind.
    @discardableResult
    public static func run(_ program: String, _ environment: [String: String], _ arguments: [String] = []) -> (
        status: Int32, output: String
    ) {
        let words = environment.map { "\($0.key)='\($0.value)'" } + ["'\(program)'"] + arguments
        guard let stream = popen("exec env \(words.joined(separator: " ")) 2>/dev/null </dev/null", "r") else {
            return (-1, "")
        }
        var output: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case let got = fread(&buffer, 1, buffer.count, stream), got > 0 { output += buffer[..<got] }
        return (pclose(stream), String(decoding: output, as: UTF8.self))
    }

    /// One that nobody listens on at this moment.
    public static func freePort() -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { name in
                _ = bind(descriptor, name, length)
                getsockname(descriptor, name, &length)
            }
        }
        return Int(UInt16(bigEndian: name.sin_port))
    }
}

/// What is to be ended with the test run.
let ending = Ending()

final class Ending: @unchecked Sendable {
    // Unchecked: guarded by the lock.
    private let lock = NSLock()
    private var steps: [@Sendable () -> Void] = []

    init() { atexit { ending.run() } }

    func append(_ step: @escaping @Sendable () -> Void) { lock.withLock { steps.append(step) } }
    private func run() {
        let steps = lock.withLock { self.steps }
        for step in steps.reversed() { step() }
    }
}
