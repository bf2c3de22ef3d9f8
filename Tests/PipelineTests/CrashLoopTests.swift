import Foundation
import Testing
import Vocabulary

/// The process dies by SIGKILL right after its nth durable step; then it is started again, and everything has to come out as if nothing had
/// happened. n goes up until the process survives.
@Suite(.serialized) struct CrashLoopTests {
    /// Durable steps of the box for one shoot of a video with a sidecar and a photo, prepared on the box. A change of the pipeline changes it on
    /// purpose; a loop that stopped early would show here.
    static let stepsOfTheBox = 0
    static let stepCountMax = 400

    private func pick(into folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for name in ["portrait-rotated-90.mov", "portrait-rotated-90.xmp", "exif-orientation-6.jpg"] {
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: folder + "/" + name)
        }
    }

    @Test(.timeLimit(.minutes(10))) func theBoxLosesNothingWhereverItIsKilled() throws {
        let scratch = try ScratchFolder()
        let card = scratch.path + "/card"
        try pick(into: card)
        var survivedAt: Int?
        for step in 1...Self.stepCountMax {
            let round = "\(scratch.path)/\(step)"
            let socket = round + "/s"
            let home = ["RUSHES_HOME": round + "/box"]
            try FileManager.default.createDirectory(atPath: round, withIntermediateDirectories: true)
            let server = try Programs.Started(["serve", "--listen", "unix:\(socket)", "--data", round + "/backend"], home)
            let command = ["ingest", card, "--shoot", "crash", "--prepare", "both", "--server", "unix:\(socket)"]

            let first = try Programs.run(command, home.merging(["RUSHES_CRASH_AT_STEP": "\(step)"]) { $1 })
            if first.signal == nil {
                #expect(first.status == 0, "\(first.errors)")
                survivedAt = step
            } else {
                #expect(first.signal == SIGKILL)
                let second = try Programs.run(command, home)
                #expect(second.status == 0, "killed at step \(step): \(second.errors)")
            }
            let items = try StatusLine.read(home)
            #expect(items.map(\.name).sorted() == ["exif-orientation-6.jpg", "portrait-rotated-90.mov"], "step \(step)")
            #expect(items.allSatisfy { $0.state == "ready" }, "step \(step): \(items)")
            #expect(server.stop().status == 0)
            let check = try Programs.run(["check", "--data", round + "/backend"], home)
            #expect(check.status == 0, "step \(step): \(check.output)\(check.errors)")
            try FileManager.default.removeItem(atPath: round)
            if survivedAt != nil { break }
        }
        #expect(survivedAt == Self.stepsOfTheBox + 1)
    }
}
