import Foundation
import MediaJobs
import Thumbs
import Vocabulary

/// `photo-bench inside|worker FOLDER COUNT PHOTO…`: makes the three standard sizes of each photo in turn, COUNT photos in all, and prints the
/// processor time that one took. `worker` needs RUSHES_MEDIA_WORKER.
@main struct PhotoBench {
    static func main() async throws {
        let words = CommandLine.arguments
        guard words.count > 4, let count = Int(words[3]) else {
            print("usage: photo-bench inside|worker FOLDER COUNT PHOTO…")
            exit(2)
        }
        let photos = (0..<count).map { words[4 + $0 % (words.count - 4)] }
        let settings = ThumbSettings(sizes: ThumbSettings.standardSizes)
        // What every first photo costs, libraries loaded and tables made, is no part of the cost of one.
        if words[1] == "inside" {
            try inside(photos[0], settings, words[2])
            let before = cpu(RUSAGE_SELF)
            for photo in photos { try inside(photo, settings, words[2]) }
            show(["photos": Double(count), "cpu_ms": (cpu(RUSAGE_SELF) - before) * 1000 / Double(count)])
        } else {
            try await worker(photos, settings, words[2])
        }
    }

    private static func inside(_ photo: String, _ settings: ThumbSettings, _ folder: String) throws(Failure) {
        let input = open(photo, O_RDONLY)
        defer { close(input) }
        var head = [UInt8](repeating: 0, count: MediaFormat.headLength)
        let length = pread(input, &head, head.count, 0)
        guard let format = MediaFormat.sniff(Array(head.prefix(max(0, length)))) else {
            throw Failure(.notMedia, "\(photo) is not a picture.")
        }
        let report = try Thumb.make(
            input, format: format, file: photo, settings: settings, limits: MediaLimits(), sink: FolderSink(folder))
        if let reason = report.reason { throw Failure(reason.code, "\(photo): \(reason.message)") }
    }

    private static func worker(_ photos: [String], _ settings: ThumbSettings, _ folder: String) async throws {
        var media = try MediaSettings.standard()
        media.processCountMax = 1
        let jobs = MediaJobs(media)
        // Idle is a worker that has read a header, and made nothing yet.
        _ = try await jobs.probe(photos[0], name: photos[0])
        let idle = Child.first().resident
        _ = try await jobs.thumb(photos[0], name: photos[0], settings: settings, into: folder)
        var child = Child.first()
        let (own, theirs) = (cpu(RUSAGE_SELF), child.cpu + cpu(RUSAGE_CHILDREN))
        var early: [Double] = []
        var late: [Double] = []
        for (index, photo) in photos.enumerated() {
            let (report, _) = try await jobs.thumb(photo, name: photo, settings: settings, into: folder)
            if let reason = report.reason { throw Failure(reason.code, "\(photo): \(reason.message)") }
            // To look costs time too. What a process keeps between two photos jumps by what malloc makes of the last one; its peak does not.
            let tenth = index * 10 / photos.count
            if tenth == 1 { early.append(Child.first().peak) }
            if tenth == 9 { late.append(Child.first().peak) }
        }
        child = Child.first()
        let count = Double(photos.count)
        show([
            "photos": count,
            "cpu_ms": (cpu(RUSAGE_SELF) - own + child.cpu + cpu(RUSAGE_CHILDREN) - theirs) * 1000 / count,
            "worker_cpu_ms": (child.cpu + cpu(RUSAGE_CHILDREN) - theirs) * 1000 / count, "idle_mib": idle,
            "peak_mib": child.peak, "second_tenth_mib": mean(early), "last_tenth_mib": mean(late),
        ])
        await jobs.shutDown()
    }

    private static func mean(_ values: [Double]) -> Double { values.reduce(0, +) / Double(max(1, values.count)) }

    private static func cpu(_ who: __rusage_who) -> Double {
        var usage = rusage()
        getrusage(__rusage_who_t(who.rawValue), &usage)
        return Double(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
            + Double(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1_000_000
    }

    private static func show(_ figures: [String: Double]) {
        let words = figures.sorted { $0.key < $1.key }.map { "\"\($0.key)\": \(($0.value * 1000).rounded() / 1000)" }
        print("{" + words.joined(separator: ", ") + "}")
    }
}

/// Files in a folder, as a parent would store them, but neither hashed nor synced.
final class FolderSink: OutputSink {
    private let folder: String
    private var open: [OutputName: Int32] = [:]
    init(_ folder: String) { self.folder = folder }

    func open(_ name: OutputName) throws(Failure) -> Int32 {
        let descriptor = Glibc.open("\(folder)/\(name).jpg", O_RDWR | O_CREAT | O_TRUNC, 0o600)
        open[name] = descriptor
        return descriptor
    }
    func seal(_ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?)
        throws(Failure)
    {
        if let descriptor = open.removeValue(forKey: name) { close(descriptor) }
    }
    func progress(_ progress: MediaProgress) throws(Failure) {}
}

/// The worker's process, as /proc tells of it.
struct Child {
    /// Seconds.
    var cpu = 0.0
    /// MiB.
    var resident = 0.0
    var peak = 0.0

    static func first() -> Child {
        var child = Child()
        let own = getpid()
        let text = (try? String(contentsOfFile: "/proc/\(own)/task/\(own)/children", encoding: .utf8)) ?? ""
        var pids = text.split(separator: " ").map(String.init)
        if pids.isEmpty {
            // Another thread may have started it.
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task")) ?? []
            for thread in threads {
                let more = (try? String(contentsOfFile: "/proc/self/task/\(thread)/children", encoding: .utf8)) ?? ""
                pids += more.split(separator: " ").map(String.init)
            }
        }
        guard let pid = pids.first,
            let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let status = try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)
        else { return child }
        let fields = stat[(stat.lastIndex(of: ")") ?? stat.startIndex)...].split(separator: " ")
        child.cpu = (Double(fields[12]) ?? 0) / 100 + (Double(fields[13]) ?? 0) / 100
        for line in status.split(separator: "\n") {
            let value = line.split(whereSeparator: { $0 == " " || $0 == "\t" }).dropFirst().first.flatMap { Double($0) }
            if line.hasPrefix("VmRSS:") { child.resident = (value ?? 0) / 1024 }
            if line.hasPrefix("VmHWM:") { child.peak = (value ?? 0) / 1024 }
        }
        return child
    }
}
