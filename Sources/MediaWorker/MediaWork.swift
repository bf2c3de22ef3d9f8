import Glibc
import Thumbs
import Transcode
import Vocabulary

/// One job: which module does it is decided by the file's first bytes, never by its name.
enum MediaWork {
    static func carryOut(_ job: MediaJob, input: Int32, sink: any OutputSink) throws(Failure) -> MediaResult {
        do throws(Failure) {
            let format = try sniff(input)
            switch job.work {
            case .probe:
                return .probe(try probe(job, input: input, format: format))
            case .transcode(let settings):
                if let format, format.isPicture {
                    return .transcode(
                        try animate(job, input: input, format: format, settings: settings, sink: sink))
                }
                return .transcode(
                    try Transcode.run(input, file: job.file, settings: settings, limits: job.limits, sink: sink))
            case .thumb(let settings):
                return .thumb(try thumb(job, input: input, format: format, settings: settings, sink: sink))
            }
        } catch {
            guard error.code.isVerdict else { throw error }
            return job.work.rejection(of: job.file, for: Reason(error))
        }
    }

    private static func probe(_ job: MediaJob, input: Int32, format: MediaFormat?) throws(Failure) -> ProbeReport {
        if let format, format.isPicture {
            return try PhotoProbe.probe(input, format: format, file: job.file, limits: job.limits)
        }
        return try VideoProbe.probe(input, file: job.file, limits: job.limits)
    }

    private static func animate(
        _ job: MediaJob, input: Int32, format: MediaFormat, settings: TranscodeSettings, sink: any OutputSink
    ) throws(Failure) -> TranscodeReport {
        guard let animation = try Animation.open(input, format: format, limits: job.limits) else {
            throw Failure(.noVideo, "This is a picture that does not move: there is no video to transcode.")
        }
        return try Transcode.run(
            animation: animation.source, header: animation.header, settings: settings, limits: job.limits, sink: sink)
    }

    private static func thumb(
        _ job: MediaJob, input: Int32, format: MediaFormat?, settings: ThumbSettings, sink: any OutputSink
    ) throws(Failure) -> ThumbReport {
        if let format, format.isPicture {
            return try Thumb.make(
                input, format: format, file: job.file, settings: settings, limits: job.limits, sink: sink)
        }
        guard settings.format == .jpeg else {
            throw Failure(.usage, "Stills of a video are JPEG: give the output a name that ends in .jpg.")
        }
        return try Poster.make(input, file: job.file, settings: settings, limits: job.limits, sink: sink)
    }

    /// - Throws: `empty` for a file without bytes.
    private static func sniff(_ input: Int32) throws(Failure) -> MediaFormat? {
        var head = [UInt8](repeating: 0, count: MediaFormat.headLength)
        var count = 0
        while count < head.count {
            let got = head.withUnsafeMutableBytes {
                pread(input, $0.baseAddress?.advanced(by: count), $0.count - count, count)
            }
            if got < 0, errno == EINTR { continue }
            guard got >= 0 else {
                throw Failure(
                    .sourceUnreadable, "The file could not be read from its disk or card.",
                    detail: "pread at \(count): \(String(cString: strerror(errno)))")
            }
            if got == 0 { break }
            count += got
        }
        guard count > 0 else { throw Failure(.empty, "The file has no bytes.") }
        return MediaFormat.sniff(Array(head[..<count]))
    }
}

extension MediaJob.Work {
    /// A verdict as the result that this kind of work gives.
    func rejection(of file: String, for reason: Reason) -> MediaResult {
        switch self {
        case .probe: .probe(ProbeReport(file: file, facts: nil, reason: reason))
        case .transcode: .transcode(TranscodeReport(outcome: .reject, segments: 0, reason: reason))
        case .thumb: .thumb(ThumbReport(outcome: .reject, reason: reason))
        }
    }
}
