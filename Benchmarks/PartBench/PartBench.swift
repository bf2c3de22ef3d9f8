import Curl
import Digests
import Files
import Glibc
import Vocabulary

/// What `make bench-upload` times beside the whole: parts sent by the box's own client without any hashing, and the hashing alone.
///
///     part-bench send FILE URL      each part is PUT to URL&partNumber=N
///     part-bench hash FILE          of the whole file, piece by piece
///
/// Prints processor seconds as one JSON object.
@main struct PartBench {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count >= 3 else { throw Failure(.usage, "part-bench send FILE URL, or part-bench hash FILE.") }
        if words[1] == "send", words.count == 4 { try await send(words[2], words[3]) } else { try hash(words[2]) }
    }

    // MARK: send

    private static let inFlightMax = 3

    private static func send(_ path: String, _ url: String) async throws {
        let size = try OpenFile.reading(path).facts().size
        let client = HTTPClient()
        let before = Spent.now()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, offset) in stride(from: 0, to: size, by: PartLimits.bytesDefault).enumerated() {
                if index >= inFlightMax { try await group.next() }
                let length = min(PartLimits.bytesDefault, size - offset)
                group.addTask {
                    let request = HTTPRequest(
                        .put, "\(url)&partNumber=\(index + 1)",
                        body: .file(path: path, offset: offset, length: length))
                    let answer = try await client.send(request)
                    guard answer.status == 200 else {
                        throw Failure(.backendError, "The sink did not take a part.", detail: "HTTP \(answer.status)")
                    }
                }
            }
            try await group.waitForAll()
        }
        let spent = Spent.now() - before
        print("{\"user\":\(spent.user),\"system\":\(spent.system)}")
    }

    // MARK: hash

    private static let pieceBytes = 1 << 20

    private static func hash(_ path: String) throws {
        let file = try OpenFile.reading(path)
        let md5 = Digest(.md5)
        // As the box takes parts: four side by side. Four pieces behind one another cost what the pieces of four parts do.
        let md5Four = MD5Four(count: MD5Four.countMax)
        let sha256 = Digest(.sha256)
        let xxh128 = XXH128()
        var fields: [String] = []
        let passes: [(String, ([UInt8]) -> Void)] = [
            ("read", { _ in }), ("md5 one part at a time", { md5.update($0) }),
            (
                "md5 four parts side by side",
                { bytes in
                    let length = bytes.count / MD5Four.countMax / MD5Four.blockBytes * MD5Four.blockBytes
                    bytes.withUnsafeBytes { md5Four.update($0, length: length) }
                }
            ),
            ("sha256", { sha256.update($0) }),
            ("xxh128", { bytes in bytes.withUnsafeBytes { xxh128.update($0) } }),
        ]
        for (name, update) in passes {
            let before = Spent.now()
            var offset = 0
            while case let bytes = try file.read(count: pieceBytes, at: offset), !bytes.isEmpty {
                update(bytes)
                offset += bytes.count
            }
            let spent = Spent.now() - before
            fields.append("\"\(name)\":\(spent.user + spent.system)")
        }
        print("{\(fields.joined(separator: ","))}")
    }
}

/// Processor seconds of this process.
struct Spent {
    var user, system: Double

    static func now() -> Spent {
        var usage = rusage()
        getrusage(RUSAGE_SELF.rawValue, &usage)
        func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
        return Spent(user: seconds(usage.ru_utime), system: seconds(usage.ru_stime))
    }
    static func - (left: Spent, right: Spent) -> Spent {
        Spent(user: left.user - right.user, system: left.system - right.system)
    }
}
