public import Vocabulary

/// Finds out what a picture is and whether it can be shown.
public enum PhotoProbe {
    /// Reads the header, then tries the pixels at the smallest scale the format has, so that damage shows before anybody
    /// relies on the picture.
    /// - Parameters:
    ///   - input: a readable, seekable descriptor of a regular file; stays open and keeps its offset.
    ///   - format: what the first bytes say.
    ///   - file: the name for the report.
    /// - Returns: a report; a bad file is a report with a reason.
    /// - Throws: only what is no verdict on the file: `source-unreadable`, `internal-error`.
    public static func probe(_ input: Int32, format: MediaFormat, file: String, limits: MediaLimits) throws(Failure)
        -> ProbeReport
    {
        var facts: MediaFacts?
        do throws(Failure) {
            let bytes = try PictureInput(input)
            let picture = try PictureFiles.open(bytes, format: format, limits: limits)
            facts = MediaFacts(picture.header, format: format)
            let warnings = try trial(picture, limits: limits, input: bytes)
            return ProbeReport(file: file, facts: facts, warnings: picture.header.warnings + warnings)
        } catch {
            guard error.code.isVerdict else { throw error }
            return ProbeReport(file: file, facts: facts, reason: Reason(error))
        }
    }

    /// A picture that does not fit the memory is not tried: that says nothing about the file.
    private static func trial(_ picture: any PictureFile, limits: MediaLimits, input: PictureInput) throws(Failure)
        -> [MediaWarning]
    {
        do throws(Failure) {
            return try picture.tryPixels(budget: MemoryBudget(limits, input: input))
        } catch {
            if error.code == .overBudget, !limits.mayAskForMore { return [] }
            throw error
        }
    }
}

extension MediaFacts {
    init(_ header: PictureHeader, format: MediaFormat) {
        self.init(kind: header.frames > 1 ? .animation : .photo, format: format)
        width = header.upright.width
        height = header.upright.height
        rotationClockwise = (header.containerTurn ?? header.orientation).degreesClockwise
        codec = header.codec
        pixelFormat = header.pixelFormat
        colorPrimaries = header.codePoints?.primariesName
        colorTransfer = header.codePoints?.transferName
        colorSpace = header.codePoints?.matrixName
        hdr = header.codePoints?.hdr?.rawValue
        hasGainMap = header.hasGainMap
        contentIdentifier = header.metadata.contentIdentifier
        frames = header.frames
        duration = header.duration.map(thousandths)
        if let seconds = header.duration, seconds > 0, header.frames > 1 {
            averageFPS = thousandths(Double(header.frames) / seconds)
        }
        takenAt = header.metadata.taken?.text
        takenAtSource = header.metadata.taken?.source
        gps = header.metadata.position.map { [$0.latitude, $0.longitude] }
        camera = header.metadata.camera
    }
}

private func thousandths(_ value: Double) -> Double { (value * 1000).rounded() / 1000 }
