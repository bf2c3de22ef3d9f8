import Files
import Foundation
import Processes
import Vocabulary

/// The worker's end of the channel, in messages.
final class ParentLine {
    private let channel: MessageChannel

    init(_ channel: MessageChannel) { self.channel = channel }

    /// - Returns: nil when the parent closed the channel.
    func nextOrder() throws(Failure) -> (WorkerOrder, OpenFile?)? {
        switch try channel.receive(bytesMax: MediaProtocol.messageBytesMax, allowsDescriptor: true, waiting: true) {
        case .message(let message): return (try JSON.decode(WorkerOrder.self, from: Data(message.bytes)), message.file)
        case .end, .nothing: return nil
        case .oversize: throw Failure(.mediaProtocol, "An order is longer than the protocol allows.")
        }
    }

    /// An order that came while the worker was busy; nil when there is none.
    func waitingOrder() throws(Failure) -> WorkerOrder? {
        switch try channel.receive(bytesMax: MediaProtocol.messageBytesMax, allowsDescriptor: true, waiting: false) {
        case .message(let message): return try JSON.decode(WorkerOrder.self, from: Data(message.bytes))
        case .nothing: return nil
        case .end: throw Failure(.cancelled, "Stopped.", detail: "the parent closed the channel")
        case .oversize: throw Failure(.mediaProtocol, "An order is longer than the protocol allows.")
        }
    }

    func send(_ answer: WorkerAnswer) throws(Failure) {
        let bytes = [UInt8](try JSON.encode(answer.fittingOnePacket))
        guard bytes.count <= MediaProtocol.messageBytesMax else {
            throw Failure(
                .internalError, "An answer is longer than the protocol allows.", detail: "\(bytes.count) bytes")
        }
        guard try channel.send(bytes, waiting: true) else {
            throw Failure(.cancelled, "Stopped.", detail: "the parent closed the channel")
        }
    }
}

extension WorkerAnswer {
    /// What a library says about a file may be long: warnings and details are cut to what a packet holds.
    private static let warningCountMax = 64
    private static let textLengthMax = 400

    var fittingOnePacket: WorkerAnswer {
        switch self {
        case .hello, .need, .sealed, .progress:
            return self
        case .failure(let job, var failure):
            failure.message = String(failure.message.prefix(Self.textLengthMax))
            failure.detail = failure.detail.map { String($0.prefix(Self.textLengthMax * 4)) }
            return .failure(job: job, failure)
        case .result(let job, .probe(var report)):
            report.warnings = Self.cut(report.warnings)
            return .result(job: job, .probe(report))
        case .result(let job, .transcode(var report)):
            report.warnings = Self.cut(report.warnings)
            return .result(job: job, .transcode(report))
        case .result(let job, .thumb(var report)):
            report.warnings = Self.cut(report.warnings)
            return .result(job: job, .thumb(report))
        }
    }

    private static func cut(_ warnings: [MediaWarning]) -> [MediaWarning] {
        warnings.prefix(warningCountMax).map { MediaWarning($0.code, String($0.message.prefix(textLengthMax))) }
    }
}
