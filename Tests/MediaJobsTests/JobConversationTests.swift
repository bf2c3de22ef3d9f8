import Testing
import Vocabulary

@testable import MediaJobs

@Suite struct JobConversationTests {
    private func conversation(_ work: MediaJob.Work) throws -> JobConversation {
        let job = MediaJob(id: 7, file: "a.mov", work: work, limits: MediaLimits(outputBytesMax: 1000))
        return JobConversation(job, expecting: try work.expectedOutputs())
    }

    private func sealed(_ name: OutputName, bytes: Int = 10) throws -> SealedOutput {
        let digest = try #require(SHA256Digest(rawValue: String(repeating: "0", count: 64)))
        return SealedOutput(
            name: name, role: name == .poster ? .poster : .rendition,
            contentType: name == .poster ? "image/jpeg" : "video/mp4",
            bytes: bytes, sha256: digest)
    }

    @Test func aTranscodeMakesItsOutputsOneAfterAnother() throws {
        var talk = try conversation(.transcode(TranscodeSettings(outputs: [.rendition1080, .poster])))
        #expect(talk.received(.need(job: 7, name: .rendition1080)) == .open(.rendition1080))
        #expect(
            talk.received(.progress(job: 7, MediaProgress(fraction: 0.5, frames: 50)))
                == .report(MediaProgress(fraction: 0.5, frames: 50)))
        #expect(talk.received(.need(job: 7, name: .poster)) == .open(.poster))
        #expect(talk.received(.sealed(job: 7, output: try sealed(.poster))) == .store(try sealed(.poster)))
        #expect(
            talk.received(.sealed(job: 7, output: try sealed(.rendition1080))) == .store(try sealed(.rendition1080)))
        let result = MediaResult.transcode(TranscodeReport(outcome: .encoded))
        #expect(talk.received(.result(job: 7, result)) == .finish(result))
    }

    @Test func aRejectionMayComeWithAnOutputOpen() throws {
        var talk = try conversation(.transcode(TranscodeSettings(outputs: [.rendition1080])))
        _ = talk.received(.need(job: 7, name: .rendition1080))
        let result = MediaResult.transcode(TranscodeReport(outcome: .reject, reason: Reason(.corrupt, "Damaged.")))
        #expect(talk.received(.result(job: 7, result)) == .finish(result))
    }

    @Test func progressNeverGoesBackAndRepetitionIsNoProgress() throws {
        var talk = try conversation(.probe)
        _ = talk.received(.progress(job: 7, MediaProgress(fraction: 0.5, frames: 5)))
        #expect(talk.hasAdvanced)
        #expect(talk.received(.progress(job: 7, MediaProgress(fraction: 0.5, frames: 5))) == .nothing)
        #expect(!talk.hasAdvanced)
        #expect(talk.received(.progress(job: 7, MediaProgress(fraction: 0.25, frames: 4))) == .nothing)
        #expect(!talk.hasAdvanced)
        #expect(
            talk.received(.progress(job: 7, MediaProgress(fraction: 0.4, frames: 6)))
                == .report(MediaProgress(fraction: 0.5, frames: 6)))
        #expect(talk.hasAdvanced)
    }

    @Test(arguments: [-1, 1e300]) func aResultWithNumbersThatCannotBeEndsTheWorker(number: Double) throws {
        var facts = MediaFacts(kind: .video)
        facts.duration = number
        let probe = MediaResult.probe(ProbeReport(file: "a.mov", facts: facts))
        var talk = try conversation(.probe)
        #expect(talk.received(.result(job: 7, probe)) == .kill("a result with numbers that cannot be"))
        let thumb = MediaResult.thumb(ThumbReport(outcome: .made, width: number < 0 ? -1 : .max))
        talk = try conversation(.thumb(ThumbSettings(sizes: [256])))
        #expect(talk.received(.result(job: 7, thumb)) == .kill("a result with numbers that cannot be"))
    }

    @Test func anOutputLargerThanItsBoundIsRefused() throws {
        var talk = try conversation(.transcode(TranscodeSettings(outputs: [.rendition1080])))
        _ = talk.received(.need(job: 7, name: .rendition1080))
        #expect(
            talk.received(.sealed(job: 7, output: try sealed(.rendition1080, bytes: 1001)))
                == .kill("1080p has 1001 bytes"))
    }

    @Test func progressOutOfRangeIsRefused() throws {
        for progress in [
            MediaProgress(fraction: .nan, frames: 0), MediaProgress(fraction: -0.1, frames: 0),
            MediaProgress(fraction: 0, frames: -1),
        ] {
            var talk = try conversation(.probe)
            #expect(talk.received(.progress(job: 7, progress)) == .kill("progress out of range"))
        }
    }

    @Test func theSameOutputCannotBeAskedForTwice() {
        #expect(throws: Failure.self) { try MediaJob.Work.thumb(ThumbSettings(sizes: [512, 512])).expectedOutputs() }
        #expect(throws: Failure.self) { try MediaJob.Work.thumb(ThumbSettings(sizes: Array(1...17))).expectedOutputs() }
    }
}
