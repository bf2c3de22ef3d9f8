import Foundation
import Testing
import Vocabulary

/// The process dies by SIGKILL right after its nth durable step; then it is started again, and everything has to come out as if nothing had
/// happened. n goes up until the process survives.
@Suite(.serialized) struct CrashLoopTests {
    /// Durable steps of the box for one shoot of a video with a sidecar and a photo, prepared on the box. A change of the pipeline changes it on
    /// purpose; a loop that ended early would show here.
    static let stepsOfTheBox = 52
    /// Rounds at once: each waits for the backend most of the time.
    static let width = 4

    private func pick(into folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for name in ["portrait-rotated-90.mov", "portrait-rotated-90.xmp", "exif-orientation-6.jpg"] {
            try FileManager.default.copyItem(atPath: Programs.fixtures + "/" + name, toPath: folder + "/" + name)
        }
    }

    @Test(.timeLimit(.minutes(15))) func theBoxLosesNothingWhereverItIsKilled() async throws {
        let scratch = try ScratchFolder()
        let card = scratch.path + "/card"
        try pick(into: card)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for step in 1...(Self.stepsOfTheBox + 1) {
                if step > Self.width { try await group.next() }
                group.addTask {
                    let wasKilled = try await onThread {
                        try killed(at: step, card: card, in: "\(scratch.path)/\(step)")
                    }
                    #expect(wasKilled == (step <= Self.stepsOfTheBox), "step \(step)")
                }
            }
            try await group.waitForAll()
        }
    }

    /// One round.
    /// - Returns: whether there was such a step.
    private func killed(at step: Int, card: String, in round: String) throws -> Bool {
        let socket = round + "/s"
        let home = ["RUSHES_HOME": round + "/box"]
        try FileManager.default.createDirectory(atPath: round, withIntermediateDirectories: true)
        let server = try Programs.Started(["serve", "--listen", "unix:\(socket)", "--data", round + "/backend"], home)
        let command = ["ingest", card, "--shoot", "crash", "--prepare", "both", "--server", "unix:\(socket)", "--json"]

        let first = try Programs.run(command, home.merging(["RUSHES_CRASH_AT_STEP": "\(step)"]) { $1 })
        #expect(first.signal == SIGKILL || first.status == 0, "step \(step): \(first.errors)")
        let last = first.signal == nil ? first : try Programs.run(command, home)
        #expect(last.status == 0, "killed at step \(step): \(last.errors)")
        let items = try StatusLine.read(last.output)
        #expect(items.map(\.name).sorted() == ["exif-orientation-6.jpg", "portrait-rotated-90.mov"], "step \(step)")
        #expect(items.allSatisfy { $0.state == "ready" }, "step \(step): \(items)")
        let end = server.stop()
        #expect(end.status == 0, "step \(step): \(end.errors)")
        let check = try Programs.run(["check", "--data", round + "/backend"], home)
        #expect(check.status == 0, "step \(step): \(check.output)\(check.errors)")
        try FileManager.default.removeItem(atPath: round)
        return first.signal != nil
    }
}

/// Waiting for processes blocks; Swift's shared threads are not for that.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
