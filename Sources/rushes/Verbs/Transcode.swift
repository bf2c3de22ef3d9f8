import MediaJobs
import Vocabulary

extension Verb {
    private static let poster = Option("--poster", "F.jpg", "also write a still of the video")
    private static let preset = Option("--preset", "P", "x264's preset, from ultrafast to veryslow (default veryfast)")
    private static let crf = Option("--crf", "N", "x264's constant rate factor, 0 to 51, less is better (default 21)")

    /// x264 --fullhelp.
    private static let presets = [
        "ultrafast", "superfast", "veryfast", "faster", "fast", "medium", "slow", "slower", "veryslow",
    ]

    static let transcode = Verb(
        "transcode", operands: "IN OUT.mp4", operandCount: 2...2,
        summary: "make the 1080p MP4 of a video that plays everywhere",
        details: """
            H.264 and AAC, upright, square pixels, standard dynamic range. A video that is so
            already is copied without loss. The outputs appear whole or not at all.
            """,
        options: [poster, preset, crf, .json, .memory]
    ) { arguments async throws(Failure) in
        let (source, target) = (arguments.operands[0], arguments.operands[1])
        var wanted = TranscodeSettings(outputs: [.rendition1080])
        var paths: [OutputName: String] = [.rendition1080: target]
        if let poster = arguments[poster] {
            guard poster != target else { throw Failure(.usage, "The poster and the video need different names.") }
            wanted.outputs.append(.poster)
            paths[.poster] = poster
        }
        if let preset = arguments[preset] {
            guard presets.contains(preset) else {
                throw Failure(.usage, "--preset takes one of \(presets.joined(separator: ", ")).")
            }
            wanted.preset = preset
        }
        if let crf = try arguments.number(crf, in: 0...51) { wanted.crf = crf }
        let settings = try arguments.mediaSettings()
        for path in paths.values { try OutputPath.check(path, source: source) }

        let progress = ProgressLine(source)
        defer { progress.end() }
        let (report, files) = try await MediaJobs(settings).transcode(
            source, name: source, settings: wanted, to: paths, progress: { progress.show($0) })
        progress.end()
        for file in files { OutputPath.share(file.path) }
        for warning in report.warnings { Output.say("\(source): \(warning.message)") }
        if arguments.has(.json) { try Output.json(report) }
        if let reason = report.reason {
            Output.say("\(source): \(reason.message)")
            return .rejected
        }
        if !arguments.has(.json) { Output.say("\(target): \(report.words)") }
        return .done
    }
}

extension TranscodeReport {
    /// One line for a person.
    var words: String {
        var parts = [outcome == .remuxed ? "copied without loss" : "encoded"]
        if let width, let height { parts.append("\(width)×\(height)") }
        if let duration { parts.append(Duration.seconds(duration).clock) }
        if let frames { parts.append("\(frames) frames") }
        return parts.joined(separator: ", ")
    }
}
