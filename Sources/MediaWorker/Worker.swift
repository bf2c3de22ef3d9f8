import Files
import Foundation
import Glibc
import Processes
public import Vocabulary

/// Takes jobs from the channel, one after another, until the parent closes it.
public enum Worker {
    /// How a job is done, on bytes that are not to be trusted.
    public typealias Decode = (_ job: MediaJob, _ input: Int32, _ sink: any OutputSink) throws(Failure) -> MediaResult

    /// Exit codes, for whoever reads the parent's log.
    enum End: Int32 {
        case done = 0
        case notConfined = 70
        case brokenChannel = 71
        case notStartedByRushes = 72
    }

    /// The program: gives its powers up, then serves. `exit` would run the libraries' own endings, which are of no use here and sometimes crash.
    public static func run(_ decode: Decode) -> Never { _exit(serveParent(decode).rawValue) }

    /// The decoders that ship.
    public static func decode(_ job: MediaJob, input: Int32, sink: any OutputSink) throws(Failure) -> MediaResult {
        try MediaWork.carryOut(job, input: input, sink: sink)
    }

    private static func serveParent(_ decode: Decode) -> End {
        guard fcntl(ChildProgram.channelDescriptor, F_GETFD) >= 0 else {
            say("rushes-media is started by rushes, not by hand.")
            return .notStartedByRushes
        }
        let parent = ParentLine(MessageChannel(owning: ChildProgram.channelDescriptor))
        do throws(Failure) {
            try Confinement.tieToParent()
            try WarmUp.run()
            if !CommandLine.arguments.contains(Confinement.absentArgument) { try Confinement.wallIn() }
        } catch {
            say("not confined: \(error)")
            // No job has this number: the parent takes it for the answer to its start.
            try? parent.send(.failure(job: MediaProtocol.startNumber, error))
            return .notConfined
        }
        do throws(Failure) {
            try serve(parent, decode)
            return .done
        } catch {
            say("channel: \(error)")
            return .brokenChannel
        }
    }

    private static func serve(_ parent: ParentLine, _ decode: Decode) throws(Failure) {
        try parent.send(.hello(version: MediaProtocol.version))
        while let (order, file) = try parent.nextOrder() {
            guard case .job(let job) = order, let file else {
                throw Failure(.mediaProtocol, "The order makes no sense here.", detail: "\(order)")
            }
            let outputs = ParentOutputs(job: job.id, parent: parent)
            do throws(Failure) {
                let result = try decode(job, file.descriptor, outputs)
                try parent.send(.result(job: job.id, result))
            } catch {
                try parent.send(.failure(job: job.id, error))
            }
            outputs.letGo()
            // An idle process takes little from those that run.
            Machine.giveBackFreeMemory(above: freeBytesMax)
        }
    }

    /// Bytes that malloc may keep between two jobs, so that small ones need nothing of the system.
    private static let freeBytesMax = 12 << 20

    /// Standard error is kept by the parent, for operators.
    private static func say(_ words: String) {
        var line = words + "\n"
        line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
