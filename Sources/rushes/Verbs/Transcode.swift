import Foundation
import MediaJobs
import Vocabulary

extension Verb {
    private static let poster = Option("--poster", "F.jpg", "also write a still of the video")
    private static let storyboard = Option(
        "--storyboard", "F.jpg",
        "also write small pictures of all its parts, with F.vtt as their index")
    private static let ladder = Option("--ladder", nil, "also write OUT-720p.mp4 and OUT-480p.mp4, where smaller")
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
        options: [poster, storyboard, ladder, preset, crf, .json, .memory]
    ) { arguments async throws(Failure) in
        let (source, target) = (arguments.operands[0], arguments.operands[1])
        let paths = try outputs(arguments, target)
        try OutputPath.check(target, endsIn: ["mp4", "m4v"])
        for still in [arguments[poster], arguments[storyboard]].compactMap({ $0 }) {
            try OutputPath.check(still, endsIn: ["jpg", "jpeg"])
        }
        // The rendition first: it is the one that the report speaks of.
        var wanted = TranscodeSettings(outputs: outputOrder.filter { paths[$0] != nil })
        if let storyboard = paths[.storyboard] {
            wanted.storyboardLink = reference(toFileNamed: name(of: storyboard))
        }
        if let preset = arguments[preset] {
            guard presets.contains(preset) else {
                throw Failure(.usage, "--preset takes one of \(presets.joined(separator: ", ")).")
            }
            wanted.preset = preset
        }
        if let crf = try arguments.number(crf, in: 0...51) { wanted.crf = crf }
        let settings = try arguments.mediaSettings()
        // All others are made from this one, or stand in options, which are text.
        try OutputPath.check(arguments.paths[1], source: arguments.paths[0])
        for path in paths.values { try OutputPath.check(path, source: arguments.paths[0]) }

        let progress = ProgressLine(source)
        defer { progress.end() }
        let (report, files) = try await MediaJobs(settings).transcode(
            arguments.paths[0], name: source, settings: wanted, to: paths, progress: { progress.show($0) })
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

    private static let outputOrder: [OutputName] = [
        .rendition1080, .rendition720, .rendition480, .poster, .storyboard, .storyboardIndex,
    ]

    /// Where everything that was asked for goes.
    private static func outputs(_ arguments: Arguments, _ target: String) throws(Failure) -> [OutputName: String] {
        var paths: [OutputName: String] = [.rendition1080: target]
        paths[.poster] = arguments[poster]
        if let storyboard = arguments[storyboard] {
            paths[.storyboard] = storyboard
            paths[.storyboardIndex] = stem(storyboard) + ".vtt"
        }
        if arguments.has(ladder) {
            paths[.rendition720] = stem(target) + "-720p.mp4"
            paths[.rendition480] = stem(target) + "-480p.mp4"
        }
        guard Set(paths.values).count == paths.count else {
            throw Failure(.usage, "Each output needs a name of its own.")
        }
        return paths
    }

    private static func name(of path: String) -> Substring {
        path[(path.lastIndex(of: "/").map(path.index(after:)) ?? path.startIndex)...]
    }

    /// A file's name as a URL and a line of WebVTT may carry it (RFC 3986, 2.3).
    static func reference(toFileNamed name: some StringProtocol) -> String {
        let unreserved = CharacterSet(
            charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
        return name.addingPercentEncoding(withAllowedCharacters: unreserved) ?? String(name)
    }

    /// A path without its file's ending.
    private static func stem(_ path: String) -> String {
        let name = name(of: path)
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex else { return path }
        return String(path.dropLast(name.distance(from: dot, to: name.endIndex)))
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
