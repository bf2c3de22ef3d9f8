import Files
import Ingest
import MediaJobs
import Vocabulary

extension Verb {
    static let probe = Verb(
        "probe", operands: "PATH…", operandCount: 1...Int.max,
        summary: "say what photos, videos and sounds are, and whether they are whole",
        details: """
            A folder is walked as for ingest: what systems and cameras leave there for themselves is
            left out. With --json one file gives one object; a folder, or several paths, one line a
            file, in order.
            """,
        options: [.json, .memory]
    ) { arguments async throws(Failure) in
        let settings = try arguments.mediaSettings()
        let jobs = MediaJobs(settings)
        let first = arguments.paths[0]
        if arguments.paths.count == 1, try Files.facts(first)?.kind != .folder {
            let report = try await jobs.probe(first, name: first.description)
            try show(report, asJSON: arguments.has(.json))
            return report.outcome == .accept ? .done : .rejected
        }
        let home = try Configuration.current().home
        let named = arguments.paths.flatMap { files($0, home: home) }
        return try await probeAll(named, jobs, atOnce: settings.processCountMax, asJSON: arguments.has(.json))
    }

    /// A file under the name by which it was given, or why there is none.
    private struct Named: Sendable {
        var name: RawPath
        var path: Result<RawPath, Failure>
    }

    private static func files(_ operand: RawPath, home: String) -> [Named] {
        do throws(Failure) {
            guard try Files.facts(operand)?.kind == .folder else {
                return [Named(name: operand, path: .success(operand))]
            }
            let walk = try PickWalk([operand], home: home)
            let taken = walk.files.filter { !PickWalk.isSystemFile($0.path) }.map { file in
                Named(name: operand.appending(file.below.bytes), path: .success(file.path))
            }
            let left = walk.ignored.filter(\.reason.isLoss).map { ignored in
                Named(name: ignored.path, path: .failure(Failure(.sourceUnreadable, ignored.reason.words)))
            }
            return taken + left
        } catch { return [Named(name: operand, path: .failure(error))] }
    }

    /// Probes several at once and prints in order.
    private static func probeAll(
        _ files: [Named], _ jobs: MediaJobs, atOnce: Int, asJSON: Bool
    ) async throws(Failure) -> ExitCode {
        var left = files[...]
        var running: [Task<ProbeAnswer, Never>] = []
        var areAllFine = true
        // Tasks of their own do not end with ours.
        func stopAll() { for task in running { task.cancel() } }
        while true {
            while running.count < atOnce, let file = left.popFirst() {
                let name = file.name.description
                running.append(
                    Task {
                        do throws(Failure) {
                            return .report(try await jobs.probe(try file.path.get(), name: name))
                        } catch {
                            return .failure(name, error)
                        }
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
                    try show(report, asJSON: asJSON)
                case .failure(let path, let failure):
                    areAllFine = false
                    if asJSON { try Output.json(FailedProbe(file: path, reason: Reason(failure))) }
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
