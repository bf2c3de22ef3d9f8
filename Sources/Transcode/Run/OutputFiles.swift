import Glibc
import Vocabulary

/// The outputs of one job as its attempts see them: a second attempt gets the same descriptors again, emptied. Nothing may be sealed before
/// everything that could make a second attempt necessary has been checked.
final class OutputFiles {
    private let sink: any OutputSink
    private var opened: [OutputName: Int32] = [:]
    /// Nothing is sealed yet.
    private(set) var areAllDrafts = true

    init(_ sink: any OutputSink) { self.sink = sink }

    func open(_ name: OutputName) throws(Failure) -> Int32 {
        if let known = opened[name] { return known }
        let descriptor = try sink.open(name)
        opened[name] = descriptor
        return descriptor
    }

    /// Empties what was opened. These are drafts, which the parent makes durable once they are sealed.
    func startOver() throws(Failure) {
        for descriptor in opened.values where ftruncate(descriptor, 0) != 0 {
            throw Failure(.ioError, "The output could not be written; check the disk.", detail: "ftruncate: \(errno)")
        }
    }

    func seal(_ name: OutputName, width: Int?, height: Int?, duration: Double?) throws(Failure) {
        opened[name] = nil
        areAllDrafts = false
        try sink.seal(
            name, role: name.videoRole, contentType: name.videoContentType, width: width, height: height,
            duration: duration)
    }

    func progress(_ progress: MediaProgress) throws(Failure) { try sink.progress(progress) }

    /// Writes and seals a small output at once.
    func write(_ bytes: [UInt8], as name: OutputName, width: Int? = nil, height: Int? = nil) throws(Failure) {
        try writeAll(bytes, to: try open(name))
        try seal(name, width: width, height: height, duration: nil)
    }
}

func writeAll(_ bytes: [UInt8], to descriptor: Int32) throws(Failure) {
    var done = 0
    while done < bytes.count {
        let count = bytes.withUnsafeBytes { buffer in
            pwrite(descriptor, buffer.baseAddress.map { $0 + done }, bytes.count - done, done)
        }
        if count < 0 {
            if errno == EINTR { continue }
            let detail = String(cString: strerror(errno))
            throw errno == ENOSPC
                ? Failure(.diskFull, "There is no space left for the output; free some.", detail: detail)
                : Failure(.ioError, "The output could not be written; check the disk.", detail: detail)
        }
        done += count
    }
}
