import Files
import MediaJobs
import Vocabulary

extension Verb {
    static let probe = Verb(
        "probe", operands: "PATH…", operandCount: 1...Int.max,
        summary: "say what photos, videos and sounds are, and whether they are whole",
        details: """
            A folder is walked; names that begin with a dot are left out. With --json one file
            gives one object; a folder, or several paths, one line a file, in order.
            """,
        options: [.json, .memory]
    ) { arguments async throws(Failure) in
        let settings = try arguments.mediaSettings()
        let jobs = MediaJobs(settings)
        let first = arguments.operands[0]
        if arguments.operands.count == 1, try Files.facts(first)?.kind != .folder {
            let report = try await jobs.probe(first, name: first)
            try show(report, asJSON: arguments.has(.json))
            return report.outcome == .accept ? .done : .rejected
        }
        return try await probeAll(arguments, jobs, atOnce: settings.processCountMax)
    }

    /// Probes several at once and prints in order.
    private static func probeAll(_ arguments: Arguments, _ jobs: MediaJobs, atOnce: Int) async throws(Failure)
        -> ExitCode
    {
        var walk = FolderWalk(arguments.operands)
        var running: [Task<ProbeAnswer, Never>] = []
        var areAllFine = true
        // Tasks of their own do not end with ours.
        func stopAll() { for task in running { task.cancel() } }
        while true {
            while running.count < atOnce, let path = walk.next() {
                running.append(
                    Task {
                        do throws(Failure) {
                            switch path {
                            case .file(let path): return .report(try await jobs.probe(path, name: path))
                            case .fault(let path, let failure): return .failure(path, failure)
                            }
                        } catch { return .failure(path.path, error) }
                    })
            }
            guard let first = running.first else { return areAllFine ? .done : .partly }
            let answer = await withTaskCancellationHandler {
                await first.value
            } onCancel: {
                first.cancel()
            }
            running.removeFirst()
            do throws(Failure) {
                if Task.isCancelled { throw Failure(.cancelled, "Stopped.") }
                switch answer {
                case .report(let report):
                    areAllFine = areAllFine && report.outcome == .accept
                    try show(report, asJSON: arguments.has(.json))
                case .failure(let path, let failure):
                    areAllFine = false
                    if arguments.has(.json) { try Output.json(FailedProbe(file: path, reason: Reason(failure))) }
                    Output.say("\(path): \(failure.message)")
                }
            } catch {
                stopAll()
                for task in running { _ = await task.value }
                throw error
            }
        }
    }

    private enum ProbeAnswer: Sendable {
        case report(ProbeReport)
        case failure(String, Failure)
    }

    /// The line of a file on which there is no verdict.
    private struct FailedProbe: Encodable {
        var file: String
        var outcome = "failed"
        var reason: Reason
    }

    private static func show(_ report: ProbeReport, asJSON: Bool) throws(Failure) {
        if asJSON { try Output.json(report) } else { try Output.line(Output.printable(report.words)) }
    }
}

extension ProbeReport {
    /// One line for a person.
    var words: String {
        if let reason { return "\(file): rejected (\(reason.code)): \(reason.message)" }
        let notes = warnings.isEmpty ? "" : " (" + warnings.map(\.message).joined(separator: " ") + ")"
        return "\(file): \(facts?.words ?? "accepted")\(notes)"
    }
}

extension MediaFacts {
    var words: String {
        var parts = [kind.rawValue]
        if let width, let height { parts.append("\(width)×\(height)") }
        if let duration { parts.append(Duration.seconds(duration).clock) }
        if let codec { parts.append(codec) }
        if let averageFPS {
            parts.append(
                "\((averageFPS * 100).rounded() / 100) fps" + (hasVariableFrameRate == true ? " (variable)" : ""))
        }
        if let rotationClockwise, rotationClockwise != 0 { parts.append("turned by \(rotationClockwise)°") }
        if interlaced == true { parts.append("interlaced") }
        if let hdr { parts.append("HDR (\(hdr))") }
        for track in audio {
            let layout = track.layout ?? (track.channels == 1 ? "mono" : "\(track.channels) channels")
            parts.append("sound \(track.codec ?? "unknown"), \(layout)")
        }
        if kind == .video, audio.isEmpty { parts.append("no sound") }
        if let takenAt { parts.append("taken \(takenAt)") }
        if let camera { parts.append(camera) }
        if let gps, gps.count == 2 {
            // A fifth decimal is about a metre.
            parts.append("at " + gps.map { "\(($0 * 100_000).rounded() / 100_000)" }.joined(separator: ", "))
        }
        return parts.joined(separator: ", ")
    }
}
