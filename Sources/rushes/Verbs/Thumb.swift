import MediaJobs
import Vocabulary

extension Verb {
    private static let size = Option("--size", "N", "the long side in pixels, never enlarged (default 512)")

    static let thumb = Verb(
        "thumb", operands: "IN OUT.jpg", operandCount: 2...2, summary: "make a small still of a photo or video",
        details: """
            The still is upright, in sRGB, and says nothing of the place. OUT.jpg appears whole
            or not at all; a name that ends in .webp asks for WebP. For media that is rejected,
            the reason stands on standard output as JSON, and the exit code is 4.
            """,
        options: [size, .json, .memory]
    ) { arguments async throws(Failure) in
        let (source, target) = (arguments.operands[0], arguments.operands[1])
        let size = try arguments.integer(size, in: ThumbSettings.sizeRange) ?? 512
        let settings = try arguments.mediaSettings()
        try OutputPath.check(target, endsIn: ["jpg", "jpeg", "webp"])
        try OutputPath.check(arguments.paths[1], source: arguments.paths[0])
        let format: ThumbSettings.Format = target.lowercased().hasSuffix(".webp") ? .webp : .jpeg
        let jobs = MediaJobs(settings)
        let (report, _) = try await jobs.thumb(
            arguments.paths[0], name: source, settings: ThumbSettings(sizes: [size], format: format),
            to: [ThumbSettings.name(of: size): target])
        if let reason = report.reason {
            try Output.json(report)
            Output.say("\(source): \(reason.message)")
            return .rejected
        }
        OutputPath.share(target)
        for warning in report.warnings { Output.say("\(source): \(warning.message)") }
        if arguments.has(.json) {
            try Output.json(report)
        } else {
            Output.say("\(target): \(report.width ?? 0)×\(report.height ?? 0)")
        }
        return .done
    }
}
