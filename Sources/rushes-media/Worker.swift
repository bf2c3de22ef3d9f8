import Files
import Foundation
import Glibc
import Processes
import Vocabulary

/// Takes jobs from the channel, one after another, until the parent closes it.
enum Worker {
    /// Exit codes, for whoever reads the parent's log.
    enum End: Int32 {
        case done = 0
        case notConfined = 70
        case brokenChannel = 71
        case notStartedByRushes = 72
    }

    static func run() -> End {
        guard fcntl(ChildProgram.channelDescriptor, F_GETFD) >= 0 else {
            say("rushes-media is started by rushes, not by hand.")
            return .notStartedByRushes
        }
        let channel = MessageChannel(owning: ChildProgram.channelDescriptor)
        do throws(Failure) {
            try Confinement.confine()
        } catch {
            say("not confined: \(error)")
            return .notConfined
        }
        do throws(Failure) {
            try serve(ParentLine(channel))
            return .done
        } catch {
            say("channel: \(error)")
            return .brokenChannel
        }
    }

    private static func serve(_ parent: ParentLine) throws(Failure) {
        try parent.send(.hello(version: MediaProtocol.version))
        while let (order, file) = try parent.nextOrder() {
            guard case .job(let job) = order, let file else {
                throw Failure(.mediaProtocol, "The order makes no sense here.", detail: "\(order)")
            }
            let outputs = ParentOutputs(job: job.id, parent: parent)
            do throws(Failure) {
                let result = try MediaWork.carryOut(job, input: file.descriptor, sink: outputs)
                try parent.send(.result(job: job.id, result))
            } catch {
                try parent.send(.failure(job: job.id, error))
            }
            outputs.letGo()
        }
    }

    /// Standard error is kept by the parent, for operators.
    private static func say(_ words: String) {
        var line = words + "\n"
        line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}

/// `exit` runs the libraries' own endings, which are of no use here and sometimes crash.
func leave(_ end: Worker.End) -> Never { _exit(end.rawValue) }
