import Files
import Vocabulary

/// Outputs that the parent opens and stores.
final class ParentOutputs: OutputSink {
    private let job: Int
    private let parent: ParentLine
    private var files: [OutputName: OpenFile] = [:]
    private var lastReport: ContinuousClock.Instant?

    /// How often progress is sent at most.
    private static let reportInterval = Duration.milliseconds(200)

    init(job: Int, parent: ParentLine) {
        self.job = job
        self.parent = parent
    }

    func open(_ name: OutputName) throws(Failure) -> Int32 {
        try parent.send(.need(job: job, name: name))
        guard let (order, file) = try parent.nextOrder(), order == .file(job: job, name: name), let file else {
            throw Failure(.cancelled, "Stopped.", detail: "no descriptor came for \(name)")
        }
        files[name] = file
        return file.descriptor
    }

    func seal(
        _ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?
    ) throws(Failure) {
        let output = try describe(
            name, role: role, contentType: contentType, width: width, height: height, duration: duration)
        // Closed before the parent hears of it: it takes an output only when nobody else has it open any more.
        files[name] = nil
        try parent.send(.sealed(job: job, output: output))
        guard let (order, _) = try parent.nextOrder(), order == .stored(job: job, name: name) else {
            throw Failure(.cancelled, "Stopped.", detail: "\(name) was not stored")
        }
    }

    func progress(_ progress: MediaProgress) throws(Failure) {
        let now = ContinuousClock.now
        if let lastReport, now - lastReport < Self.reportInterval { return }
        lastReport = now
        if let order = try parent.waitingOrder() { throw Failure(.cancelled, "Stopped.", detail: "\(order)") }
        try parent.send(.progress(job: job, progress))
    }

    /// Closes what a job that failed left open.
    func letGo() { files = [:] }

    // On its own, so that no reference to the file outlives it.
    private func describe(
        _ name: OutputName, role: FileRole, contentType: String, width: Int?, height: Int?, duration: Double?
    ) throws(Failure) -> SealedOutput {
        guard let file = files[name] else {
            throw Failure(.internalError, "An output was sealed twice.", detail: "\(name)")
        }
        return SealedOutput(
            name: name, role: role, contentType: contentType, bytes: try file.facts().size,
            sha256: try Files.sha256(of: file),
            width: width, height: height, duration: duration)
    }
}
