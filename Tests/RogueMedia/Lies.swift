import Digests
import Files
import Foundation
import Glibc
import Processes
import Vocabulary

extension Rogue {
    /// Answers that break the protocol.
    func lie(_ job: MediaJob) {
        switch job.file {
        case "sends garbage": raw(Array("this is no JSON".utf8))
        case "sends too much": raw([UInt8](repeating: UInt8(ascii: " "), count: MediaProtocol.messageBytesMax + 1))
        case "sends a descriptor": raw(encoded(.need(job: job.id, name: OutputName("512"))), descriptor: STDERR_FILENO)
        case "greets twice": send(.hello(version: MediaProtocol.version))
        case "asks for another": send(.need(job: job.id, name: OutputName("../passwd")))
        case "asks twice":
            _ = need(job)
            send(.need(job: job.id, name: OutputName("512")))
        case "makes it twice":
            makeOne(job)
            send(.need(job: job.id, name: OutputName("512")))
        case "seals what it never asked for": seal(job, bytes: 9, of: "a picture")
        case "seals nothing":
            _ = need(job)
            seal(job, bytes: 0, of: "")
        case "lies about the size":
            writeAll("a picture", to: need(job))
            seal(job, bytes: 8, of: "a picture")
        case "lies about the hash":
            writeAll("a picture", to: need(job))
            seal(job, bytes: 9, of: "a poem...")
        case "calls it a video":
            writeAll("a picture", to: need(job))
            seal(job, bytes: 9, of: "a picture", contentType: "video/mp4")
        case "keeps the descriptor":
            let file = need(job)
            _ = dup(file.descriptor)
            writeAll("a picture", to: file)
            seal(job, bytes: 9, of: "a picture")
        case "keeps a mapping":
            let file = need(job)
            writeAll("a picture", to: file)
            _ = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0)
            seal(job, bytes: 9, of: "a picture")
        case "never seals":
            _ = need(job)
            send(.result(job: job.id, .thumb(ThumbReport(outcome: .made))))
        case "answers something else": send(.result(job: job.id, .transcode(TranscodeReport(outcome: .encoded))))
        case "answers another job": send(.failure(job: job.id + 1, Failure(.corrupt, "Not mine.")))
        case "is further than the end": send(.progress(job: job.id, MediaProgress(fraction: 2, frames: 0)))
        default: preconditionFailure("no such misdeed: \(job.file)")
        }
    }

    // MARK: Messages

    func need(_ job: MediaJob, _ name: OutputName = OutputName("512")) -> OpenFile {
        send(.need(job: job.id, name: name))
        guard let (_, file) = nextOrder(), let file else { abort() }
        return file
    }

    func seal(_ job: MediaJob, bytes: Int, of text: String, contentType: String = "image/jpeg") {
        let digest = Digest.sha256(text)
        send(
            .sealed(
                job: job.id,
                output: SealedOutput(
                    name: OutputName("512"), role: .thumbnail, contentType: contentType, bytes: bytes, sha256: digest)))
        _ = nextOrder()
    }

    func nextOrder() -> (WorkerOrder, OpenFile?)? {
        let received = try? channel.receive(
            bytesMax: MediaProtocol.messageBytesMax, allowsDescriptor: true, waiting: true)
        guard case .message(let message)? = received else { return nil }
        guard let order = try? JSON.decode(WorkerOrder.self, from: Data(message.bytes)) else { return nil }
        return (order, message.file)
    }

    func send(_ answer: WorkerAnswer) { raw(encoded(answer)) }

    func encoded(_ answer: WorkerAnswer) -> [UInt8] { [UInt8]((try? JSON.encode(answer)) ?? Data()) }

    func raw(_ bytes: [UInt8], descriptor: Int32? = nil) {
        guard (try? channel.send(bytes, descriptor: descriptor, waiting: true)) == true else { exit(0) }
    }

    func writeAll(_ text: String, to file: OpenFile) {
        var text = text
        let done = text.withUTF8 { write(file.descriptor, $0.baseAddress, $0.count) }
        precondition(done == text.utf8.count)
    }

    func say(_ text: String) {
        var text = text
        text.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }
}
