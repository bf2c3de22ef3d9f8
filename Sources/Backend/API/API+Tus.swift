import HTTPServer
import Vocabulary

/// tus 1.0.0 for foreign clients.
extension API {
    /// The method that counts is the one that the client meant.
    func route(of request: HTTPRequest) -> Result<Route, Route.Refusal> {
        let isTus = request.path == Tus.path || request.path.hasPrefix(Tus.path + "/")
        return Route.parse(
            method: isTus ? Tus.method(request.method, headers: request.headers) : request.method, path: request.path)
    }

    // MARK: At the head

    /// Nil for a route without a body to stream.
    func planTus(_ route: Route, _ request: HTTPRequest) -> BodyPlan? {
        guard route.isTus, route != .tusOptions else { return nil }
        do throws(Failure) {
            try Tus.checkVersion(request.headers)
            switch route {
            case .tusPatch(let id):
                try Tus.checkContentType(request.headers)
                return .stream(
                    TusReception.begin(try Tus.Patch(request.headers)) { reception throws(Failure) in
                        let caller = try await caller(of: request)
                        try await admit(caller, to: route)
                        return try await tus.append(reception, to: id, owner: caller.owner)
                    })
            case .tusCreate where request.hasBody:
                try Tus.checkContentType(request.headers)
                let creation = try Tus.Creation(request.headers)
                return .stream(
                    TusReception.begin(try Tus.Patch(creation, request.headers)) { reception throws(Failure) in
                        let caller = try await caller(of: request)
                        return try await tus.create(
                            creation, taking: reception, owner: caller.owner, shoot: try shoot(creation, caller))
                    })
            default: return nil
            }
        } catch { return .refuse(error, headers: Self.tusHeaders(error)) }
    }

    /// Of every answer but that to OPTIONS.
    private static func tusHeaders(_ failure: Failure? = nil) -> [(name: String, value: String)] {
        [("Tus-Resumable", Tus.version), ("Cache-Control", "no-store")]
            + (failure?.code == .unknownVersion ? [("Tus-Version", Tus.version)] : [])
    }

    // MARK: When the body is in

    func respondTus(_ route: Route, _ request: HTTPRequest, _ body: ReceivedBody) async -> HTTPResponse {
        do throws(Failure) {
            var response = try await answerTus(route, request, body)
            if route != .tusOptions { response.headers += Self.tusHeaders() }
            return response
        } catch {
            var response = refused(error, request)
            response.headers += Self.tusHeaders(error)
            return response
        }
    }

    private func answerTus(_ route: Route, _ request: HTTPRequest, _ body: ReceivedBody) async throws(Failure)
        -> HTTPResponse
    {
        switch body {
        case .sink(let sink):
            guard let reception = sink as? TusReception else { preconditionFailure("a tus body is always a reception") }
            reception.end(.whole)
            return received(try await reception.outcome(), by: route)
        case .failed(let failure, let sink):
            guard let reception = sink as? TusReception else { preconditionFailure("a tus body is always a reception") }
            reception.end(.broken)
            _ = try? await reception.outcome()
            throw failure
        case .bytes: break
        }
        let caller = try await caller(of: request)
        try await admit(caller, to: route)
        if route != .tusOptions { try Tus.checkVersion(request.headers) }
        switch route {
        case .tusOptions: return Self.tusOptions
        case .tusCreate:
            let creation = try Tus.Creation(request.headers)
            let upload = try await tus.create(creation, owner: caller.owner, shoot: try shoot(creation, caller))
            return received(try await tus.look(upload.row.id, owner: caller.owner), by: route)
        case .tusOffset(let id): return standing(try await tus.look(id, owner: caller.owner))
        case .tusEnd(let id): return try await endTus(id, caller)
        default: preconditionFailure("what has a body was answered above")
        }
    }

    private static let tusOptions = HTTPResponse(
        status: 204,
        headers: [
            ("Tus-Resumable", Tus.version), ("Tus-Version", Tus.version), ("Tus-Extension", Tus.extensions),
            ("Tus-Max-Size", String(Tus.bytesMax)),
            ("Tus-Checksum-Algorithm", Tus.Checksum.algorithms.map(\.name).joined(separator: ",")),
        ])

    private func shoot(_ creation: Tus.Creation, _ caller: Caller) throws(Failure) -> String? {
        try shoot(try TusMetadata(creation.metadata).shoot, for: caller)
    }

    /// To who has sent bytes, or made an upload.
    private func received(_ upload: TusUpload, by route: Route) -> HTTPResponse {
        var headers = [(name: "Upload-Offset", value: String(upload.standing.offset))] + expiry(upload)
        guard route == .tusCreate else { return HTTPResponse(status: 204, headers: headers) }
        headers.append(("Location", "\(Tus.path)/\(upload.row.id)"))
        return HTTPResponse(status: 201, headers: headers)
    }

    private func standing(_ upload: TusUpload) -> HTTPResponse {
        var headers = [(name: "Upload-Offset", value: String(upload.standing.offset))] + expiry(upload)
        headers.append(
            upload.standing.size.map { ("Upload-Length", String($0)) } ?? ("Upload-Defer-Length", "1"))
        if !upload.metadata.isEmpty { headers.append(("Upload-Metadata", upload.metadata)) }
        return HTTPResponse(status: 200, headers: headers)
    }

    private func expiry(_ upload: TusUpload) -> [(name: String, value: String)] {
        upload.row.state == .open ? [("Upload-Expires", upload.row.expiresAt.httpDate)] : []
    }

    /// One that is finished is an item, and goes with it.
    private func endTus(_ id: UploadID, _ caller: Caller) async throws(Failure) -> HTTPResponse {
        guard let item = try await tus.end(id, owner: caller.owner) else { return HTTPResponse(status: 204) }
        defer { events.ring(caller.owner) }
        return try await removeItem(item, caller.owner)
    }
}
