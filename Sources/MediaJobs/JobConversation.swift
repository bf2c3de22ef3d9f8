import Vocabulary

/// What a job may make, and as what it has to arrive.
struct ExpectedOutput: Sendable, Equatable {
    var name: OutputName
    var role: FileRole
    var contentType: String
}

extension MediaJob.Work {
    /// - Throws: `usage` for an output that no worker makes, one asked for twice, or too many.
    func expectedOutputs() throws(Failure) -> [ExpectedOutput] {
        let outputs: [ExpectedOutput]
        switch self {
        case .probe:
            outputs = []
        case .transcode(let settings):
            outputs = settings.outputs.map {
                ExpectedOutput(name: $0, role: $0.videoRole, contentType: $0.videoContentType)
            }
        case .thumb(let settings):
            outputs = settings.sizes.map {
                ExpectedOutput(
                    name: ThumbSettings.name(of: $0), role: .thumbnail, contentType: settings.format.contentType)
            }
        }
        guard outputs.count <= MediaSettings.outputCountMax, Set(outputs.map(\.name)).count == outputs.count else {
            throw Failure(
                .usage, "Each output can be made once, and at most \(MediaSettings.outputCountMax) at a time.")
        }
        return outputs
    }
}

/// The parent's side of one job, as a value: an answer of the worker comes in, what to do about it goes out. The worker is not trusted; all
/// that is not in its turn ends the conversation.
struct JobConversation {
    enum Action: Equatable {
        case open(OutputName)
        /// Check it, make it durable, then tell the worker.
        case store(SealedOutput)
        case report(MediaProgress)
        case nothing
        case finish(MediaResult)
        case fail(Failure)
        /// The protocol is broken; for operators.
        case kill(String)
    }

    private let job: Int
    private let work: MediaJob.Work
    private let outputBytesMax: Int
    private var expected: [OutputName: ExpectedOutput]
    private var opened: Set<OutputName> = []
    private var furthest = MediaProgress(fraction: 0, frames: 0)
    /// The last answer showed that the worker is getting on; a worker that only repeats itself does not.
    private(set) var hasAdvanced = false

    init(_ job: MediaJob, expecting outputs: [ExpectedOutput]) {
        self.job = job.id
        work = job.work
        outputBytesMax = job.limits.outputBytesMax
        expected = Dictionary(uniqueKeysWithValues: outputs.map { ($0.name, $0) })
    }

    mutating func received(_ answer: WorkerAnswer) -> Action {
        hasAdvanced = true
        switch answer {
        case .hello:
            return .kill("a second hello")
        case .need(job: let job, let name):
            guard job == self.job else { return .kill("need of job \(job) during job \(self.job)") }
            guard expected[name] != nil else {
                return .kill("an output that was not asked for, or twice: \(brief(name))")
            }
            guard opened.insert(name).inserted else { return .kill("an output twice: \(brief(name))") }
            return .open(name)
        case .sealed(job: let job, let output):
            guard job == self.job else { return .kill("sealed of job \(job) during job \(self.job)") }
            guard opened.remove(output.name) != nil, let wanted = expected.removeValue(forKey: output.name) else {
                return .kill("sealed what was not open: \(brief(output.name))")
            }
            guard output.role == wanted.role, output.contentType == wanted.contentType else {
                return .kill("\(output.name) is no \(wanted.contentType)")
            }
            guard (1...outputBytesMax).contains(output.bytes) else {
                return .kill("\(output.name) has \(output.bytes) bytes")
            }
            return .store(output)
        case .progress(job: let job, let progress):
            guard job == self.job else { return .kill("progress of job \(job) during job \(self.job)") }
            return advance(to: progress)
        case .result(job: let job, let result):
            guard job == self.job else { return .kill("result of job \(job) during job \(self.job)") }
            return finish(result)
        case .failure(job: let job, let failure):
            guard job == self.job else { return .kill("failure of job \(job) during job \(self.job)") }
            return .fail(failure)
        }
    }

    private mutating func advance(to progress: MediaProgress) -> Action {
        guard (0...1).contains(progress.fraction), progress.frames >= 0 else { return .kill("progress out of range") }
        hasAdvanced = progress.fraction > furthest.fraction || progress.frames > furthest.frames
        guard hasAdvanced else { return .nothing }
        furthest.fraction = max(furthest.fraction, progress.fraction)
        furthest.frames = max(furthest.frames, progress.frames)
        return .report(furthest)
    }

    private func finish(_ result: MediaResult) -> Action {
        switch (work, result) {
        case (.probe, .probe), (.thumb, .thumb), (.transcode, .transcode): break
        default: return .kill("the result of another kind of work")
        }
        guard result.isPossible else { return .kill("a result with numbers that cannot be") }
        if !result.isRejection, let name = opened.first { return .kill("\(brief(name)) was never sealed") }
        return .finish(result)
    }

    /// A name that came from the worker may be anything.
    private func brief(_ name: OutputName) -> String { String(name.rawValue.prefix(40)) }
}

extension MediaResult {
    /// Whoever counts with these numbers need not look at them again.
    fileprivate var isPossible: Bool {
        switch self {
        case .probe(let report):
            guard let facts = report.facts else { return true }
            return Self.arePossible(
                counts: [facts.width, facts.height, facts.frames]
                    + facts.audio.flatMap { [$0.channels, $0.sampleRate] },
                amounts: [facts.duration, facts.averageFPS])
        case .transcode(let report):
            return Self.arePossible(
                counts: [report.width, report.height, report.frames, report.segments], amounts: [report.duration])
        case .thumb(let report):
            return Self.arePossible(counts: [report.width, report.height], amounts: [])
        }
    }

    /// A number of frames, a time in seconds: far beyond what any file holds.
    private static let numberMax = 1 << 40

    private static func arePossible(counts: [Int?], amounts: [Double?]) -> Bool {
        counts.allSatisfy { (0...numberMax).contains($0 ?? 0) }
            && amounts.allSatisfy { (0...Double(numberMax)).contains($0 ?? 0) }
    }

    var isRejection: Bool {
        switch self {
        case .probe(let report): report.outcome == .reject
        case .transcode(let report): report.outcome == .reject
        case .thumb(let report): report.outcome == .reject
        }
    }
}
