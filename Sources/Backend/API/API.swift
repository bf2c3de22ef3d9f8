import Digests
import Files
import Foundation
import HTTPServer
import Vocabulary

/// The wire API over the ledger and the store.
struct API: HTTPHandler {
    let ledger: any Ledger
    let store: any BlobStore
    /// Where parts come in through this server; nil where the store takes them itself.
    let door: DirectoryBlobStore?
    let dataFolder: String
    let signer: URLSigner
    let sealing: Sealing
    let progress: ProgressBoard
    let events: EventStreams
    let disk: DiskQueue
    let clock: @Sendable () -> Timestamp
    let lifetimes: BackendSettings.Lifetimes
    let log: @Sendable (String) -> Void
    /// There may be a job to do.
    let wake: @Sendable () -> Void
    /// Something may have happened in the store.
    let lookAtStore: @Sendable () -> Void
    /// Rows went whose bytes are still there.
    let removeDoomed: @Sendable () -> Void
    let running: RunningJobs
    let tus: TusDoor

    /// Parts that are made durable at once.
    static let diskWidth = 8

    // MARK: At the head

    func plan(for request: HTTPRequest) -> BodyPlan {
        guard case .success(let route) = route(of: request) else {
            return .collect(bytesMax: APIBounds.bodyBytesMax)
        }
        let collected = BodyPlan.collect(bytesMax: route.bodyBytesMax)
        guard case .putPart(let token) = route else { return planTus(route, request) ?? collected }
        do throws(Failure) {
            let permit = try signer.permit(token, now: clock())
            if let length = request.headers["content-length"], Int(length) != permit.part.length {
                throw PartSink.badDigest("Content-Length \(length)")
            }
            if let md5 = request.headers["content-md5"], [UInt8](base64: md5)?.hexadecimal != permit.part.md5 {
                throw PartSink.badDigest("Content-MD5 \(md5)")
            }
            guard let door else { throw PartSink.gone }
            return .stream(try PartSink(permit, in: door.path(of: permit.session)))
        } catch {
            return .refuse(error, status: error.code == .gone ? 404 : nil)
        }
    }

    // MARK: When the body is in

    func respond(to request: HTTPRequest, body: ReceivedBody) async -> HTTPResponse {
        do throws(Failure) {
            switch route(of: request) {
            case .failure(.unknown): throw Failure(.notFound, "There is no such address.")
            case .failure(.method(let allowed)):
                var response = HTTPResponse.problem(
                    Failure(.badRequest, "This method does not go with this address: use \(allowed)."), status: 405)
                response.headers.append(("Allow", allowed))
                return response
            case .success(.putPart): return try await storePart(body)
            case .success(let route) where route.isTus: return await respondTus(route, request, body)
            case .success(let route):
                let caller = route.needsOwner ? try await caller(of: request) : .local
                try await admit(caller, to: route)
                var bytes: [UInt8] = []
                if case .bytes(let collected) = body { bytes = collected }
                let response = try await answer(route, request, Data(bytes), caller)
                if request.method != "GET" { events.ring(caller.owner) }
                return response
            }
        } catch { return refused(error, request) }
    }

    /// Operators hear of faults; that much is going on is none.
    func refused(_ failure: Failure, _ request: HTTPRequest) -> HTTPResponse {
        if (failure.code.row?.status ?? 500) >= 500, failure.code != .busy {
            log("\(request.method) \(request.path): \(failure)")
        }
        return .problem(failure, retryAfter: [.busy, .locked].contains(failure.code) ? 1 : nil)
    }

    private func answer(_ route: Route, _ request: HTTPRequest, _ body: Data, _ caller: Caller) async throws(Failure)
        -> HTTPResponse
    {
        let owner = caller.owner
        return switch route {
        case .openUpload: try await openUpload(body, idempotencyKey: request.headers["idempotency-key"], caller)
        case .partURLs(let id): try await partURLs(id, body, owner)
        case .parts(let id): try await listParts(id, owner)
        case .complete(let id): try await complete(id, body, owner)
        case .reopen(let id): try await reopen(id, body, owner)
        case .abort(let id): try await abort(id, owner)
        case .uploadOffset(let id): try await uploadOffset(id, owner)
        case .attach(let id): try await attach(id, body, caller)
        case .item(let id): try await showItem(id, owner)
        case .removeItem(let id): try await removeItem(id, owner)
        case .items: try await listItems(request.query, caller)
        case .playback(let id): try await playback(id, owner)
        case .events: try await openEvents(request, caller)
        case .media(let key): try await media(key, request.query)
        case .storageEvent:
            // Only a hint: whoever sends it is not believed, the ledger and the store are looked at.
            hinted()
        case .health: Self.alive
        case .readiness: try await readiness()
        case .metrics: try await metrics()
        case .putPart, .tusOptions, .tusCreate, .tusOffset, .tusPatch, .tusEnd:
            preconditionFailure("these are answered before")
        }
    }

    static let alive = HTTPResponse(
        status: 200, headers: [("Content-Type", "text/plain")], body: .bytes(Array("ok\n".utf8)))

    /// The header is the browser's way; tools may find a query easier.
    private func openEvents(_ request: HTTPRequest, _ caller: Caller) async throws(Failure) -> HTTPResponse {
        try await events.open(
            owner: caller.owner, shoot: try shoot(request.query["shoot"], for: caller),
            last: request.headers["last-event-id"] ?? request.query["last_event_id"],
            isAdmitted: { () throws(Failure) in try await isStillAdmitted(caller) })
    }

    private func hinted() -> HTTPResponse {
        lookAtStore()
        wake()
        return HTTPResponse(status: 204)
    }

    private func storePart(_ body: ReceivedBody) async throws(Failure) -> HTTPResponse {
        do throws(Failure) {
            if case .failed(let failure, _) = body { throw failure }
            guard case .sink(let sink) = body, let part = sink as? PartSink else {
                preconditionFailure("a part is always streamed")
            }
            let etag = try await disk.run { () throws(Failure) in try part.store() }
            return HTTPResponse(status: 200, headers: [("ETag", etag)])
        } catch {
            return .problem(error, status: error.code == .gone ? 404 : nil)
        }
    }

    private func readiness() async throws(Failure) -> HTTPResponse {
        // Any question will do: whether the ledger answers is what counts.
        _ = try await ledger.suspects(limit: 1)
        let free = try Files.freeBytes(at: dataFolder)
        guard free > APIBounds.freeBytesMin else {
            throw Failure(.diskFull, "The backend has no space left: free some on its disk.")
        }
        return HTTPResponse(status: 200, headers: [("Content-Type", "text/plain")], body: .bytes(Array("ready\n".utf8)))
    }

    /// Prometheus text format 0.0.4.
    private func metrics() async throws(Failure) -> HTTPResponse {
        let counts = try await ledger.counts()
        var lines = ["# TYPE rushes_items gauge"]
        for (state, count) in counts.items.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            lines.append("rushes_items{state=\"\(state.rawValue)\"} \(count)")
        }
        lines.append("# TYPE rushes_jobs gauge")
        for (state, count) in counts.jobs.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            lines.append("rushes_jobs{state=\"\(state.rawValue)\"} \(count)")
        }
        lines += ["# TYPE rushes_open_sessions gauge", "rushes_open_sessions \(counts.openSessions)"]
        lines += ["# TYPE rushes_free_bytes gauge", "rushes_free_bytes \(try Files.freeBytes(at: dataFolder))", ""]
        return HTTPResponse(
            status: 200, headers: [("Content-Type", "text/plain; version=0.0.4")],
            body: .bytes(Array(lines.joined(separator: "\n").utf8)))
    }
}
