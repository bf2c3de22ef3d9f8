import Curl
import Foundation
import Ingest
import Synchronization
import Vocabulary

/// A network that a test bends where it wants: it may answer itself, let through, or let through and change or lose the answer.
final class BentNetwork: UploadTransport {
    typealias Send = @Sendable (HTTPRequest) async throws(Failure) -> HTTPResponse
    private let bend: @Sendable (HTTPRequest, Int, Send) async throws(Failure) -> HTTPResponse
    private let seen = Mutex<[HTTPRequest]>([])
    private let http = HTTPClient()

    /// - Parameter bend: given a request, how many of its kind came before, and the way through.
    init(_ bend: @escaping @Sendable (HTTPRequest, Int, Send) async throws(Failure) -> HTTPResponse) {
        self.bend = bend
    }

    func send(_ request: HTTPRequest) async throws(Failure) -> HTTPResponse {
        let kind = request.kind
        let before = seen.withLock { seen in
            seen.append(request)
            return seen.count { $0.kind == kind } - 1
        }
        return try await bend(request, before) { [http] request throws(Failure) in try await http.send(request) }
    }
    func stream(
        _ request: HTTPRequest, receive: @escaping @Sendable (HTTPResponse, [UInt8]) -> Bool
    ) async throws(Failure) -> HTTPResponse { try await http.stream(request, receive: receive) }

    func count(_ kind: HTTPRequest.Kind) -> Int { seen.withLock { $0.count { $0.kind == kind } } }
    /// Numbers of the parts that were asked for after the open.
    var signed: [[Int]] {
        seen.withLock { seen in
            seen.compactMap { request in
                guard request.kind == .sign, case .bytes(let body) = request.body else { return nil }
                return try? JSON.decode(PartURLsRequest.self, from: Data(body)).parts.map(\.partNumber)
            }
        }
    }
    /// By `generation.number`: how often each part was sent.
    var sent: [String: Int] {
        seen.withLock { seen in
            Dictionary(
                seen.filter { $0.kind == .part }.map { ($0.partName, 1) }, uniquingKeysWith: +)
        }
    }
}

extension HTTPRequest {
    enum Kind: Equatable { case open, sign, part, list, complete, reopen, abort, attach, other }
    var kind: Kind {
        switch method {
        case .put where headers["Content-MD5"] != nil: .part
        case .put: .attach
        case .post where url.hasSuffix("/v1/uploads"): .open
        case .post where url.hasSuffix("/part-urls"): .sign
        case .post where url.hasSuffix("/complete"): .complete
        case .post where url.hasSuffix("/reopen"): .reopen
        case .get where url.hasSuffix("/parts"): .list
        case .delete where url.contains("/v1/uploads/"): .abort
        default: .other
        }
    }
    /// `generation.number` of a part's URL, `/v1/parts/<upload>.<generation>.<number>.…`.
    var partName: String {
        url.split(separator: "/").last.map { $0.split(separator: ".").dropFirst().prefix(2).joined(separator: ".") }
            ?? ""
    }
}
